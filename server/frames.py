"""How the server and the oracle's process talk over pipes: length-prefixed frames.

A frame is 8 bytes, the payload's length as an unsigned little-endian integer, and then the payload. A question is one
frame of JSON. An answer is one frame of JSON, {"ok": true} followed by a second frame with safetensors bytes, or
{"ok": false, "code", "message"} alone.
"""

import asyncio
import json
import struct
from typing import BinaryIO

_LENGTH = struct.Struct("<Q")


def pack(payload: bytes) -> bytes:
    """One frame."""
    return _LENGTH.pack(len(payload)) + payload


def pack_json(value: object) -> bytes:
    """One frame of JSON."""
    return pack(json.dumps(value).encode())


def read_frame(pipe: BinaryIO) -> bytes | None:
    """The next frame of a blocking pipe, None at its end. Raises EOFError when it ends inside a frame."""
    head = pipe.read(_LENGTH.size)
    if not head:
        return None
    payload = pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
    if len(head) < _LENGTH.size or len(payload) < _LENGTH.unpack(head)[0]:
        raise EOFError("the pipe ended inside a frame")
    return payload


async def receive_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame of an asyncio pipe. Raises asyncio.IncompleteReadError when the other side is gone."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
