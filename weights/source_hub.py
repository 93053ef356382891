"""A model from a model hub, by OWNER/NAME, with the library `huggingface_hub`.

Only config, tokenizer and safetensors files are asked for, of one fixed revision. The config is fetched first: a family
that cannot be run exactly is refused before its weights travel. Large files are checked against the SHA-256 that the
hub states. The library keeps unfinished files, so that the next pull goes on. Left out on purpose: pickled weights.
"""

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from weights.checkpoint import open_checkpoint
from weights.download import DownloadFailed, Progress, PullError, WrongHash, sha256_of
from weights.errors import quoted
from weights.places import checked_id, downloads_dir, new_model_folder
from weights.strict_json import parse_object

SMALL = ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "LICENSE*"]
WEIGHTS = ["model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json"]
POLL_S = 0.5
# Class names in huggingface_hub, httpx and requests, whichever of the two the installed version uses.
NETWORK_ERRORS = {"OfflineModeIsEnabled", "LocalEntryNotFoundError", "HfHubHTTPError", "HTTPError", "RequestException"}
NETWORK_ERRORS |= {"TransportError", "ConnectionError", "TimeoutError"}


class HubModelMissing(PullError):
    """The hub has no such model, or does not show it to us."""

    code = "hub-model-missing"


def pull_hub(name: str, progress: Progress, check_config: Callable[[dict], object]) -> Path:
    """Fetch OWNER/NAME and place it; its folder. Raises HubModelMissing, DownloadFailed, WrongHash, CheckpointError."""
    id = checked_id(name.replace("/", "--"))
    progress(0, 0, f"Asking for {name}")
    info = _ask(name)
    place = downloads_dir() / f"hub-{id}-{info.sha[:12]}"
    _snapshot(name, info.sha, place, SMALL)
    config = place / "config.json"
    if not config.is_file():
        raise HubModelMissing(f"{name} has no config.json; only checkpoints with config and safetensors can be pulled.")
    check_config(parse_object(config.read_bytes(), "config", max_depth=16))
    total = _total_bytes(info)
    with _watched(place, total, f"Fetching {name}", progress):
        _snapshot(name, info.sha, place, SMALL + WEIGHTS)
    _check_hashes(info, place, progress)
    with new_model_folder(id) as folder:
        for path in sorted(place.iterdir()):
            if path.is_file():
                path.rename(folder / path.name)
        open_checkpoint(folder)
        (folder / "card.json").write_text(json.dumps(_card(id, name, info), indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    return folder.with_name(id)


def _ask(name: str):
    """The hub's description of a model: revision, files, sizes, hashes."""
    from huggingface_hub import HfApi

    with _in_words(name):
        return HfApi().model_info(name, files_metadata=True)


def _snapshot(name: str, revision: str, place: Path, patterns: list[str]) -> None:
    """Bring the files that match into place, going on from what is there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    with _in_words(name):
        snapshot_download(name, revision=revision, local_dir=place, allow_patterns=patterns)


@contextlib.contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Turn the library's exceptions into one sentence each; they differ between its versions, so names are compared."""
    try:
        yield
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if isinstance(error, PullError):
            raise
        if kinds & {"GatedRepoError"}:
            raise HubModelMissing(
                f"{name} asks for an agreement; accept it on its page and log in with `hf auth login`."
            ) from None
        if kinds & {"RepositoryNotFoundError", "RevisionNotFoundError", "HFValidationError"}:
            raise HubModelMissing(f"There is no model {quoted(name)} on the hub, or it is private.") from None
        if not kinds & NETWORK_ERRORS:
            raise
        raise DownloadFailed(
            f"Fetching {name} stopped: the model hub cannot be reached ({type(error).__name__}). "
            "What was fetched is kept; check the connection, then run the same command again."
        ) from None


def _wanted(info) -> list:
    """The files of the hub's description that are fetched."""
    from fnmatch import fnmatch

    return [file for file in info.siblings if any(fnmatch(file.rfilename, pattern) for pattern in SMALL + WEIGHTS)]


def _total_bytes(info) -> int:
    """Bytes of the files to fetch. Raises HubModelMissing when there are no safetensors among them."""
    files = _wanted(info)
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise HubModelMissing(f"{info.id} has no safetensors weights; other formats are not read.")
    return sum(file.size or 0 for file in files)


@contextlib.contextmanager
def _watched(place: Path, total_bytes: int, words: str, progress: Progress) -> Iterator[None]:
    """Report while the block runs how many bytes have arrived; the library has no stable way to be told."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            arrived = 0
            for path in place.rglob("*"):
                with contextlib.suppress(OSError):
                    arrived += path.stat().st_blocks * 512 if path.suffix == ".incomplete" else path.stat().st_size
            progress(min(arrived, total_bytes), total_bytes, words)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    progress(total_bytes, total_bytes, words)


def _check_hashes(info, place: Path, progress: Progress) -> None:
    """Compare large files with the SHA-256 that the hub states; a wrong one is removed."""
    for file in _wanted(info):
        path = place / file.rfilename
        expected = getattr(file.lfs, "sha256", None) if file.lfs else None
        if not expected or not path.is_file():
            continue
        progress(0, 0, f"Checking {file.rfilename}")
        if sha256_of(path) != expected:
            path.unlink()
            raise WrongHash(
                f"{file.rfilename} is not the file the hub names (SHA-256 differs); it was removed, try again."
            )


def _card(id: str, name: str, info) -> dict:
    """card.json of a hub model."""
    licence = getattr(info.card_data, "license", None) if info.card_data else None
    return {
        "id": id,
        "name": name,
        "licence": str(licence or "not stated"),
        "source": f"model hub, {name}, revision {info.sha}",
    }
