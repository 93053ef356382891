"""A checkpoint folder, checked strictly before any of it is used.

    folder/config.json   and   model.safetensors   or   model.safetensors.index.json + shards

`open_checkpoint` reads the config, the index and every header; weights are read when asked for, with plain reads (a
file that shrinks under a memory map would end the process; a short read is an error with a sentence).
A matrix kept as blocks is two tensors of the file and one name here (weights/blocks.py).
"""

import hashlib
import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from weights import errors
from weights.blocks import BLOCK_TYPES, Blocks, Weight, fold
from weights.errors import CheckpointError, quoted
from weights.safetensors_header import Header, header_length, parse_header
from weights.shard_index import MAX_INDEX_BYTES, check_index, parse_index
from weights.strict_json import parse_object

__all__ = ["Blocks", "Checkpoint", "CheckpointError", "FileInfo", "open_checkpoint"]

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SIDE_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", INDEX)
MAX_CONFIG_BYTES = 1024 * 1024
# BF16 has no numpy type: its raw bits come as uint16, to be widened with `bits << 16`.
WEIGHT_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
STORED_DTYPES = WEIGHT_DTYPES | {"U32": np.dtype("<u4"), "I8": np.dtype("i1")}  # the last two hold quants


@dataclass
class FileInfo:
    """One file of the folder; its sha256 is computed when first asked for."""

    name: str
    bytes: int
    path: Path

    @cached_property
    def sha256(self) -> str:
        """Hex SHA-256 of the file's bytes."""
        with _open(self.path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass
class Checkpoint:
    """An open checkpoint: config and headers are checked, weights are read by name."""

    folder: Path
    config: dict
    shards: dict[str, Header]
    files: list[FileInfo] = field(default_factory=list)

    @cached_property
    def _home(self) -> dict[str, str]:
        return {name: shard for shard, header in self.shards.items() for name in header.tensors}

    @cached_property
    def _weights(self) -> dict[str, Weight]:
        return fold({name: self.shards[shard].tensors[name] for name, shard in self._home.items()})

    @property
    def names(self) -> list[str]:
        """All tensor names, shard by shard in file order; a block matrix is one."""
        return list(self._weights)

    def __contains__(self, name: str) -> bool:
        return name in self._weights

    def _weight(self, name: str) -> Weight:
        if name not in self._weights:
            raise KeyError(f"{self.folder} holds no tensor {quoted(name)}; it has {len(self._weights)}, see .names.")
        return self._weights[name]

    def dtype(self, name: str) -> str:
        """ "F32", "F16", "BF16", "Q4_1" or "Q8_0"."""
        return self._weight(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's shape."""
        return self._weight(name).shape

    def read(self, name: str) -> np.ndarray | Blocks:
        """The tensor: float32, float16, uint16 holding BF16 bits, or Blocks. Raises FileTruncated for missing bytes."""
        weight = self._weight(name)
        if weight.scales is None:
            return self._read(weight.stored)
        return Blocks(weight.dtype, self._read(weight.stored), self._read(weight.scales))

    def _read(self, stored: str) -> np.ndarray:
        """A tensor of the file, as it is."""
        shard = self._home[stored]
        tensor = self.shards[shard].tensors[stored]
        with _open(self.folder / shard) as file:
            file.seek(self.shards[shard].data_start + tensor.begin)
            out = np.empty(tensor.shape, STORED_DTYPES[tensor.dtype])
            _read_into(file, out, shard)
        return out

    @cached_property
    def hash(self) -> str:
        """SHA-256 of model.safetensors; for shards, of their hex hashes joined in file-name order."""
        hashes = [info.sha256 for info in sorted(self.files, key=lambda info: info.name) if info.name in self.shards]
        return hashes[0] if list(self.shards) == [SINGLE] else hashlib.sha256("".join(hashes).encode()).hexdigest()


def open_checkpoint(folder: Path | str) -> Checkpoint:
    """Check a folder and open it. Raises one CheckpointError subclass per rule; see weights/errors.py."""
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise errors.FolderMissing(f"{quoted(str(folder), 200)} is not a folder; give a folder with config.json in it.")
    config = _read_config(folder)
    single, index = (folder / SINGLE).exists(), (folder / INDEX).exists()
    if single and index:
        raise errors.TwoLayouts(f"The folder has both {SINGLE} and {INDEX}; keep one of them.")
    if not single and not index:
        raise errors.FileMissing(f"The folder has neither {SINGLE} nor {INDEX}; weights come as safetensors only.")
    shards = _read_index(folder) if index else {SINGLE: read_header(folder / SINGLE)}
    _check_weights(shards)
    names = [name for name in SIDE_FILES if (folder / name).is_file()] + list(shards)
    return Checkpoint(
        folder, config, shards, [FileInfo(name, (folder / name).stat().st_size, folder / name) for name in names]
    )


def read_header(path: Path) -> Header:
    """Read and check one safetensors file's header. Only the header's bytes are read."""
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(8)
        return parse_header(first + file.read(header_length(first, size)), size)


def _read_config(folder: Path) -> dict:
    """config.json as plain Python values."""
    if not (folder / "config.json").exists():
        raise errors.FileMissing("The folder has no config.json; give a folder as Hugging Face writes it.")
    with _open(folder / "config.json") as file:
        data = file.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        raise errors.ConfigTooLarge(f"config.json has more than {MAX_CONFIG_BYTES} bytes; is it the model's config?")
    return parse_object(data, "config", max_depth=16)


def _read_index(folder: Path) -> dict[str, Header]:
    """The headers of all shards, checked against the index."""
    with _open(folder / INDEX) as file:
        index = parse_index(file.read(MAX_INDEX_BYTES + 1))
    for shard in index.shards:
        if not (folder / shard).exists():
            raise errors.IndexShardMissing(f"The index names {quoted(shard)}, which is not in the folder. Fetch it.")
    headers = {shard: read_header(folder / shard) for shard in index.shards}
    check_index(index, headers)
    return headers


def _check_weights(shards: dict[str, Header]) -> None:
    """A checkpoint's tensors exist and have a dtype that the kernels and the oracle read exactly."""
    tensors = fold({name: tensor for header in shards.values() for name, tensor in header.tensors.items()})
    if not tensors:
        raise errors.NoTensors("The file holds no tensors; a model has some.")
    for name, tensor in tensors.items():
        if tensor.dtype not in (*WEIGHT_DTYPES, *BLOCK_TYPES):
            raise errors.WeightDtype(
                f"Tensor {quoted(name)} has dtype {tensor.dtype}; allowed: {', '.join(WEIGHT_DTYPES)}. Convert it."
            )


def _open(path: Path):
    """Open a regular file; anything else (a folder, a pipe that would block) is refused."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise errors.NotAFile(f"{quoted(path.name)} is not a regular file; put the file itself there.")
        return path.open("rb")
    except OSError as error:
        raise errors.NotAFile(f"{quoted(path.name)} cannot be read: {error.strerror}; check its rights.") from None


def _read_into(file, out: np.ndarray, name: str) -> None:
    """Fill out from the file, to the last byte."""
    view, done = memoryview(out.reshape(-1).view(np.uint8)), 0
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise errors.FileTruncated(
                f"{name} ended {len(view) - done} bytes early; it changed while it was read. Fetch it again."
            )
        done += count
