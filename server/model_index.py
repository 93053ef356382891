"""The models this server offers: catalogue entries, opened, checked and hashed once per change on disk.

A model whose files or config are refused stays in the list with the sentence that says why, so that a person sees it.
"""

import json
import re
import threading
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from server.errors import ModelRefused, NotFound, UnknownModel
from webgpu.config import UnsupportedConfig, parse_config
from weights import catalogue
from weights.checkpoint import Checkpoint, CheckpointError, FileInfo
from weights.places import is_id
from weights.report import Measured, Report, read_report

MAX_OUTLINE_CHARACTERS, MAX_OUTLINE_FORMATS = 8_000, 100
_LAYER = re.compile(r"\.\d+\.")


@dataclass
class Model:
    """One entry of the list. `refused` holds the sentence why it cannot be run, or None."""

    entry: catalogue.Entry
    stamp: tuple
    checkpoint: Checkpoint | None = None
    family: str | None = None
    shape: dict[str, int] = field(default_factory=dict)
    max_tokens: int = 0
    tied: bool = False
    refused: str | None = None

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.entry.folder

    @cached_property
    def files(self) -> dict[str, FileInfo]:
        """The files a browser may fetch, by name."""
        return {info.name: info for info in self.checkpoint.files} if self.checkpoint else {}

    @cached_property
    def report(self) -> Report:
        """What the folder says about the heads of these very weights."""
        if self.checkpoint is None:
            return Report()
        L, N = self.shape["L"], self.shape["N"]
        return read_report(Measured(self.folder, self.checkpoint, L, N, self.max_tokens))

    @cached_property
    def outline(self) -> dict | None:
        """Its id, its config as it stands in config.json, and the formats of its matrices: name, the layer's number as
        `*` -> each that occurs. None for a config too long to be worth it.
        """
        checkpoint = self.checkpoint
        if checkpoint is None or len(json.dumps(checkpoint.config)) > MAX_OUTLINE_CHARACTERS:
            return None
        formats: dict[str, set[str]] = {}
        for name in checkpoint.names:
            if len(checkpoint.shape(name)) == 2:
                formats.setdefault(_LAYER.sub(".*.", name, count=1), set()).add(checkpoint.dtype(name))
        if len(formats) > MAX_OUTLINE_FORMATS:
            return None
        named = {name: sorted(each) for name, each in formats.items()}
        return {"id": self.entry.id, "config": checkpoint.config, "formats": named}

    def describe(self) -> dict:
        """The JSON form of one model in /api/models; hashes the files when called for the first time."""
        entry = self.entry
        about = {"id": entry.id, "name": entry.name, "licence": entry.licence, "source": entry.source}
        if self.checkpoint is None:
            return {**about, "refused": self.refused}
        return {
            **about,
            "about": entry.about,
            "family": self.family,
            "bytes": sum(info.bytes for info in self.files.values()),
            "hash": self.checkpoint.hash,
            "shape": self.shape,
            "max_tokens": self.max_tokens,
            "tied": self.tied,
            "files": [self._describe_file(info) for info in self.files.values()],
            "report": asdict(self.report),
        }

    def _describe_file(self, info: FileInfo) -> dict:
        url = f"/models/{quote(self.entry.id)}/{info.sha256}/{quote(info.name)}"
        return {"name": info.name, "bytes": info.bytes, "sha256": info.sha256, "url": url}


class ModelIndex:
    """Models by id, kept until a file of theirs changes. Thread-safe: opening happens under a lock."""

    def __init__(self, default: str | None = None):
        """default: a catalogue id or a folder. Raises the catalogue's UnknownModel when there is no such model."""
        self._models: dict[str, Model] = {}
        self._lock = threading.Lock()
        self._given = named_entry(default) if default else None
        self._default = self._given.id if self._given else None

    @property
    def default(self) -> str:
        """Id of the model the page opens with; it may still have to be pulled."""
        return self._default or catalogue.default_model()

    @property
    def opening(self) -> dict | None:
        """What the default model opens on, for a page drawn before it has the list; None: no prompt of its own."""
        try:
            prompts = self.find(self.default).report.prompts
        except (UnknownModel, ModelRefused):
            return None
        if not prompts:
            return None
        first = prompts[0]
        key = first["keys"][0] if len(first["keys"]) == 1 else None
        place = {"layer": first["layer"], "head": first["head"], "token": first["query"], "key": key}
        return {"prompt": first["text"], **place}

    @property
    def first(self) -> dict | None:
        """The default model in outline, for a page that compiles before it has the list; None: it has none."""
        try:
            return self.find(self.default).outline
        except (UnknownModel, ModelRefused):
            return None

    def all(self) -> list[Model]:
        """Every model, the default first."""
        entries = {entry.id: entry for entry in catalogue.entries()}
        if self._given:
            entries[self._given.id] = self._given
        ordered = sorted(entries.values(), key=lambda entry: entry.id != self.default)
        return [self._opened(entry) for entry in ordered]

    def describe_all(self) -> list[dict]:
        """The JSON form of every model, the default first."""
        return [model.describe() for model in self.all()]

    def find(self, model_id: str) -> Model:
        """A model that can be run. Raises UnknownModel or ModelRefused."""
        given = self._given if self._given and self._given.id == model_id else None
        entry = given or catalogue.find(model_id)
        if entry is None:
            raise UnknownModel("There is no such model here; /api/models lists them.")
        model = self._opened(entry)
        if model.checkpoint is None:
            raise ModelRefused(f"{model.refused}")
        return model

    def file(self, model_id: str, sha256: str, name: str) -> FileInfo:
        """The file of that name while its content still has that hash. Raises NotFound, UnknownModel, ModelRefused."""
        info = self.find(model_id).files.get(name)
        if info is None or info.sha256 != sha256:
            raise NotFound("This model has no file with that name and hash; /api/models has the current addresses.")
        return info

    def _opened(self, entry: catalogue.Entry) -> Model:
        stamp = _stamp(entry.folder)
        with self._lock:
            known = self._models.get(entry.id)
            if known is None or known.stamp != stamp:
                known = self._models[entry.id] = _open(entry, stamp)
            return known


def named_entry(model: str) -> catalogue.Entry:
    """The entry of a catalogue id, or one made up for a folder. Raises the catalogue's UnknownModel, BrokenModel."""
    entry = catalogue.find(model)
    if entry is not None:
        return entry
    folder = catalogue.resolve(model).resolve()
    model_id = folder.name if is_id(folder.name) else "folder"
    return catalogue.Entry(model_id, folder.name, folder, licence="not stated", source="a folder on this machine")


def _stamp(folder: Path) -> tuple:
    """Changes when a file of the folder does."""
    try:
        files = [(path.name, path.stat()) for path in folder.iterdir() if path.is_file()]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in files))


def _open(entry: catalogue.Entry, stamp: tuple) -> Model:
    try:
        checkpoint = entry.open()
        config = parse_config(checkpoint.config)
    except (CheckpointError, UnsupportedConfig) as error:
        return Model(entry, stamp, refused=str(error))
    shape = {key: getattr(config, key) for key in "LNKDHFV"}
    return Model(entry, stamp, checkpoint, config.family, shape, config.max_tokens, config.tied)
