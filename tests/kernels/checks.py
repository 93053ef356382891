"""Each kernel against its formula, written here once in numpy and evaluated in float64.

The rule for every comparison (flash-attention's own): the kernel's largest error is at most a small multiple of the
largest error that the same formula makes in plain float32, plus a floor. Each check raises AssertionError.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.kernels.drivers import Job
from tests.tolerances import KERNEL_ERROR_FACTOR, KERNEL_ERROR_FLOOR, KERNEL_SCORE_ROUNDING, PATTERN_ROW_SUM
from webgpu import ops


def agree(name: str, got: np.ndarray, exact: np.ndarray, plain: np.ndarray, more: float = 0.0) -> None:
    """Hold got (f32) to exact (f64): at most FACTOR times the error of plain (f32), FLOOR of the largest value, and more."""
    assert np.isfinite(got).all(), f"{name}: {np.count_nonzero(~np.isfinite(got))} of {got.size} are not finite"
    if not exact.size:
        return
    error, base = np.abs(got - exact).max(), np.abs(plain - exact).max()
    allowed = KERNEL_ERROR_FACTOR * base + KERNEL_ERROR_FLOOR * max(1.0, np.abs(exact).max()) + more
    assert error <= allowed, f"{name}: error {error:.3g}, allowed {allowed:.3g} (plain float32: {base:.3g})"


@dataclass(frozen=True)
class Attention:
    """One attention call. S = offset + T keys unless given; magnitude multiplies q."""

    T: int
    N: int
    K: int
    H: int
    offset: int = 0
    window: int = 0
    sinks: int = 0
    magnitude: float = 1.0
    S: int | None = None

    @property
    def sizes(self) -> dict:
        """The keyword arguments that webgpu.ops takes."""
        S = self.offset + self.T if self.S is None else self.S
        return {"T": self.T, "S": S, "N": self.N, "K": self.K, "H": self.H, "offset": self.offset,
                "window": self.window, "sinks": self.sinks, "scale": self.H**-0.5}

    def arrays(self) -> dict[str, np.ndarray]:
        """Seeded q [T,N,H], k and v [S,K,H] in float32."""
        rng, S = np.random.default_rng(7), self.sizes["S"]
        q, k, v = (rng.standard_normal(s, "f4") for s in ((self.T, self.N, self.H), *[(S, self.K, self.H)] * 2))
        return {"q": q * np.float32(self.magnitude), "k": k, "v": v}


def visible(c: Attention) -> np.ndarray:
    """[T,S] bool: may query t (at offset + t) see key s."""
    position, s = c.offset + np.arange(c.T)[:, None], np.arange(c.sizes["S"])[None]
    return (s <= position) & ((c.window == 0) | (position - s < c.window) | (s < c.sinks))


def attention_formula(c: Attention, a: dict[str, np.ndarray], dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """softmax(scale q k^T) v, plainly: o [T,N,H], lse [N,T], pattern [N,T,S]."""
    q, k, v = (a[name].astype(dtype).transpose(1, 0, 2) for name in "qkv")
    k, v = np.repeat(k, c.N // c.K, 0), np.repeat(v, c.N // c.K, 0)
    scores = q @ k.transpose(0, 2, 1) * np.dtype(dtype).type(c.H**-0.5)
    scores = np.where(visible(c), scores, np.dtype(dtype).type(-1e30))
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top) * visible(c)
    total = e.sum(-1, keepdims=True)
    pattern = e / np.where(total == 0, 1, total)
    lse = np.where(total == 0, -1e30, top + np.log(np.where(total == 0, 1, total)))
    return (pattern @ v).transpose(1, 0, 2), lse[..., 0], pattern


def run_attention(driver, c: Attention, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run attention and the whole pattern -> o, lse, pattern."""
    s = c.sizes
    shape = (c.N, c.T, s["S"])
    window = {"head0": 0, "heads": c.N, "row0": 0, "rows": c.T, "col0": 0, "cols": s["S"], "out_rows": c.T, "out_cols": s["S"]}
    dispatches = [
        *ops.attention("q", "k", "v", "o", "lse", **s, scratch="scratch"),
        *ops.attention_probs("q", "k", "lse", "pattern", **s, **window, reduce="max"),
    ]
    outputs = {"o": ("f4", (c.T, c.N, c.H)), "lse": ("f4", (c.N, c.T)), "pattern": ("f4", shape)}
    scratch = ops.attention_scratch(T=c.T, S=s["S"], N=c.N, H=c.H)
    return driver.run(Job(dispatches, arrays, outputs, {"scratch": scratch}))


