"""What the device can do at most, read between the batches of a kernel: multiply-adds, and bytes in order.

    fma_gflops    12 independent scalar chains, unrolled 16, as many invocations as fill CEILING_MS
    read_gbs      64 MiB read once in order
A reading is one run and one wait, as a kernel's is: what is compared is measured alike, in the same minute.
static/bench/ceilings.js mirrors this.
"""

import statistics
import time
from collections.abc import Callable

from webgpu.kernels import Kernels
from webgpu.ops import MAX_GROUPS, Dispatch

FMA_TURNS, FMA_GROUPS, READ_BYTES, CEILING_MS = 512, 64, 64 << 20, 30.0
READINGS = 5


def timed(once: Callable[[], None]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    once()
    return (time.perf_counter() - start) * 1000


class Ceilings:
    """Both ceilings of a device, compiled and warm; free() when no more is read."""

    def __init__(self, kernels: Kernels) -> None:
        groups = READ_BYTES // 16 // 4096
        self.kernels, self.groups = kernels, FMA_GROUPS
        self.buffers = {"x": kernels.buffer(READ_BYTES), "sums": kernels.buffer(4 * 64 * groups)}
        bindings = {"x": "x", "out": "sums"}
        self.reading = Dispatch("ceiling_read", {}, {"count": READ_BYTES // 16}, (groups, 1, 1), bindings)
        self._run(self.reading)
        self._fill()

    def _fill(self) -> None:
        """Let the chains fill CEILING_MS."""
        while True:
            self.buffers["out"] = self.kernels.buffer(4 * 64 * self.groups)
            params = {"turns": FMA_TURNS, "a": 0.5, "b": 0.25}
            self.chains = Dispatch("ceiling_fma", {}, params, (self.groups, 1, 1), {"out": "out"})
            self._run(self.chains)
            if timed(lambda: self._run(self.chains)) >= CEILING_MS or self.groups * 4 > MAX_GROUPS:
                return
            self.buffers["out"].destroy()
            self.groups *= 4

    def _run(self, dispatch: Dispatch) -> None:
        self.kernels.run([dispatch], self.buffers)
        self.kernels.fence()

    def fma_gflops(self) -> float:
        """One reading of the arithmetic ceiling."""
        return self.groups * 64 * 384 * FMA_TURNS / timed(lambda: self._run(self.chains)) / 1e6

    def read_gbs(self) -> float:
        """One reading of the memory ceiling."""
        return READ_BYTES / timed(lambda: self._run(self.reading)) / 1e6

    def free(self) -> None:
        for buffer in self.buffers.values():
            buffer.destroy()


def ceilings(kernels: Kernels) -> dict[str, float]:
    """Both, measured now: medians of a few readings."""
    both = Ceilings(kernels)
    try:
        fma, read = ([one() for _ in range(READINGS)] for one in (both.fma_gflops, both.read_gbs))
        return {"fma_gflops": statistics.median(fma), "read_gbs": statistics.median(read)}
    finally:
        both.free()
