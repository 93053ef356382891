"""Which variant is fastest here: each is compiled, run once, and timed for about 50 ms; the answer is remembered.

Mirrors static/gpu/trial.js, which the page calls while it already runs on the first choice. What is remembered is bound
to the device's name, the heads and the text of the kernels, so that a new kernel is tried again. Left out on purpose:
variants of operations other than attention.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from webgpu.attention import attention, attention_scratch
from webgpu.buffers import Buffers
from webgpu.kernels import FOLDER, Kernels
from webgpu.variants import to_try

TRIAL_MS = 50
# What is tried: tokens and cached tokens, with the heads of the model.
SIZES = {"attention": (256, 0), "decode": (1, 1023)}


def try_variants(
    kernels: Kernels,
    *,
    N: int,
    K: int,
    H: int,
    memory: Path | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, str]:
    """The fastest variant of each kind of attention on this device: operation -> name.

    memory: a JSON file of earlier answers, written anew; one that cannot be read counts as empty. now: seconds.
    """
    known = _recall(memory)
    choice = {}
    for operation in SIZES:
        names = to_try(operation, kernels.device.features, kernels.device.software, H)
        key = f"variant/{operation}/{kernels.device.words}/{N}/{K}/{H}/{'+'.join(names)}/{_hash(kernels)}"
        if known.get(key) not in names:
            known[key] = _fastest(kernels, operation, N, K, H, names, now)
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


def _fastest(kernels: Kernels, operation: str, N: int, K: int, H: int, names: list[str], now: Callable) -> str:
    T, offset = SIZES[operation]
    S = offset + T
    scratch = attention_scratch(T=T, S=S, N=N, H=H)
    sizes = {"q": 4 * T * N * H, "k": 4 * S * K * H, "v": 4 * S * K * H, "o": 4 * T * N * H, "lse": 4 * N * T}
    buffers = Buffers(kernels, sizes | {"part": scratch})
    rest = {"T": T, "S": S, "N": N, "K": K, "H": H, "offset": offset, "window": 0, "sinks": 0, "scale": 1.0}
    try:
        times = {
            name: _timed(
                kernels, attention("q", "k", "v", "o", "lse", scratch="part", variant=name, **rest), buffers, now
            )
            for name in names
        }
    finally:
        buffers.destroy()
    return min(names, key=times.__getitem__)


def _timed(kernels: Kernels, dispatches: list, buffers: Buffers, now: Callable) -> float:
    """Seconds of the quickest of the runs that fit into TRIAL_MS, after one that compiles and warms up."""
    kernels.run(dispatches, buffers)
    kernels.fence()
    quickest, spent = float("inf"), 0.0
    while spent < TRIAL_MS / 1000:
        start = now()
        kernels.run(dispatches, buffers)
        kernels.fence()
        took = now() - start
        quickest = min(quickest, took)
        spent += max(took, 0.001)  # a coarse clock may say 0
    return quickest


def _hash(kernels: Kernels) -> str:
    files = sorted({entry["file"] for name, entry in kernels.manifest.items() if name.startswith("attention")})
    return hashlib.sha256("\n".join((FOLDER / file).read_text("utf-8") for file in files).encode()).hexdigest()[:16]
