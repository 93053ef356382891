"""One operation as data: inputs, dispatches, how much work it is, and how its result is judged. Touches no device.

Work counts what the formula needs, not what a kernel does: causal attention counts half the square, two operations a
multiply-add. Bytes are inputs and outputs once. static/bench/cases.js mirrors this; a test compares dispatches.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench import reference
from bench.tensors import matrix, numbers, sampled
from webgpu import lens_ops, ops, variants
from webgpu.device import Device
from webgpu.trial import candidates

FORMATS = {"f32": ops.F32, "f16": ops.F16, "bf16": ops.BF16, "q4_1": ops.Q4_1, "q8_0": ops.Q8_0}
# Share of the largest value: what attention has to keep; sums of thousands of float32 products stay below it too.
TOLERANCE = 1e-5
# Keys and values rounded to f16 (half a unit in 2,048): what a variant that needs f16 is held to instead.
F16_TOLERANCE = 2e-3
TOP = 10


@dataclass(frozen=True)
class Case:
    """inputs: name -> array; outputs: name -> (dtype, shape); scratch: name -> bytes; judge: outputs -> error.

    read_bytes: what the formula needs of the inputs where it is not all of them.
    """

    words: str
    dispatches: list[ops.Dispatch]
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    flops: int
    judge: Callable[[Mapping[str, np.ndarray]], float]
    checked: str
    scratch: Mapping[str, int] = field(default_factory=dict)
    zeroed: bool = False  # outputs must begin as zeros; otherwise they begin as no number
    read_bytes: int | None = None

    @property
    def bytes(self) -> int:
        """Inputs, or what is needed of them, read once and outputs written once."""
        written = sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for dtype, shape in self.outputs.values())
        every = sum(array.nbytes for array in self.inputs.values())
        return written + (every if self.read_bytes is None else self.read_bytes)


def rows_words(rows: np.ndarray, T: int) -> str:
    """Which rows were compared, for people."""
    return f"all {T} rows" if len(rows) == T else f"{len(rows)} of {T} rows, one in each 16"


# Operation here -> operation in webgpu/variants.py.
VARIED = {"attention": "attention", "decode": "decode", "heatmap": "cells", "matmul": "matmul", "lens": "lens"}


def tolerance(asked: Mapping[str, Any]) -> float:
    """What the variant that runs is held to."""
    every = variants.VARIANTS[varied(asked)]
    return F16_TOLERANCE if any(v.name == asked["variant"] and "f16" in v.needs for v in every) else TOLERANCE


def varied(asked: Mapping[str, Any]) -> str:
    """The operation's name in webgpu/variants.py."""
    return "matvec" if asked["op"] == "matmul" and asked["T"] == 1 else VARIED[asked["op"]]


def letters(asked: Mapping[str, Any]) -> dict[str, int | None]:
    """The sizes under the letters by which webgpu/variants.py and webgpu/trial.py know them."""
    sizes = {size: value for size, value in asked.items() if len(size) == 1} | {"S": asked["T"]}
    widths = {"D": asked["d_in"], "F": asked["d_out"]} if asked["op"] == "matmul" else {}
    return sizes | widths | {"fmt": FORMATS.get(asked.get("format"))}


def used_variant(asked: Mapping[str, Any]) -> str:
    """The variant that will run. Raises UnknownVariant."""
    return variants.pick(varied(asked), asked["variant"], **letters(asked))


def tried(asked: Mapping[str, Any], device: Device) -> list[str]:
    """The variants among which the product chooses on this device."""
    return candidates(varied(asked), device, letters(asked))


