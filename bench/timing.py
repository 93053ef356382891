"""Time on the wall, ceilings, and the verdict that comes before both.

    ms        median over BATCHES of (submit R runs in one pass, wait for the device) / R; R fills about BATCH_MS
    min_ms    the fastest batch
    wait_ms   median of single runs, submit to the end of waiting: what one step of generation pays
No device timestamps: what a person waits for includes submitting. Compiling and the first run are not counted.
static/bench/timing.js mirrors this.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench import arguments
from bench.cases import CASES, Case, letters, tolerance, tried, used_variant, varied
from bench.errors import BadArguments, WrongResult
from webgpu.kernels import Kernels
from webgpu.ops import MAX_GROUPS, Dispatch, UnsupportedShape
from webgpu.trial import chosen
from webgpu.variants import UnknownVariant

BATCHES, BATCH_MS, MOST_RUNS = 5, 100.0, 100
SLOW_MS = 2000.0  # a run of this length is timed BATCHES_SLOW times only
BATCHES_SLOW = 3
FMA_TURNS, FMA_GROUPS, READ_BYTES, CEILING_MS = 512, 64, 64 << 20, 30.0


def timed(once: Callable[[], None]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    once()
    return (time.perf_counter() - start) * 1000


def times(submit: Callable[[int], None], fence: Callable[[], None]) -> dict[str, float]:
    """ms, min_ms, wait_ms and runs of a warm operation. submit(R): R runs in one pass."""

    def run(count: int) -> None:
        submit(count)
        fence()

    first = timed(lambda: run(1))
    runs = int(max(1, min(MOST_RUNS, BATCH_MS / max(first, 1e-3))))
    batches = BATCHES if first < SLOW_MS else BATCHES_SLOW
    each = [timed(lambda: run(runs)) / runs for _ in range(batches)]
    waits = [timed(lambda: run(1)) for _ in range(BATCHES)] if runs > 1 else each
    return {"ms": statistics.median(each), "min_ms": min(each), "wait_ms": statistics.median(waits), "runs": runs}


def fma_gflops(kernels: Kernels) -> float:
    """Arithmetic ceiling: 12 independent scalar chains, unrolled 16; as many invocations as fill 30 ms."""
    groups = FMA_GROUPS
    while True:
        out = kernels.buffer(4 * 64 * groups)
        params = {"turns": FMA_TURNS, "a": 0.5, "b": 0.25}
        dispatch = Dispatch("ceiling_fma", {}, params, (groups, 1, 1), {"out": "out"})
        best = best_ms(kernels, dispatch, {"out": out})
        out.destroy()
        if best >= CEILING_MS or groups * 4 > MAX_GROUPS:
            return groups * 64 * 384 * FMA_TURNS / best / 1e6
        groups *= 4


def read_gbs(kernels: Kernels) -> float:
    """Memory ceiling: 64 MiB read once in order."""
    groups = READ_BYTES // 16 // 4096
    buffers = {"x": kernels.buffer(READ_BYTES), "out": kernels.buffer(4 * 64 * groups)}
    dispatch = Dispatch("ceiling_read", {}, {"count": READ_BYTES // 16}, (groups, 1, 1), {"x": "x", "out": "out"})
    best = best_ms(kernels, dispatch, buffers)
    for buffer in buffers.values():
        buffer.destroy()
    return READ_BYTES / best / 1e6


def best_ms(kernels: Kernels, dispatch: Dispatch, buffers: Mapping[str, Any]) -> float:
    """Fastest of five warm runs: a ceiling is what the device can do undisturbed."""

    def once() -> None:
        kernels.run([dispatch], buffers)
        kernels.fence()

    once()
    return min(timed(once) for _ in range(5))


def ceilings(kernels: Kernels) -> dict[str, float]:
    """Both ceilings of this device, measured now."""
    return {"fma_gflops": fma_gflops(kernels), "read_gbs": read_gbs(kernels)}


def measure(kernels: Kernels, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check one operation against float64, time it, set it beside the ceilings; README.md explains the fields.

    Without a variant the product's trial chooses, as it does for a model.
    Raises BadArguments, WrongResult, DeviceError or KernelError.
    """
    asked = arguments.read(given)
    if asked["op"] not in CASES:
        raise BadArguments(f"{asked['op']} needs a model; this measures single operations.")
    try:
        asked["variant"] = asked["variant"] or chosen(kernels, varied(asked), letters(asked))
        asked["variant"] = used_variant(asked)
        case = CASES[asked["op"]](asked)
    except (UnsupportedShape, UnknownVariant) as error:
        raise BadArguments(str(error)) from error
    buffers = {name: kernels.upload(array) for name, array in case.inputs.items()}
    buffers |= {name: kernels.buffer(size) for name, size in case.scratch.items()}
    for name, (dtype, shape) in case.outputs.items():  # what stays unwritten must not pass for a result
        first = 0 if case.zeroed else np.nan if dtype == "float32" else 0xFFFFFFFF
        buffers[name] = kernels.upload(np.full(shape, first, dtype))
    try:
        kernels.run(case.dispatches, buffers)
        judged(kernels, asked, case, buffers)
        found = times(lambda count: kernels.run(case.dispatches * count, buffers), kernels.fence)
        error = judged(kernels, asked, case, buffers)  # and after all runs: a race need not show on the first
    finally:
        for buffer in buffers.values():
            buffer.destroy()
    here = {"tried": tried(asked, kernels.device), "adapter": kernels.device.words}
    return report(asked, case, found, error, ceilings(kernels)) | here


def judged(kernels: Kernels, asked: Mapping[str, Any], case: Case, buffers: Mapping[str, Any]) -> float:
    """The result's error; WrongResult beyond what the variant is held to."""
    allowed = tolerance(asked)
    error = case.judge({name: kernels.read(buffers[name], *what) for name, what in case.outputs.items()})
    if not error <= allowed:
        raise WrongResult(
            f"{asked['op']} ({case.words}) is wrong on {kernels.device.words}: error {error:.1e}, "
            f"allowed {allowed:.0e}; a wrong kernel has no speed."
        )
    return error


def report(asked: Mapping, case: Case, found: Mapping, error: float, limits: Mapping) -> dict[str, Any]:
    """The answer's fields that no device has a say in, the same in the page."""
    gflops, gbs = case.flops / found["ms"] / 1e6, case.bytes / found["ms"] / 1e6
    kernels = list(dict.fromkeys(dispatch.kernel for dispatch in case.dispatches))
    return {
        "op": asked["op"], "shape": case.words, "variant": asked["variant"], "kernels": kernels, **found,
        "gflops": gflops, "gbs": gbs, "max_error": error, "tolerance": tolerance(asked), "checked": case.checked,
        "ceilings": dict(limits), "of_fma": gflops / limits["fma_gflops"], "of_read": gbs / limits["read_gbs"],
    }  # fmt: skip
