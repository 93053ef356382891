"""Which variant is fastest here: each is compiled, run once, and timed for about 50 ms; the answer is remembered.

Mirrors static/gpu/trial.js, which the page calls when the first prompt is drawn. What is remembered is bound to the
device's name, the sizes, the weights' format and the text of the kernels, so that a new kernel is tried again. A wrong
kernel has no speed: a variant whose numbers are not those of the first one is out. Left out on purpose: variants of
windows, norms and the lens.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from webgpu.attention import attention, attention_scratch
from webgpu.buffers import Buffers
from webgpu.config import Config
from webgpu.device import Device
from webgpu.dispatch import NONE, Dispatch
from webgpu.kernels import FOLDER, Kernels
from webgpu.ops import matmul
from webgpu.pieces import Placed, padded, row_bytes
from webgpu.variants import first_choice, pick, to_try

TRIAL_MS = 50
# Tokens, cached tokens and how often in one submit: the wait for a submit is longer than one short dispatch on a GPU.
ATTENTION = {"attention": (256, 0, 1), "decode": (1, 1023, 8)}
# Tokens and how often in one submit. A prompt of many tokens and one of few run on the same choice.
PRODUCTS = {"matmul": ((64, 2), (8, 4)), "matvec": ((1, 32),)}
MOST_WEIGHT_BYTES = 8 << 20
# Share of the largest number: f16 storage rounds to 0.0005 of it, a wrong kernel is off by its own numbers.
DISAGREE = 0.004


@dataclass(frozen=True)
class Work:
    """What is timed. sizes: bytes by buffer; answers: those that are written; dispatches: variant -> what runs."""

    sizes: Mapping[str, int]
    answers: tuple[str, ...]
    dispatches: Callable[[str], list[Dispatch]]


def sizes_of(config: Config, placed: Mapping[str, Placed]) -> dict[str, int]:
    """What a trial has to know of a model: heads, widths, and the storage format of its products."""
    fmt = placed["model.layers.0.mlp.gate_proj.weight"].fmt
    return {"N": config.N, "K": config.K, "H": config.H, "D": config.D, "F": config.F, "fmt": fmt}


def tries(device: Device) -> bool:
    """Whether a model tries variants on this device.

    Where a CPU stands in for a GPU the first choice is the measured one, and a trial would take the time of a prompt.
    """
    return not device.software


def candidates(operation: str, device: Device, sizes: Mapping[str, int]) -> list[str]:
    """The variants among which a model chooses on this device, in order; sizes: letters of webgpu/variants.py.

    Where nothing is tried, or of an operation that no trial times, it is the one that a model begins with.
    """
    if tries(device) and operation in (*ATTENTION, *PRODUCTS):
        return to_try(operation, device.features, device.software, **sizes)
    return [pick(operation, first_choice(device.features, device.software).get(operation), **sizes)]


def chosen(
    kernels: Kernels, operation: str, sizes: Mapping[str, int], now: Callable[[], float] = time.perf_counter
) -> str:
    """The one that a model takes: the fastest of its candidates, timed now if there are several. now: seconds."""
    names = candidates(operation, kernels.device, sizes)
    return _fastest(kernels, _work(operation, sizes), names, now) if len(names) > 1 else names[0]


def try_variants(
    kernels: Kernels,
    sizes: Mapping[str, int],
    *,
    memory: Path | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, str]:
    """The fastest variant of attention and products on this device: operation -> name.

    sizes: as sizes_of gives them; rows that are not multiples of 8 have one product only, which is not tried.
    memory: a JSON file of earlier answers, written anew; one that cannot be read counts as empty. now: seconds.
    """
    known = _recall(memory)
    choice = {}
    for operation in (*ATTENTION, *(() if sizes["D"] % 8 else PRODUCTS)):
        names = to_try(operation, kernels.device.features, kernels.device.software, **sizes)
        key = _key(kernels, operation, sizes, names)
        if known.get(key) not in names:
            known[key] = _fastest(kernels, _work(operation, sizes), names, now) if len(names) > 1 else names[0]
        choice[operation] = known[key]
    if memory is not None:
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    return choice


def _recall(memory: Path | None) -> dict:
    try:
        known = json.loads(memory.read_text("utf-8")) if memory is not None else {}
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _work(operation: str, sizes: Mapping[str, int]) -> Work:
    return _attention(operation, sizes) if operation in ATTENTION else _product(operation, sizes)


def _attention(operation: str, sizes: Mapping[str, int]) -> Work:
    T, offset, times = ATTENTION[operation]
    S, N, K, H = offset + T, sizes["N"], sizes["K"], sizes["H"]
    scratch = attention_scratch(T=T, S=S, N=N, H=H)
    buffers = {"q": 4 * T * N * H, "k": 4 * S * K * H, "v": 4 * S * K * H, "o": 4 * T * N * H, "lse": 4 * N * T}
    rest = {"T": T, "S": S, "N": N, "K": K, "H": H, "offset": offset, "window": 0, "sinks": 0, "scale": 0.25}
    return Work(
        buffers | {"part": scratch},
        ("o", "lse"),
        lambda name: attention("q", "k", "v", "o", "lse", scratch="part", variant=name, **rest) * times,
    )


def _product(operation: str, sizes: Mapping[str, int]) -> Work:
    """From the model's width to that of its MLP, or fewer columns where that would be a very large matrix."""
    d_in, fmt = sizes["D"], sizes["fmt"]
    wide, scales_wide = row_bytes(fmt, d_in)
    d_out = min(sizes["F"], MOST_WEIGHT_BYTES // wide)
    buffers, rest = {"w": wide * d_out, "scales": scales_wide * d_out}, {"d_in": d_in, "d_out": d_out, "fmt": fmt}
    for T, _ in PRODUCTS[operation]:
        buffers |= {f"x{T}": 4 * T * d_in, f"out{T}": 4 * T * d_out}

    def dispatches(name: str) -> list[Dispatch]:
        scales = "scales" if scales_wide else NONE
        each = [
            (matmul(f"x{T}", "w", None, f"out{T}", T=T, scales=scales, variant=name, **rest), times)
            for T, times in PRODUCTS[operation]
        ]
        return [dispatch for dispatch, times in each for _ in range(times)]

    return Work(buffers, tuple(f"out{T}" for T, _ in PRODUCTS[operation]), dispatches)


def _fastest(kernels: Kernels, work: Work, names: list[str], now: Callable) -> str:
    buffers = Buffers(kernels, work.sizes, pooled=False)
    try:
        for name, size in work.sizes.items():
            kernels.write(buffers[name], _numbers(size))
        right, times = None, {}
        for name in names:
            dispatches = work.dispatches(name)
            kernels.run(dispatches, buffers)
            given = [kernels.read(buffers[each], "float32", (work.sizes[each] // 4,)) for each in work.answers]
            right = given if right is None else right
            if all(_agree(ours, theirs) for ours, theirs in zip(given, right, strict=True)):
                times[name] = _timed(kernels, dispatches, buffers, now)
    finally:
        buffers.destroy()
    return min(times, key=times.__getitem__, default=names[0])


def _numbers(size_bytes: int) -> np.ndarray:
    """Words that are numbers in every format: halves of 1 to 2, singles of 1/128 to 2, of both signs."""
    words = np.random.default_rng(size_bytes).integers(0, 1 << 32, padded(size_bytes) // 4, np.uint32)
    return words & np.uint32(0x83FF83FF) | np.uint32(0x3C003C00)


def _agree(given: np.ndarray, right: np.ndarray) -> bool:
    return bool(np.abs(given - right).max() <= DISAGREE * np.abs(right).max())  # no number is no agreement


def _timed(kernels: Kernels, dispatches: list, buffers: Buffers, now: Callable) -> float:
    """Seconds of the quickest of the runs that fit into TRIAL_MS; an earlier one has compiled and warmed up."""
    quickest, spent = float("inf"), 0.0
    while spent < TRIAL_MS / 1000:
        start = now()
        kernels.run(dispatches, buffers)
        kernels.fence()
        took = now() - start
        quickest = min(quickest, took)
        spent += max(took, 0.001)  # a coarse clock may say 0
    return quickest


def _key(kernels: Kernels, operation: str, sizes: Mapping[str, int], names: list[str]) -> str:
    """What an answer is remembered under: all that it depends on."""
    attends = operation in ATTENTION
    of = [sizes[letter] for letter in (("N", "K", "H") if attends else ("D", "F", "fmt"))]
    prefix = "attention" if attends else operation
    files = sorted({entry["file"] for name, entry in kernels.manifest.items() if name.startswith(prefix)})
    texts = "\n".join((FOLDER / file).read_text("utf-8") for file in files)
    digest = hashlib.sha256(texts.encode()).hexdigest()[:16]
    return "/".join(map(str, ("variant", operation, kernels.device.words, *of, "+".join(names), digest)))
