"""Buffers that are free for the next who needs one of that size: a prompt and its questions ask for the same again.

Holds at most HELD_BYTES, the longest unused go first. Their contents are whatever was left in them. Mirrored by
static/gpu/pool.js.
"""

from typing import Any

HELD_BYTES = 64 << 20


class Pool:
    """Free buffers of one device; a buffer is anything with `size` and `destroy`."""

    def __init__(self, most: int = HELD_BYTES) -> None:
        self.most, self.held_bytes = most, 0
        self.free: list[Any] = []  # in the order in which they became free

    def take(self, size_bytes: int) -> Any | None:
        """A free buffer of exactly this size, if there is one."""
        for index, buffer in enumerate(self.free):
            if buffer.size == size_bytes:
                self.held_bytes -= size_bytes
                return self.free.pop(index)
        return None

    def give(self, buffer: Any) -> None:
        """Keep a buffer that nobody uses any more, or free it."""
        self.free.append(buffer)
        self.held_bytes += buffer.size
        while self.held_bytes > self.most:
            oldest = self.free.pop(0)
            self.held_bytes -= oldest.size
            oldest.destroy()
