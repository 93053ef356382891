"""Time on the wall, beside ceilings, and the verdict that comes before both.

    reading   ms: (submit R runs in one pass, wait for the device) / R; R fills about BATCH_MS
              wait_ms: one run alone, submit to the end of waiting: what one step of generation pays
              fma_gflops, read_gbs: the ceilings, of arithmetic the mean of just before and just after
    report    medians of the readings; of_fma and of_read medians of the readings' own shares
A decode is a layer's part of a token, which waits once for all its layers, so R is LEAST_RUNS there even where one
takes longer. No device timestamps: what a person waits for includes submitting. Compiling and the first run are not
counted. static/bench/timing.js mirrors this.
"""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench import arguments
from bench.cases import CASES, Case, letters, tolerance, tried, used_variant, varied
from bench.ceilings import Ceilings, timed
from bench.errors import BadArguments, WrongResult
from bench.turns import by_turns, summary
from webgpu.kernels import Kernels
from webgpu.ops import UnsupportedShape
from webgpu.trial import chosen
from webgpu.variants import UnknownVariant

BATCH_MS, MOST_RUNS = 100.0, 100
LEAST_RUNS = {"decode": 3}


def runs_in_a_row(run: Callable[[int], None], least: int = 1) -> int:
    """R of a warm operation: as many as fill BATCH_MS, by the median of three where one run is short."""
    each = [timed(lambda: run(1))]
    if each[0] < 2 * BATCH_MS:
        each += [timed(lambda: run(1)) for _ in range(2)]
    return int(max(least, min(MOST_RUNS, BATCH_MS / max(statistics.median(each), 1e-3))))


def reading(run: Callable[[int], None], runs: int) -> dict[str, float]:
    """One batch and one run alone."""
    ms = timed(lambda: run(runs)) / runs
    return {"ms": ms, "wait_ms": timed(lambda: run(1)) if runs > 1 else ms}


class Measurement:
    """One operation, right and warm: turns are taken, then comes its report; free() in any case.

    Without a variant the product's trial chooses, as it does for a model.
    Raises BadArguments, WrongResult, DeviceError or KernelError.
    """

    def __init__(self, kernels: Kernels, given: Mapping[str, Any]) -> None:
        self.kernels, self.readings = kernels, []
        self.asked, self.case = prepared(kernels, given)
        self.buffers = upload(kernels, self.case)
        self.ceilings = None
        try:
            self.run(1)
            judged(kernels, self.asked, self.case, self.buffers)
            self.runs = runs_in_a_row(self.run, LEAST_RUNS.get(self.asked["op"], 1))
            self.ceilings = Ceilings(kernels)
        except BaseException:
            self.free()
            raise

    @property
    def which(self) -> dict[str, Any]:
        """The variant that runs, and those among which the product chooses here."""
        return {"variant": self.asked["variant"], "tried": tried(self.asked, self.kernels.device)}

    def run(self, count: int) -> None:
        """`count` runs in one pass, waited for."""
        self.kernels.run(self.case.dispatches * count, self.buffers)
        self.kernels.fence()

    def turn(self) -> dict[str, float]:
        """One reading, with the ceilings around it."""
        before = self.ceilings.fma_gflops()
        found = reading(self.run, self.runs)
        limits = {"fma_gflops": (before + self.ceilings.fma_gflops()) / 2, "read_gbs": self.ceilings.read_gbs()}
        self.readings.append(found | limits)
        return self.readings[-1]

    def report(self) -> dict[str, Any]:
        """The fields that README.md explains; judged again, since a race need not show on the first run."""
        error = judged(self.kernels, self.asked, self.case, self.buffers)
        here = {**self.which, "runs": self.runs, "adapter": self.kernels.device.words}
        return report(self.asked, self.case, self.readings, error) | here

    def free(self) -> None:
        """Give the buffers back."""
        for buffer in self.buffers.values():
            buffer.destroy()
        if self.ceilings:
            self.ceilings.free()


def measure(kernels: Kernels, given: Mapping[str, Any]) -> dict[str, Any]:
    """One operation alone, in as many rounds as it takes to be steady. Raises as Measurement does."""
    found = Measurement(kernels, given)
    try:
        by_turns(found.turn, {})
        return found.report()
    finally:
        found.free()


def prepared(kernels: Kernels, given: Mapping[str, Any]) -> tuple[dict[str, Any], Case]:
    """What is asked, with the variant that will run, and its case."""
    asked = arguments.read(given)
    if asked["op"] not in CASES:
        raise BadArguments(f"{asked['op']} needs a model; this measures single operations.")
    try:
        asked["variant"] = asked["variant"] or chosen(kernels, varied(asked), letters(asked))
        asked["variant"] = used_variant(asked)
        return asked, CASES[asked["op"]](asked)
    except (UnsupportedShape, UnknownVariant) as error:
        raise BadArguments(str(error)) from error


def upload(kernels: Kernels, case: Case) -> dict[str, Any]:
    """Buffers by name; what stays unwritten must not pass for a result."""
    buffers = {name: kernels.upload(array) for name, array in case.inputs.items()}
    buffers |= {name: kernels.buffer(size) for name, size in case.scratch.items()}
    for name, (dtype, shape) in case.outputs.items():
        first = 0 if case.zeroed else np.nan if dtype == "float32" else 0xFFFFFFFF
        buffers[name] = kernels.upload(np.full(shape, first, dtype))
    return buffers


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


def report(asked: Mapping, case: Case, readings: list, error: float) -> dict[str, Any]:
    """The answer's fields that no device has a say in, the same in the page."""
    took = summary(readings)
    speeds = {"fma_gflops": case.flops / 1e6, "read_gbs": case.bytes / 1e6}  # per ms

    def median(of: Callable[[Mapping], float]) -> float:
        return statistics.median(map(of, readings))

    limits = {name: median(lambda each, name=name: each[name]) for name in speeds}
    shares = {name: median(lambda each, name=name: speeds[name] / each["ms"] / each[name]) for name in speeds}
    return {
        "op": asked["op"], "shape": case.words, "variant": asked["variant"],
        "kernels": list(dict.fromkeys(dispatch.kernel for dispatch in case.dispatches)), **took,
        "gflops": speeds["fma_gflops"] / took["ms"], "gbs": speeds["read_gbs"] / took["ms"],
        "max_error": error, "tolerance": tolerance(asked), "checked": case.checked, "ceilings": limits,
        "of_fma": shares["fma_gflops"], "of_read": shares["read_gbs"], "readings": readings,
    }  # fmt: skip