def check_attention(driver, c: Attention) -> None:
    """o, lse and pattern agree with the formula, and every row that sees a key sums to 1."""
    arrays = c.arrays()
    got = run_attention(driver, c, arrays)
    exact, plain = attention_formula(c, arrays, "f8"), attention_formula(c, arrays, "f4")
    seen = visible(c).any(-1)
    agree("o", got["o"], exact[0], plain[0])
    agree("lse", got["lse"][:, seen], exact[1][:, seen], plain[1][:, seen])
    rounding = KERNEL_SCORE_ROUNDING * np.abs(exact[1][:, seen]).max(initial=0)
    agree("pattern", got["pattern"], exact[2], plain[2], rounding)
    assert not got["o"][~seen].any(), "a row that sees nothing has an output"
    assert (got["lse"][:, ~seen] == np.float32(-1e30)).all(), "a row that sees nothing has lse other than -1e30"
    sums = got["pattern"].astype("f8").sum(-1)
    off = np.abs(sums[:, seen] - 1).max(initial=0)
    assert off <= PATTERN_ROW_SUM + rounding, f"a row of the pattern sums to 1 within {off:.3g} only"
    assert not sums[:, ~seen].any(), "a row that sees nothing has weights"


def check_pixels(driver, c: Attention, rows, cols, out_shape, reduce: str, heads=(0, 1)) -> None:
    """A window of the pattern, reduced to pixels, agrees with the float64 pattern reduced the same way."""
    arrays, s = c.arrays(), c.sizes
    exact, plain = attention_formula(c, arrays, "f8"), attention_formula(c, arrays, "f4")
    (row0, row1), (col0, col1), (R, C) = rows, cols, out_shape
    dispatches = ops.attention_probs(
        "q", "k", "lse", "out", **s, head0=heads[0], heads=heads[1], row0=row0, rows=row1 - row0, col0=col0,
        cols=col1 - col0, out_rows=R, out_cols=C, reduce=reduce,
    )
    inputs = {"q": arrays["q"], "k": arrays["k"], "lse": exact[1].astype("f4")}
    got = driver.run(Job(dispatches, inputs, {"out": ("f4", (heads[1], R, C))}))["out"]

    def pixels(pattern: np.ndarray) -> np.ndarray:
        window = pattern[heads[0]:heads[0] + heads[1], row0:row1, col0:col1]
        edges = [[(i * n // count, max((i + 1) * n // count, i * n // count + 1)) for i in range(count)]
                 for n, count in ((row1 - row0, R), (col1 - col0, C))]
        return np.stack([[getattr(window[:, a:b, x:y], reduce)((1, 2)) for x, y in edges[1]] for a, b in edges[0]], 0) \
            .transpose(2, 0, 1)

    agree(f"pixels ({reduce})", got, pixels(exact[2]), pixels(plain[2]))


def weights(rng, shape: tuple[int, ...], fmt: int) -> tuple[np.ndarray, np.ndarray]:
    """Random weights as they are stored in a format, and the float64 values they stand for."""
    full = rng.standard_normal(shape, "f4")
    if fmt == ops.F16:
        return full.astype("f2"), full.astype("f2").astype("f8")
    if fmt == ops.BF16:
        bits = (full.view("u4") >> 16).astype("u2")
        return bits, (bits.astype("u4") << 16).view("f4").astype("f8")
    return full, full.astype("f8")


def check_matmul(driver, T, d_in, d_out, fmt, bias=False, placed=False) -> None:
    """A product agrees; placed = written into the middle of a larger matrix whose other cells stay as they were."""
    rng = np.random.default_rng(T + d_in)
    x, b = rng.standard_normal((T, d_in), "f4"), rng.standard_normal(d_out, "f4")
    stored, w = weights(rng, (d_out, d_in), fmt)
    row0, col0, stride = (2, 3, d_out + 5) if placed else (0, 0, d_out)
    dispatch = ops.matmul("x", "w", "b" if bias else None, "out", T=T, d_in=d_in, d_out=d_out, fmt=fmt,
                          out_row0=row0, out_col0=col0, out_stride=stride)
    got = driver.run(Job([dispatch], {"x": x, "w": stored, "b": b}, {"out": ("f4", (T + row0, stride))}))["out"]
    plain = x @ w.astype("f4").T + (b if bias else 0)
    agree(dispatch.kernel, got[row0:, col0:col0 + d_out], x.astype("f8") @ w.T + (b if bias else 0), plain)
    rest = np.ones(got.shape, bool)
    rest[row0:, col0:col0 + d_out] = False
    assert np.isnan(got[rest]).all(), "cells beside the product were written"


def check_embedding(driver, T, D, V, fmt, chunks) -> None:
    """Rows of a table in one or several pieces arrive unrounded."""
    rng = np.random.default_rng(D)
    ids = rng.integers(0, V, T).astype("u4")
    ids[0], ids[-1] = 0, V - 1
    stored, w = weights(rng, (V, D), fmt)
    edges = [V * i // chunks for i in range(chunks + 1)]
    pieces = {f"w{i}": stored[a:b] for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False))}
    dispatches = [ops.embedding("ids", name, "out", T=T, D=D, v0=edges[i], v_count=len(piece), fmt=fmt)
                  for i, (name, piece) in enumerate(pieces.items())]
    got = driver.run(Job(dispatches, {"ids": ids, **pieces}, {"out": ("f4", (T, D))}))["out"]
    assert np.array_equal(got, w[ids].astype("f4")), "embedding rows differ from the table"


def check_rmsnorm(driver, rows, width, eps=1e-5, magnitude=1.0) -> None:
    """Normalised rows agree."""
    rng = np.random.default_rng(width)
    x, w = rng.standard_normal((rows, width), "f4") * np.float32(magnitude), rng.standard_normal(width, "f4")
    got = driver.run(Job([ops.rmsnorm("x", "w", "out", rows=rows, width=width, eps=eps)], {"x": x, "w": w},
                         {"out": ("f4", (rows, width))}))["out"]

    def formula(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps)) * w

    agree("rmsnorm", got, formula(x.astype("f8"), w.astype("f8")), formula(x, w))


