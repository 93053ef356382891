"""Where models lie: the repository's own folder, and a cache per user that `pull` writes.

weights/<id>/                                 committed with the project
$PLAYGROUND_CACHE or ~/.cache/attention-playground
    models/<id>/                              complete models only: a folder gets its name when all of it is there
    downloads/                                unfinished downloads, kept so that the next pull goes on
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from weights.errors import CheckpointError, quoted

OWN_MODELS = Path(__file__).resolve().parent
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class BadModelId(CheckpointError):
    """A catalogue id is a short plain name."""

    code = "bad-model-id"


def cache_dir() -> Path:
    """The user's cache folder; not created here."""
    chosen = os.environ.get("PLAYGROUND_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "attention-playground"


def models_dir() -> Path:
    """Where pulled models lie."""
    return cache_dir() / "models"


def downloads_dir() -> Path:
    """Where unfinished downloads lie."""
    return cache_dir() / "downloads"


def is_id(text: str) -> bool:
    """Whether text can be a catalogue id: a plain name, never a path."""
    return bool(_ID.fullmatch(text)) and ".." not in text


def checked_id(text: str) -> str:
    """The id itself. Raises BadModelId."""
    if not is_id(text):
        raise BadModelId(f"{quoted(text)} is not a model id; ids are letters, digits, '.', '_' and '-', 96 at most.")
    return text


@contextlib.contextmanager
def new_model_folder(id: str) -> Iterator[Path]:
    """A temporary folder that becomes models/<id> when the block ends well, and disappears when it does not.

    An older models/<id> is replaced; a reader sees the old folder or the new one, never half of either.
    """
    home = models_dir()
    home.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".pull-", dir=home))
    try:
        yield temporary
        temporary.chmod(0o755)
        final = home / checked_id(id)
        if final.is_symlink() or final.is_file():
            final.unlink()
        elif final.exists():
            final.rename(temporary.with_name(temporary.name + "-old"))
        temporary.rename(final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(temporary.with_name(temporary.name + "-old"), ignore_errors=True)


def sweep() -> None:
    """Remove what a pull that was killed left half written. Call it only while holding `pull_lock`."""
    for leftover in models_dir().glob(".pull-*"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def pull_lock() -> Iterator[bool]:
    """One pull at a time: yields whether this process holds the lock. The lock ends with the process."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "pull.lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # Windows: two pulls at once waste a download but both end well, by the rename
            yield True
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