def attention(asked: Mapping[str, Any]) -> Case:
    """Prefill of T tokens, or with op "decode" one token against T keys."""
    S, N, K, H = (asked[name] for name in ("T", "N", "K", "H"))
    T = 1 if asked["op"] == "decode" else S
    inputs = {"q": numbers(1, T, N, H), "k": numbers(2, S, K, H), "v": numbers(3, S, K, H)}
    dispatches = ops.attention(
        q="q", k="k", v="v", o="o", lse="lse", scratch="scratch", T=T, S=S, N=N, K=K, H=H, offset=S - T, window=0,
        sinks=0, scale=H**-0.5, variant=asked["variant"],
    )  # fmt: skip
    rows = sampled(T)

    def judge(found: Mapping[str, np.ndarray]) -> float:
        o, lse = reference.attention_rows(inputs["q"], inputs["k"], inputs["v"], rows)
        unwritten = 0.0 if np.isfinite(found["o"]).all() else float("inf")
        errors = reference.error(found["o"][rows], o), reference.error(found["lse"][:, rows], lse)
        return max(*errors, unwritten)

    pairs = S if T == 1 else T * (T + 1) // 2
    shape = f"1 token, {S} keys" if T == 1 else f"T {T}"
    return Case(
        f"{shape}, N {N} K {K} H {H}", dispatches, inputs,
        {"o": ("float32", (T, N, H)), "lse": ("float32", (N, T))}, 4 * N * H * pairs, judge, rows_words(rows, T),
        {"scratch": ops.attention_scratch(T=T, S=S, N=N, H=H)},
    )  # fmt: skip


