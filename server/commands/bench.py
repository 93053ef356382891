"""`playground bench`: a few kernels timed on this machine's adapter, each checked against numpy before it counts.

Times are the best of several runs, submit to readback fence. They say what this adapter does with these kernels; peers
and ceilings come with the work on speed.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np

from server.commands import CommandError

REPEATS = 5
N, K, H = 9, 3, 64  # SmolLM2's heads
TOLERANCE = 1e-4  # float32 sums of a thousand products of values of size one, relative to the largest result


@dataclass(frozen=True)
class Measured:
    """One operation. gflops counts the useful arithmetic: half of the square for causal attention."""

    op: str
    shape: str
    ms: float
    gflops: float
    max_error: float


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("bench", help="time the kernels", description=__doc__)
    command.add_argument("--json", action="store_true", help="machine-readable report")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Raises DeviceError without an adapter, CommandError when a kernel is wrong: a wrong kernel has no speed."""
    from webgpu.device import request_device
    from webgpu.kernels import Kernels

    device = request_device()
    kernels = Kernels(device)
    rows = [attention(kernels, T=T, S=S) for T, S in ((128, 128), (512, 512), (1, 2048))]
    rows += [matmul(kernels, T=T, d_in=576, d_out=1536) for T in (1, 64)]
    if args.json:
        print(json.dumps({"adapter": device.words, "results": [asdict(row) for row in rows]}, indent=1))
        return 0
    print(f"{device.words}\n\n{'operation':<20}{'shape':<28}{'ms':>9}{'GFLOP/s':>10}{'largest error':>15}")
    for row in rows:
        print(f"{row.op:<20}{row.shape:<28}{row.ms:>9.2f}{row.gflops:>10.2f}{row.max_error:>15.1e}")
    return 0


def attention(kernels, *, T: int, S: int) -> Measured:
    """Causal attention of the last T of S positions."""
    from webgpu import ops

    rng = np.random.default_rng(T)
    q, k, v = (rng.normal(size=(n, heads, H)).astype(np.float32) for n, heads in ((T, N), (S, K), (S, K)))
    sizes = {"o": 4 * T * N * H, "lse": 4 * N * T, "scratch": ops.attention_scratch(T=T, S=S, N=N, H=H)}
    buffers = {name: kernels.upload(x) for name, x in (("q", q), ("k", k), ("v", v))}
    buffers |= {name: kernels.buffer(size_bytes) for name, size_bytes in sizes.items()}
    names = {name: name for name in buffers}
    dispatches = ops.attention(**names, T=T, S=S, N=N, K=K, H=H, offset=S - T, window=0, sinks=0, scale=H**-0.5)
    ms = best_ms(kernels, dispatches, buffers)
    found = kernels.read(buffers["o"], "float32", (T, N, H))
    error = check("attention", found, attention_reference(q, k, v))
    pairs = T * S if T == 1 else T * (T + 1) // 2
    name = "decode" if T == 1 else "prefill"
    return Measured(f"attention {name}", f"T {T} S {S} N {N} K {K} H {H}", ms, 4 * N * H * pairs / ms / 1e6, error)


def matmul(kernels, *, T: int, d_in: int, d_out: int) -> Measured:
    """A matrix product with weights stored as pairs of f16, as SmolLM2's are."""
    from webgpu import ops

    rng = np.random.default_rng(T)
    x = rng.normal(size=(T, d_in)).astype(np.float32)
    weight = rng.normal(size=(d_out, d_in)).astype(np.float16)
    buffers = {"x": kernels.upload(x), "weight": kernels.upload(weight), "y": kernels.buffer(4 * T * d_out)}
    dispatch = ops.matmul(x="x", weight="weight", bias=None, out="y", T=T, d_in=d_in, d_out=d_out, fmt=ops.F16)
    ms = best_ms(kernels, [dispatch], buffers)
    wanted = x.astype(np.float64) @ weight.astype(np.float64).T
    error = check("matmul", kernels.read(buffers["y"], "float32", (T, d_out)), wanted)
    return Measured("matmul f16", f"T {T} {d_in} -> {d_out}", ms, 2 * T * d_in * d_out / ms / 1e6, error)


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The plain formula in float64, one head at a time. [T,N,H]"""
    T, S = len(q), len(k)
    hidden = np.arange(S)[None] > np.arange(T)[:, None] + S - T
    out = np.empty(q.shape)
    for head in range(N):
        scores = q[:, head].astype(np.float64) @ k[:, head // (N // K)].T.astype(np.float64) * H**-0.5
        scores[hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head // (N // K)]
    return out


def best_ms(kernels, dispatches: list, buffers: dict) -> float:
    """Best time of REPEATS runs; the first run, which compiles, is not counted."""

    def once() -> float:
        start = time.perf_counter()
        kernels.run(dispatches, buffers)
        kernels.fence()
        return (time.perf_counter() - start) * 1000

    once()
    return min(once() for _ in range(REPEATS))


def check(op: str, found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest error relative to the largest value. Raises CommandError beyond TOLERANCE."""
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not error <= TOLERANCE:
        raise CommandError(f"{op} is wrong on this adapter (error {error:.1e}): `playground parity` shows more.")
    return error
