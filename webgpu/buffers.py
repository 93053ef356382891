"""Named GPU buffers that are made and freed together, from the device's pool of free ones and back into it."""

from collections.abc import Iterable, Mapping

import wgpu

from webgpu.kernels import Kernels
from webgpu.pieces import padded


class Buffers(dict[str, wgpu.GPUBuffer]):
    """Buffers by name; a new one holds whatever was left in it.

    `Buffers.live` and `Buffers.live_bytes` count those made and not freed yet, over all models: a test watches them.
    pooled=False: for weights, which are made once and too large to keep.
    """

    live = 0
    live_bytes = 0

    def __init__(self, kernels: Kernels, sizes: Mapping[str, int], pooled: bool = True) -> None:
        super().__init__()
        self.kernels, self.pooled = kernels, pooled
        self.make(sizes)

    def make(self, sizes: Mapping[str, int]) -> None:
        """Create those that are not there yet. sizes: name -> bytes."""
        for name, size in sizes.items():
            if name not in self:
                free = self.kernels.pool.take(padded(size)) if self.pooled else None
                self[name] = free or self.kernels.buffer(size, name)
                Buffers.live += 1
                Buffers.live_bytes += self[name].size

    def destroy(self, names: Iterable[str] | None = None) -> None:
        """Free some of them, or all."""
        for name in list(self if names is None else names):
            buffer = self.pop(name)
            Buffers.live -= 1
            Buffers.live_bytes -= buffer.size
            if self.pooled:
                self.kernels.pool.give(buffer)
            else:
                buffer.destroy()
