"""Fetch one file over HTTP so that an interrupted download goes on where it stopped.

The bytes go to `<target>.part`, and a retry asks for the rest with Range. If-Range is not needed: the whole is checked
against its SHA-256 before it gets its name. Left out on purpose: parallel ranges, mirrors.
"""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from weights.errors import CheckpointError

Progress = Callable[[int, int, str], None]
CHUNK_BYTES = 1 << 20
ATTEMPTS = 5
TIMEOUT_S = 30


class PullError(CheckpointError):
    """A pull that could not be completed; nothing half written is left."""

    code = "pull"


class DownloadFailed(PullError):
    """The network gave out; what was fetched is kept."""

    code = "download-failed"


class WrongHash(PullError):
    """The bytes are not the ones expected; they were thrown away."""

    code = "wrong-hash"


def quiet(done_bytes: int, total_bytes: int, words: str) -> None:
    """A progress callback that shows nothing."""


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(url: str, target: Path, sha256: str, words: str, progress: Progress = quiet, wait_s: float = 1.0) -> Path:
    """Fetch url into target, going on from target.part where there is one.

    Raises DownloadFailed after ATTEMPTS tries that brought nothing new, WrongHash when the whole is not as expected.
    """
    if target.exists() and sha256_of(target) == sha256:
        return target
    part = target.with_name(target.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    failures, reason = 0, "no answer"
    while failures < ATTEMPTS:
        before = part.stat().st_size if part.exists() else 0
        try:
            _go_on(url, part, before, words, progress)
            break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", "") or error or type(error).__name__)
            grew = part.exists() and part.stat().st_size > before
            failures = 1 if grew else failures + 1
            time.sleep(wait_s * failures)
    else:
        raise DownloadFailed(f"{words} stopped: {reason}; what was fetched is kept, so run the same command again.")
    if sha256_of(part) != sha256:
        part.unlink()
        raise WrongHash(f"{words}: the file is not the one expected (SHA-256 differs); it was removed, try again.")
    part.rename(target)
    return target


def _go_on(url: str, part: Path, have: int, words: str, progress: Progress) -> None:
    """Append what is missing to part. A server that ignores Range sends everything: begin anew."""
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing left to send, or a part longer than the file: the hash tells which
            error.close()
            return
        raise
    with answer:
        resumed = answer.status == 206
        done = have if resumed else 0
        total = done + int(answer.headers.get("Content-Length") or 0)
        with part.open("ab" if resumed else "wb") as file:
            progress(done, total, words)
            while chunk := answer.read(CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                progress(done, total, words)
        if done < total:
            raise ConnectionError(f"the connection ended {total - done} bytes early")
