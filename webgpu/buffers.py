"""Named GPU buffers that are made and freed together."""

from collections.abc import Iterable, Mapping

import wgpu

from webgpu.kernels import Kernels


class Buffers(dict[str, wgpu.GPUBuffer]):
    """Buffers by name. `Buffers.live` counts those made and not freed yet, over all models: a test watches it."""

    live = 0

    def __init__(self, kernels: Kernels, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.kernels = kernels
        self.make(sizes)

    def make(self, sizes: Mapping[str, int]) -> None:
        """Create those that are not there yet. sizes: name -> bytes."""
        for name, size in sizes.items():
            if name not in self:
                self[name] = self.kernels.buffer(size, name)
                Buffers.live += 1

    def destroy(self, names: Iterable[str] | None = None) -> None:
        """Free some of them, or all."""
        for name in list(self if names is None else names):
            self.pop(name).destroy()
            Buffers.live -= 1