def check_rope(driver, T, heads, H, row0=0, rotate=True) -> None:
    """Half-split rotation agrees, written from row0 on; earlier rows stay as they were."""
    rng = np.random.default_rng(H)
    x = rng.standard_normal((T, heads, H), "f4")
    angle = rng.uniform(-9, 9, (T, H // 2))
    tables = {"cos": np.cos(angle).astype("f4"), "sin": np.sin(angle).astype("f4")}
    got = driver.run(Job([ops.rope("x", "cos", "sin", "out", T=T, heads=heads, H=H, out_row0=row0, rotate=rotate)],
                         {"x": x, **tables}, {"out": ("f4", (row0 + T, heads, H))}))["out"]

    def formula(x: np.ndarray) -> np.ndarray:
        if not rotate:
            return x
        c, s = (tables[name].astype(x.dtype)[:, None] for name in ("cos", "sin"))
        a, b = x[..., : H // 2], x[..., H // 2 :]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    agree("rope", got[row0:], formula(x.astype("f8")), formula(x))
    assert np.isnan(got[:row0]).all(), "rows before row0 were written"


def check_elementwise(driver, count, magnitude=1.0) -> None:
    """swiglu and add agree."""
    rng = np.random.default_rng(count)
    a, b = rng.standard_normal((2, count), "f4") * np.float32(magnitude)
    got = driver.run(Job([ops.swiglu("a", "b", "product", count=count), ops.add("a", "b", "sum", count=count)],
                         {"a": a, "b": b}, {"product": ("f4", (count,)), "sum": ("f4", (count,))}))
    with np.errstate(over="ignore"):
        exact, plain = (g / (1 + np.exp(-g)) * u for g, u in ((a.astype("f8"), b.astype("f8")), (a, b)))
    agree("swiglu", got["product"], exact, plain)
    assert np.array_equal(got["sum"], a + b), "add differs from float32 addition"


def check_lens(driver, rows, D, V, fmt, chunks=1, k=10) -> None:
    """Top ids with ties, logits, log-sum-exp, entropy, target logit and rank agree with the full logits."""
    rng = np.random.default_rng(rows + V)
    x, targets = rng.standard_normal((rows, D), "f4"), rng.integers(0, V, rows).astype("u4")
    stored, w = weights(rng, (V, D), fmt)
    stored[V // 2], w[V // 2] = stored[1], w[1]  # two tokens with the same logit: the lower id comes first
    targets[:3] = [0xFFFFFFFF, V // 2, 1][:rows]
    edges = [V * i // chunks for i in range(chunks + 1)]
    pieces = {f"w{i}": stored[a:b] for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False))}
    tables = [(name, edges[i], len(piece)) for i, (name, piece) in enumerate(pieces.items())]
    scratch = ops.lens_scratch(tables, rows=rows, D=D, V=V, k=k)
    dispatches = ops.lens("x", tables, "targets", "ids", "logits", "stats", **{n: n for n in scratch}, rows=rows, D=D, V=V,
                          fmt=fmt, k=k)
    outputs = {"ids": ("u4", (rows, k)), "logits": ("f4", (rows, k)), "stats": ("f4", (rows, 4))}
    got = driver.run(Job(dispatches, {"x": x, "targets": targets, **pieces}, outputs, scratch))

    z, plain = x.astype("f8") @ w.T, x @ w.astype("f4").T
    order = np.argsort(-z, 1, kind="stable")[:, :k]
    assert np.array_equal(got["ids"], order), "the lens lists other tokens"
    agree("logits", got["logits"], np.take_along_axis(z, order, 1), np.take_along_axis(plain, order, 1))
    exact_stats, plain_stats = lens_stats(z, targets), lens_stats(plain, targets)
    wanted = targets < V
    for i, (name, which) in enumerate({"lse": wanted | True, "entropy": wanted | True, "target logit": wanted}.items()):
        agree(name, got["stats"][which, i], exact_stats[which, i], plain_stats[which, i])
    assert (got["stats"][~wanted, 2] == np.float32(-1e30)).all(), "a row without a target has a target logit"
    assert np.array_equal(got["stats"][:, 3], exact_stats[:, 3]), "a target has another rank"


def lens_stats(z: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(lse, entropy, target logit, target rank) of each row of logits, plainly."""
    top = z.max(1, keepdims=True)
    lse = (top + np.log(np.exp(z - top).sum(1, keepdims=True)))[:, 0]
    logp = z - lse[:, None]
    answer = np.stack([lse, -(np.exp(logp) * logp).sum(1), np.full_like(lse, -1e30), np.full_like(lse, -1)], 1)
    for row, target in enumerate(targets):
        if target < z.shape[1]:
            same_before = np.count_nonzero(z[row, :target] == z[row, target])
            answer[row, 2:] = z[row, target], np.count_nonzero(z[row] > z[row, target]) + same_before
    return answer