def heatmap(asked: Mapping[str, Any]) -> Case:
    """The last `window` rows and columns of one head's pattern, drawn on pixels x pixels: the largest cell of each."""
    T, N, K, H, window, pixels = (asked[name] for name in ("T", "N", "K", "H", "window", "pixels"))
    q, k, first = numbers(1, T, N, H), numbers(2, T, K, H), T - window
    # lse is an input here, so that the pattern is judged by itself: in float64, for the head that is drawn.
    exact = [
        reference.pattern_rows(q[:, 0], k[:, 0], part)
        for part in np.array_split(np.arange(first, T), -(-window // 256))
    ]
    lse = np.zeros((N, T), np.float32)
    lse[0, first:] = np.concatenate([part[1] for part in exact])
    place = {"head0": 0, "heads": 1, "row0": first, "rows": window, "col0": first, "cols": window}
    dispatches = ops.attention_probs(
        q="q", k="k", lse="lse", out="out", T=T, S=T, N=N, K=K, H=H, **place, out_rows=pixels, out_cols=pixels,
        reduce="max", offset=0, window=0, sinks=0, scale=H**-0.5, variant=asked["variant"],
    )  # fmt: skip
    rows = sampled(pixels)

    def judge(found: Mapping[str, np.ndarray]) -> float:
        if not np.isfinite(found["out"]).all():
            return float("inf")
        worst = 0.0
        for row in rows:
            start = first + row * window // pixels
            end = max(first + (row + 1) * window // pixels, start + 1)
            cells, _ = reference.pattern_rows(q[:, 0], k[:, 0], np.arange(start, end))
            wanted = reference.pooled(cells[:, first:], pixels)
            worst = max(worst, float(np.abs(found["out"][0, row] - wanted).max()))
        return worst

    return Case(
        f"{window} x {window} cells of T {T} on {pixels} x {pixels} pixels, H {H}", dispatches,
        {"q": q, "k": k, "lse": lse}, {"out": ("float32", (1, pixels, pixels))}, window * (window + 1) * H, judge,
        rows_words(rows, pixels) + " of pixels", zeroed=True, read_bytes=4 * window * (2 * H + 1),
    )  # fmt: skip


def matmul(asked: Mapping[str, Any]) -> Case:
    """x [T,d_in] times a weight matrix [d_out,d_in]."""
    T, d_in, d_out, form = (asked[name] for name in ("T", "d_in", "d_out", "format"))
    x, (weight, stored) = numbers(1, T, d_in), matrix(2, d_out, d_in, form)
    dispatches = ops.matmul(
        x="x", weight="weight", bias=None, out="out", T=T, d_in=d_in, d_out=d_out, fmt=FORMATS[form],
        scales="scales" if "scales" in stored else ops.NONE, variant=asked["variant"],
    )  # fmt: skip
    rows = sampled(T)

    def judge(found: Mapping[str, np.ndarray]) -> float:
        if not np.isfinite(found["out"]).all():
            return float("inf")
        return reference.error(found["out"][rows], reference.product_rows(x, weight, rows))

    return Case(
        f"T {T}, {d_in} to {d_out}, {form}", dispatches if isinstance(dispatches, list) else [dispatches],
        {"x": x, **stored}, {"out": ("float32", (T, d_out))}, 2 * T * d_in * d_out, judge,
        rows_words(rows, T),
    )  # fmt: skip


def lens(asked: Mapping[str, Any]) -> Case:
    """Logit lens of T normed rows: ten best tokens, log-sum-exp, entropy, a target's logit and rank."""
    T, D, V, form = (asked[name] for name in ("T", "D", "V", "format"))
    x, (table, stored) = numbers(1, T, D), matrix(2, V, D, form)
    targets = (np.arange(T, dtype=np.uint32) * np.uint32(7919) % np.uint32(V)).astype(np.uint32)
    names = {name: name for name in ("ids", "logits", "stats", "targets")}
    tables = [("weight", 0, V, *(["scales"] if "scales" in stored else []))]
    scratch = lens_ops.lens_scratch(tables, rows=T, D=D, V=V, fmt=FORMATS[form], k=TOP, variant=asked["variant"])
    dispatches = lens_ops.lens(
        x="x", tables=tables, rows=T, D=D, V=V, fmt=FORMATS[form], k=TOP, **names,
        **{name: name for name in scratch}, variant=asked["variant"],
    )  # fmt: skip
    outputs = {"ids": ("uint32", (T, TOP)), "logits": ("float32", (T, TOP)), "stats": ("float32", (T, 4))}
    rows = sampled(T)

    def judge(found: Mapping[str, np.ndarray]) -> float:
        exact = reference.product_rows(x, table, rows)
        parts = [found["ids"][rows], found["logits"][rows], found["stats"][rows]]
        return max(judge_lens(exact[i], targets[row], *(part[i] for part in parts)) for i, row in enumerate(rows))

    return Case(
        f"{T} rows, D {D}, V {V}, {form}", dispatches, {"x": x, **stored, "targets": targets},
        outputs, 2 * T * D * V, judge, rows_words(rows, T), scratch,
    )  # fmt: skip


def judge_lens(exact: np.ndarray, target: int, ids: np.ndarray, logits: np.ndarray, stats: np.ndarray) -> float:
    """Largest error of one row against its exact logits [V], as a share of the largest of them.

    Tokens whose exact logits agree to TOLERANCE may change places, in the ten best as in the target's rank.
    """
    largest = np.abs(exact).max()
    if not (
        np.isfinite(logits).all() and np.isfinite(stats).all() and (ids < len(exact)).all() and len(set(ids)) == TOP
    ):
        return float("inf")
    top = exact.max()
    powers = np.exp(exact - top)
    lse = top + np.log(powers.sum())
    entropy = lse - (powers * exact).sum() / powers.sum()
    near = TOLERANCE * largest
    above, at_least = (exact > exact[target] + near).sum(), (exact >= exact[target] - near).sum()
    if not above <= stats[3] < at_least:
        return float("inf")
    wanted = np.sort(exact)[::-1][:TOP]
    errors = [np.abs(logits - wanted).max(), np.abs(logits - exact[ids]).max(), abs(stats[0] - lse)]
    return float(max(*errors, abs(stats[1] - entropy), abs(stats[2] - exact[target])) / largest)


CASES = {"attention": attention, "decode": attention, "heatmap": heatmap, "matmul": matmul, "lens": lens}
