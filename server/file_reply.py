"""Send one file, whole or one byte range of it (RFC 9110, sections 13 and 14).

Left out on purpose: several ranges in one answer. A request for more than one range, or a Range header that makes
no sense, is answered with the whole file, which the RFC allows; a single range beyond the end is 416.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from server.errors import RangeNotSatisfiable

CHUNK_BYTES = 256 * 1024
_ONE_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.IGNORECASE | re.ASCII)


def file_reply(request: Request, path: Path, *, etag: str, media_type: str, cache_control: str) -> Response:
    """Answer GET or HEAD with the file at `path`.

    etag: strong, with its quotes. Honours If-None-Match (304), Range (206) and If-Range; raises RangeNotSatisfiable.
    """
    size_bytes = path.stat().st_size
    headers = {"ETag": etag, "Cache-Control": cache_control, "Accept-Ranges": "bytes"}
    if _names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    start, stop = 0, size_bytes
    wanted = _wanted_range(request.headers, size_bytes, etag)
    if wanted:
        start, stop = wanted
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size_bytes}"
    headers["Content-Length"] = str(stop - start)
    status = 206 if wanted else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=media_type)
    return StreamingResponse(_chunks(path, start, stop), status, headers=headers, media_type=media_type)


def _names(if_none_match: str, etag: str) -> bool:
    """Whether an If-None-Match list names this tag; the comparison is weak (RFC 9110, 13.1.2)."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]


def _wanted_range(headers: Headers, size_bytes: int, etag: str) -> tuple[int, int] | None:
    """The half-open byte range asked for, or None for the whole file. Raises RangeNotSatisfiable."""
    if headers.get("if-range", etag) != etag:  # a date, a weak or an old tag: send the whole new file
        return None
    match = _ONE_RANGE.fullmatch(headers.get("range", ""))
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:  # the last n bytes
        start, stop = max(0, size_bytes - int(match[2])), size_bytes
    else:
        start = int(match[1])
        stop = min(int(match[2]) + 1, size_bytes) if match[2] else size_bytes
        if match[2] and int(match[2]) < start:  # backwards: not a range at all
            return None
    if start >= size_bytes or start >= stop:
        raise RangeNotSatisfiable(
            f"The file has {size_bytes} bytes and the range asked for lies beyond them.",
            headers={"Content-Range": f"bytes */{size_bytes}"},
        )
    return start, stop


async def _chunks(path: Path, start: int, stop: int) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as file:
        await file.seek(start)
        while start < stop:
            chunk = await file.read(min(CHUNK_BYTES, stop - start))
            if not chunk:  # the file shrank while it was sent: break off, never pad
                raise OSError(f"{path.name} became shorter while it was being sent")
            start += len(chunk)
            yield chunk
