"""The models this server offers: catalogue entries, opened, checked and hashed once per change on disk.

A model whose files or config are refused stays in the list with the sentence that says why, so that a person sees it.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from server.errors import ModelRefused, NotFound, UnknownModel

try:  # bridge until the catalogue is committed
    from weights import catalogue
except ImportError:
    from types import SimpleNamespace

    catalogue = SimpleNamespace(Entry=object, entries=lambda: [], default_id=lambda: "smollm2-135m")
from webgpu.config import UnsupportedConfig, parse_config
from weights.checkpoint import Checkpoint, CheckpointError, FileInfo, open_checkpoint


@dataclass
class Model:
    """One entry of the list. `refused` holds the sentence why it cannot be run, or None."""

    entry: catalogue.Entry
    stamp: tuple
    checkpoint: Checkpoint | None = None
    family: str | None = None
    shape: dict[str, int] = field(default_factory=dict)
    max_tokens: int = 0
    refused: str | None = None

    @property
    def folder(self) -> Path:
        return self.entry.folder

    @cached_property
    def files(self) -> dict[str, FileInfo]:
        """The files a browser may fetch, by name."""
        return {info.name: info for info in self.checkpoint.files} if self.checkpoint else {}

    def describe(self) -> dict:
        """The JSON form of one model in /api/models."""
        entry = self.entry
        about = {"id": entry.id, "name": entry.name, "licence": entry.licence, "source": entry.source}
        if self.refused or self.checkpoint is None:
            return {**about, "refused": self.refused}
        return {
            **about,
            "family": self.family,
            "bytes": sum(info.bytes for info in self.files.values()),
            "hash": self.checkpoint.hash,
            "shape": self.shape,
            "max_tokens": self.max_tokens,
            "files": [self._describe_file(info) for info in self.files.values()],
        }

    def _describe_file(self, info: FileInfo) -> dict:
        url = f"/models/{quote(self.entry.id)}/{info.sha256}/{quote(info.name)}"
        return {"name": info.name, "bytes": info.bytes, "sha256": info.sha256, "url": url}


class ModelIndex:
    """Models by id, kept until a file of theirs changes. Thread-safe; opening and hashing happen under the lock."""

    def __init__(self, default: str | None = None):
        """default: a catalogue id or a folder. Raises UnknownModel of the catalogue when there is no such model."""
        self._models: dict[str, Model] = {}
        self._lock = threading.Lock()
        self._given = catalogue.entry(default) if default else None
        self.default = self._given.id if self._given else catalogue.default_id()

    def all(self) -> list[Model]:
        """Every model, the default first."""
        with self._lock:
            return [self._opened(entry) for entry in self._entries()]

    def find(self, model_id: str) -> Model:
        """A model that can be run. Raises UnknownModel or ModelRefused."""
        with self._lock:
            for entry in self._entries():
                if entry.id == model_id:
                    model = self._opened(entry)
                    if model.refused:
                        raise ModelRefused(model.refused)
                    return model
        raise UnknownModel("There is no such model here; /api/models lists them.")

    def file(self, model_id: str, sha256: str, name: str) -> FileInfo:
        """The file of that name while its content still has that hash. Raises NotFound."""
        info = self.find(model_id).files.get(name)
        if info is None or info.sha256 != sha256:
            raise NotFound("This model has no file with that name and hash; /api/models has the current addresses.")
        return info

    def _entries(self) -> Iterable[catalogue.Entry]:
        entries = {entry.id: entry for entry in ([self._given] if self._given else []) + catalogue.entries()}
        return sorted(entries.values(), key=lambda entry: entry.id != self.default)

    def _opened(self, entry: catalogue.Entry) -> Model:
        stamp = _stamp(entry.folder)
        known = self._models.get(entry.id)
        if known is None or known.stamp != stamp:
            known = self._models[entry.id] = _open(entry, stamp)
        return known


def _stamp(folder: Path) -> tuple:
    """Changes when a file of the folder does."""
    try:
        return tuple(
            sorted(
                (path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir() if path.is_file()
            )
        )
    except OSError:
        return ()


def _open(entry: catalogue.Entry, stamp: tuple) -> Model:
    try:
        checkpoint = open_checkpoint(entry.folder)
        config = parse_config(checkpoint.config)
    except (CheckpointError, UnsupportedConfig) as error:
        return Model(entry, stamp, refused=str(error))
    shape = {"L": config.L, "N": config.N, "K": config.K, "D": config.D, "H": config.H, "V": config.V}
    return Model(entry, stamp, checkpoint, config.family, shape, config.max_tokens)
