"""Every model that can be chosen: the project's own in `weights/`, then the user's cache.

A model is named by its id, looked up here and never joined into a path from outside. A folder that breaks a rule stays
in the list with the sentence that says why, so that one broken model cannot hide the others.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from weights.checkpoint import Checkpoint, CheckpointError, open_checkpoint
from weights.errors import quoted
from weights.places import OWN_MODELS, is_id, models_dir
from weights.report_fields import is_line
from weights.tokens import Tokens, load_tokenizer

__all__ = [
    "BrokenModel",
    "Entry",
    "UnknownModel",
    "default_model",
    "entries",
    "load_tokenizer",
    "open_model",
    "resolve",
]

# The embedded model opens at once and has prompts of its own; SmolLM2 is a choice of the menu away.
DEFAULTS = ("tiny", "smollm2-135m")
MAX_CARD_BYTES = 256 * 1024
LONGEST_NAME = 80
POINTER = "pointer.json"


class UnknownModel(CheckpointError):
    """Neither a catalogue id nor a checkpoint folder."""

    code = "unknown-model"


class BrokenModel(CheckpointError):
    """A pointer to a folder that is gone or cannot be read."""

    code = "broken-model"


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue. problem: the sentence that says why it cannot be opened, None when it can."""

    id: str
    name: str
    folder: Path
    licence: str
    source: str
    about: str = ""
    family: str = ""
    bytes: int = 0
    problem: str | None = None

    def open(self) -> Checkpoint:
        """Open and check the checkpoint. Raises CheckpointError."""
        return open_checkpoint(self.folder)

    def tokens(self) -> Tokens:
        """The tokenizer. Raises TokenizerMissing, TokenizerBroken."""
        return load_tokenizer(self.folder)


def entries() -> list[Entry]:
    """All models, the project's own first, then the cache by name; an id of ours hides the same id in the cache."""
    found: dict[str, Entry] = {}
    for home in (OWN_MODELS, models_dir()):
        for id in sorted(_names(home)):
            if id not in found and is_id(id) and _looks_like_model(home / id):
                found[id] = _entry(id, home / id)
    return list(found.values())


def find(id: str) -> Entry | None:
    """The entry with this id, if there is one. OWNER/NAME finds what was pulled under that name."""
    wanted = id.replace("/", "--") if id.count("/") == 1 else id
    if not is_id(wanted):
        return None
    for home in (OWN_MODELS, models_dir()):
        if _looks_like_model(home / wanted):
            return _entry(wanted, home / wanted)
    return None


def resolve(model: str) -> Path:
    """The folder of a catalogue id, or of a folder given as a path. Raises UnknownModel, BrokenModel."""
    entry = find(model)
    if entry is not None:
        return _pointed_at(entry.folder) if (entry.folder / POINTER).exists() else entry.folder
    folder = os.path.expanduser(model)
    if os.path.isdir(folder):
        return Path(folder)
    known = ", ".join(entry.id for entry in entries()) or "none yet; 'playground pull smollm2-135m' brings one"
    raise UnknownModel(f"{quoted(model)} is neither a model nor a folder; models here: {known}.")


def open_model(model: str) -> Checkpoint:
    """resolve, then open_checkpoint."""
    return open_checkpoint(resolve(model))


def default_model() -> str:
    """The model the playground opens with: tiny, or where it is missing smollm2-135m, which may still have to come."""
    return next((id for id in DEFAULTS if find(id)), DEFAULTS[-1])


def _names(home: Path) -> list[str]:
    """Names of the folders in home; none when home is missing or closed to us."""
    try:
        return [item.name for item in os.scandir(home) if item.is_dir()]
    except OSError:
        return []


def _looks_like_model(folder: Path) -> bool:
    """Whether a folder is meant as a model, broken or not."""
    return any((folder / name).exists() for name in ("config.json", "card.json", POINTER))


def _entry(id: str, folder: Path) -> Entry:
    """Describe a folder; what is wrong with it goes into `problem`."""
    problem, family, size, home = None, "", 0, folder
    try:
        home = _pointed_at(folder) if (folder / POINTER).exists() else folder
        checkpoint = open_checkpoint(home)
        family = str(checkpoint.config.get("model_type", ""))[:40]
        size = sum(file.bytes for file in checkpoint.files)
    except CheckpointError as error:
        problem = error.message
    card = _card(folder / "card.json") or _card(home / "card.json")
    return Entry(
        id=id,
        name=card.get("name", id)[:LONGEST_NAME],
        folder=home,
        licence=card.get("licence", "not stated"),
        source=card.get("source", "a folder on this machine"),
        about=card.get("about", ""),
        family=family,
        bytes=size,
        problem=problem,
    )


def _pointed_at(folder: Path) -> Path:
    """The folder that a registered model points at. Raises BrokenModel."""
    target = _strings(folder / POINTER).get("folder")
    if not target or not os.path.isdir(target):
        raise BrokenModel(
            f"{quoted(folder.name)} points at {quoted(target or '', 200)}, which is not there; pull the folder again."
        )
    return Path(target)


def card_of(folder: Path) -> dict[str, str]:
    """The short strings of a folder's card.json."""
    return _card(folder / "card.json")


def _card(path: Path) -> dict[str, str]:
    """The short lines of a card; text that cannot be shown on a line says nothing."""
    return {key: value for key, value in _strings(path).items() if is_line(value)}


def _strings(path: Path) -> dict[str, str]:
    """The short strings of a JSON object in a file; an unreadable file has none."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= MAX_CARD_BYTES:
            card = json.loads(path.read_bytes())
            if isinstance(card, dict):
                return {key: value[:4096] for key, value in card.items() if isinstance(value, str)}
    return {}
