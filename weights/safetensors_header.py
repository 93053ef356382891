"""The safetensors header, read strictly: eight bytes of length, a JSON object, then the tensors' bytes.

    u64 little-endian n | n bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} | data

Offsets count from the first byte after the header. The tensors must cover the data exactly: no overlap, no hole, no
trailing byte. Stricter than the reference library, which accepts duplicate keys and leading blanks. The same rules in
the same order stand in `static/lib/safetensors.js`. Source: huggingface/safetensors, README, "Format".
Left out on purpose: dtypes of less than a byte.
"""

import re
from dataclasses import dataclass

from weights import errors
from weights.errors import quoted
from weights.strict_json import Number, parse_object

MAX_HEADER_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 8
MAX_TENSORS = 10_000
MAX_NAME = 200
MAX_RANK = 8
MAX_BYTES = 2**53 - 1  # the largest integer that a JavaScript number holds exactly
DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
RESERVED = {"__proto__", "prototype", "constructor"}
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_NEGATIVE = re.compile(r"-[0-9]+")


@dataclass(frozen=True)
class TensorInfo:
    """One tensor: begin and end count bytes from `Header.data_start`."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """A header that passed every check; tensors in the order of the file's JSON."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    data_start: int


def header_length(first: bytes, file_size: int) -> int:
    """The header's length in bytes, from the file's first eight bytes, within the limit and the file."""
    if file_size < 8 or len(first) < 8:
        raise errors.FileTooShort(f"The file has {file_size} bytes; a safetensors file has at least 8. Fetch it again.")
    length = int.from_bytes(first[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise errors.HeaderTooLarge(
            f"The header claims {length} bytes; at most {MAX_HEADER_BYTES} are allowed. Is this a safetensors file?"
        )
    if length > file_size - 8:
        raise errors.HeaderOutsideFile(
            f"The header claims {length} bytes but the file has {file_size - 8} after the length. Fetch it again."
        )
    return length


def parse_header(data: bytes, file_size: int) -> Header:
    """Check and parse a header. data: the file's first bytes, at least through the header; file_size in bytes.

    Raises one CheckpointError subclass per rule; see weights/errors.py.
    """
    length = header_length(data, file_size)
    raw = data[8 : 8 + length]
    if len(raw) < length:
        raise errors.FileTruncated(f"The header has {length} bytes but only {len(raw)} could be read. Fetch it again.")
    if raw[:1] != b"{":
        raise errors.HeaderStart("The header must begin with '{', no blanks before it. Is this a safetensors file?")
    entries = parse_object(raw, "header", max_depth=MAX_DEPTH, as_written=True)
    metadata = _metadata(entries)
    if len(entries) > MAX_TENSORS:
        raise errors.TooManyTensors(f"The file names {len(entries)} tensors; at most {MAX_TENSORS} are allowed.")
    data_bytes = file_size - 8 - length
    tensors = {name: _tensor(name, entry, data_bytes) for name, entry in entries.items()}
    _check_cover(tensors, data_bytes)
    return Header(tensors, metadata, 8 + length)


def _metadata(entries: dict) -> dict[str, str]:
    """Take __metadata__ out of the entries."""
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise errors.MetadataNotStrings("__metadata__ must map strings to strings; write other values as strings.")
    return metadata


def _tensor(name: str, entry: object, data_bytes: int) -> TensorInfo:
    """Check one entry on its own."""
    check_name(name)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise errors.EntryFields(f"Tensor {quoted(name)} must have exactly dtype, shape and data_offsets.")
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise errors.UnknownDtype(
            f"Tensor {quoted(name)} has dtype {quoted(dtype)}; allowed: {', '.join(DTYPE_BYTES)}. Convert the file."
        )
    shape, size = _shape(name, entry["shape"], DTYPE_BYTES[dtype])
    begin, end = _offsets(name, entry["data_offsets"], data_bytes)
    if end - begin != size:
        raise errors.SizeMismatch(
            f"Tensor {quoted(name)} has {end - begin} bytes; {dtype} of shape {list(shape)} needs {size}."
        )
    return TensorInfo(dtype, shape, begin, end)


def check_name(name: str) -> None:
    """Refuse names that could pass for something else: a path, a control sequence, a prototype key."""
    if "/" in name or "\\" in name or ".." in name:
        raise errors.NamePath(f"Tensor name {quoted(name)} looks like a path; use dots between words.")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise errors.NameCharacters(
            f"Tensor name {quoted(name)} has characters that are not allowed; use letters, digits, '_', '.' and '-'."
        )
    if len(name) > MAX_NAME:
        raise errors.NameTooLong(f"Tensor name {quoted(name)} has {len(name)} characters; at most {MAX_NAME}.")
    if RESERVED & set(name.split(".")):
        raise errors.NameReserved(f"Tensor name {quoted(name)} has a reserved part; rename it.")


def _shape(name: str, value: object, item_bytes: int) -> tuple[tuple[int, ...], int]:
    """The shape and the bytes that it needs."""
    if not isinstance(value, list) or not all(isinstance(size, Number) for size in value):
        raise errors.ShapeNotIntegers(f"Tensor {quoted(name)}: shape must be a list of integers.")
    if len(value) > MAX_RANK:
        raise errors.ShapeRank(f"Tensor {quoted(name)} has {len(value)} dimensions; at most {MAX_RANK} are allowed.")
    total, shape = item_bytes, []
    for number in value:
        if _NEGATIVE.fullmatch(number.text):
            raise errors.ShapeNegative(f"Tensor {quoted(name)}: size {number.text[:20]} is negative; sizes start at 0.")
        if not _INTEGER.fullmatch(number.text):
            raise errors.ShapeNotIntegers(f"Tensor {quoted(name)}: size {number.text[:20]} is not an integer.")
        size = int(number.text) if len(number.text) <= 16 else MAX_BYTES + 1
        total *= size
        if size > MAX_BYTES or total > MAX_BYTES:
            raise errors.ShapeOverflow(f"Tensor {quoted(name)}: its shape needs more than {MAX_BYTES} bytes.")
        shape.append(size)
    return tuple(shape), total


def _offsets(name: str, value: object, data_bytes: int) -> tuple[int, int]:
    """begin and end, within the data."""
    if (
        not isinstance(value, list)
        or len(value) != 2
        or not all(isinstance(number, Number) and _INTEGER.fullmatch(number.text) for number in value)
    ):
        raise errors.OffsetsNotIntegers(f"Tensor {quoted(name)}: data_offsets must be two integers, zero or more.")
    # A number with more digits than 2^53 lies outside any file; int() has a limit and an error of its own.
    begin, end = (int(number.text) if len(number.text) <= 16 else MAX_BYTES + 1 for number in value)
    if begin > end:
        raise errors.OffsetsReversed(f"Tensor {quoted(name)} begins at {begin} and ends at {end}; begin comes first.")
    if end > data_bytes:
        raise errors.OffsetsOutsideFile(
            f"Tensor {quoted(name)} ends at byte {end} but the file has {data_bytes} bytes of data. Fetch it again."
        )
    return begin, end


def _check_cover(tensors: dict[str, TensorInfo], data_bytes: int) -> None:
    """The tensors, in the order of their bytes, must cover the data exactly once."""
    position, before = 0, "the header"
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin < position:
            raise errors.Overlap(f"Tensor {quoted(name)} shares bytes with {before}; each byte belongs to one tensor.")
        if tensor.begin > position:
            raise errors.Hole(f"{tensor.begin - position} bytes before tensor {quoted(name)} belong to no tensor.")
        position, before = tensor.end, quoted(name)
    if position < data_bytes:
        raise errors.TrailingBytes(f"{data_bytes - position} bytes after the last tensor belong to no tensor.")
