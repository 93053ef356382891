"""Each kernel against its formula, written here once in numpy and evaluated in float64.

The rule for every comparison (flash-attention's own): the kernel's largest error is at most a small multiple of the
largest error that the same formula makes in plain float32, plus a floor. Each check raises AssertionError.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.blocks import quantise
from tests.kernels.drivers import Job
from tests.tolerances import KERNEL_ERROR_FACTOR, KERNEL_ERROR_FLOOR, LENS_NEAR_TIE
from webgpu import lens_ops, ops


def agree(name: str, got: np.ndarray, exact: np.ndarray, plain: np.ndarray, more: float = 0.0) -> None:
    """Hold got (f32) to exact (f64): FACTOR times the error of plain (f32), FLOOR of the largest value, and more."""
    assert np.isfinite(got).all(), f"{name}: {np.count_nonzero(~np.isfinite(got))} of {got.size} are not finite"
    if not exact.size:
        return
    error, base = np.abs(got - exact).max(), np.abs(plain - exact).max()
    allowed = KERNEL_ERROR_FACTOR * base + KERNEL_ERROR_FLOOR * max(1.0, np.abs(exact).max()) + more
    assert error <= allowed, f"{name}: error {error:.3g}, allowed {allowed:.3g} (plain float32: {base:.3g})"


def weights(full: np.ndarray, fmt: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 weights as they are stored in a format, the scales of their blocks, the float64 values left of them."""
    none = np.zeros(0, "f2")
    if fmt == ops.F16:
        return full.astype("f2"), none, full.astype("f2").astype("f8")
    if fmt == ops.BF16:
        bits = (full.view("u4") >> 16).astype("u2")
        return bits, none, (bits.astype("u4") << 16).view("f4").astype("f8")
    if fmt in (ops.Q4_1, ops.Q8_0):
        blocks = quantise(full, "Q4_1" if fmt == ops.Q4_1 else "Q8_0")
        return blocks.quants, blocks.scales, blocks.values()
    return full, none, full.astype("f8")


def check_matmul(driver, T, d_in, d_out, fmt, bias=False, placed=False, residual=False, variant=None) -> None:
    """A product agrees; placed = written into the middle of a larger matrix whose other cells stay as they were;
    residual = added to numbers that lie likewise."""
    rng = np.random.default_rng(T + d_in)
    x, b = rng.standard_normal((T, d_in), "f4"), rng.standard_normal(d_out, "f4")
    stored, scales, w = weights(rng.standard_normal((d_out, d_in), "f4"), fmt)
    row0, col0, stride = (2, 3, d_out + 5) if placed else (0, 0, d_out)
    dispatch = ops.matmul(
        "x",
        "w",
        "b" if bias else None,
        "out",
        T=T,
        d_in=d_in,
        d_out=d_out,
        fmt=fmt,
        scales="scales",
        out_row0=row0,
        out_col0=col0,
        out_stride=stride,
        residual="r" if residual else ops.NONE,
        variant=variant,
    )
    forced = "matvec" if variant == "plain" else f"_{variant}"
    assert variant is None or dispatch.kernel.endswith(forced), "another variant would be checked"
    r = rng.standard_normal((T + row0, stride), "f4")
    given = {"x": x, "w": stored, "scales": scales, "b": b, "r": r}
    got = driver.run(Job([dispatch], given, {"out": ("f4", (T + row0, stride))}))["out"]
    more = (b if bias else 0) + (r[row0:, col0 : col0 + d_out] if residual else np.float32(0))
    plain = x @ w.astype("f4").T + more
    agree(dispatch.kernel, got[row0:, col0 : col0 + d_out], x.astype("f8") @ w.T + more, plain)
    rest = np.ones(got.shape, bool)
    rest[row0:, col0 : col0 + d_out] = False
    assert np.isnan(got[rest]).all(), "cells beside the product were written"


def check_embedding(driver, T, D, V, fmt, chunks) -> None:
    """Rows of a table in one or several pieces arrive unrounded."""
    rng = np.random.default_rng(D)
    ids = rng.integers(0, V, T).astype("u4")
    ids[0], ids[-1] = 0, V - 1
    tables, pieces, w = in_pieces(rng.standard_normal((V, D), "f4"), fmt, chunks)
    dispatches = [
        ops.embedding("ids", name, "out", T=T, D=D, v0=v0, v_count=count, fmt=fmt, scales=scales)
        for name, v0, count, scales in tables
    ]
    got = driver.run(Job(dispatches, {"ids": ids, **pieces}, {"out": ("f4", (T, D))}))["out"]
    assert np.array_equal(got, w[ids].astype("f4")), "embedding rows differ from the table"


def in_pieces(full: np.ndarray, fmt: int, chunks: int) -> tuple[list, dict, np.ndarray]:
    """A table cut into pieces by rows: [(buffer, v0, v_count, scales)], the buffers, the float64 values."""
    edges, tables, pieces = [len(full) * i // chunks for i in range(chunks + 1)], [], {}
    stored, scales, w = weights(full, fmt)
    for i, (a, b) in enumerate(pairwise(edges)):
        tables.append((f"w{i}", a, b - a, f"s{i}"))
        pieces |= {f"w{i}": stored[a:b], f"s{i}": scales[a:b]}
    return tables, pieces, w


def check_rmsnorm(driver, rows, width, eps=1e-5, magnitude=1.0, variant=None) -> None:
    """Normalised rows agree."""
    rng = np.random.default_rng(width)
    x, w = rng.standard_normal((rows, width), "f4") * np.float32(magnitude), rng.standard_normal(width, "f4")
    got = driver.run(
        Job(
            [ops.rmsnorm("x", "w", "out", rows=rows, width=width, eps=eps, variant=variant)],
            {"x": x, "w": w},
            {"out": ("f4", (rows, width))},
        )
    )["out"]

    def formula(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps)) * w

    agree("rmsnorm", got, formula(x.astype("f8"), w.astype("f8")), formula(x, w))


def check_qk_norm(driver, T, N, K, H, variant=None) -> None:
    """The heads at the start of wider rows are normed, queries and keys with weights of their own."""
    rng = np.random.default_rng(H)
    qkv, w = rng.standard_normal((T, N + 2 * K, H), "f4"), rng.standard_normal((2, H), "f4")
    heads = {"rows": T * (N + K), "width": H, "heads": N + K, "N": N, "stride": (N + 2 * K) * H}
    dispatch = ops.rmsnorm("x", "w", "out", eps=1e-5, variant=variant, **heads)
    got = driver.run(Job([dispatch], {"x": qkv, "w": w}, {"out": ("f4", (T, N + K, H))}))["out"]

    def formula(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        gains = np.repeat(w, (N, K), axis=0)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(1e-5)) * gains

    x = qkv[:, : N + K]
    agree("qk_norm", got, formula(x.astype("f8"), w.astype("f8")), formula(x, w))


def check_rope(driver, T, N, K, H, row0=0, rotate=True, normed=False) -> None:
    """Half-split rotation agrees, keys and values written from row0 on, earlier rows as they were.

    normed = the heads to rotate lie in a narrower matrix than the values.
    """
    rng = np.random.default_rng(H)
    qkv = rng.standard_normal((T, N + 2 * K, H), "f4")
    x = rng.standard_normal((T, N + K, H), "f4") if normed else qkv
    angle = rng.uniform(-9, 9, (T, H // 2))
    tables = {"cos": np.cos(angle).astype("f4"), "sin": np.sin(angle).astype("f4")}
    sizes = {"T": T, "N": N, "K": K, "H": H, "stride": (N + K) * H if normed else None}
    dispatch = ops.rope("x", "qkv", "cos", "sin", "q", "k", "v", **sizes, out_row0=row0, rotate=rotate)
    cache = ("f4", (row0 + T, K, H))
    outputs = {"q": ("f4", (T, N, H)), "k": cache, "v": cache}
    got = driver.run(Job([dispatch], {"x": x, "qkv": qkv, **tables}, outputs))

    def formula(x: np.ndarray) -> np.ndarray:
        if not rotate:
            return x
        c, s = (tables[name].astype(x.dtype)[:, None] for name in ("cos", "sin"))
        a, b = x[..., : H // 2], x[..., H // 2 :]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    for name, rows, heads in (("q", got["q"], x[:, :N]), ("k", got["k"][row0:], x[:, N : N + K])):
        agree(f"rope {name}", rows, formula(heads.astype("f8")), formula(heads))
    assert np.array_equal(got["v"][row0:], qkv[:, N + K :]), "values differ from what they were"
    for name in "kv":
        assert np.isnan(got[name][:row0]).all(), f"rows of {name} before row0 were written"


def check_swiglu(driver, T, F, magnitude=1.0) -> None:
    """The gates at the start of each row, and what they let pass behind them."""
    rng = np.random.default_rng(F)
    x = rng.standard_normal((T, 2 * F), "f4") * np.float32(magnitude)
    got = driver.run(Job([ops.swiglu("x", "out", T=T, F=F)], {"x": x}, {"out": ("f4", (T, F))}))["out"]
    with np.errstate(over="ignore"):
        exact, plain = (x[:, :F] / (1 + np.exp(-x[:, :F])) * x[:, F:] for x in (x.astype("f8"), x))
    agree("swiglu", got, exact, plain)


def check_lens(driver, rows, D, V, fmt, chunks=1, k=10, variant=None) -> None:
    """Top ids with ties, logits, log-sum-exp, entropy, target logit and rank agree with the full logits."""
    rng = np.random.default_rng(rows + V)
    x, targets = rng.standard_normal((rows, D), "f4"), rng.integers(0, V, rows).astype("u4")
    full = rng.standard_normal((V, D), "f4")
    twins = min(6, V // 2 - 1)
    full[1 : 1 + twins] *= 5  # some of them among the best of every row, ...
    full[V // 2 : V // 2 + twins] = full[1 : 1 + twins]  # ... each with a twin of the same logit: lower id first
    targets[:3] = [0xFFFFFFFF, V // 2, 1][:rows]
    tables, pieces, w = in_pieces(full, fmt, chunks)
    how = {"rows": rows, "D": D, "V": V, "fmt": fmt, "k": k, "variant": variant}
    scratch = lens_ops.lens_scratch(tables, **how)
    own = {name: name for name in scratch}
    dispatches = lens_ops.lens("x", tables, "targets", "ids", "logits", "stats", **own, **how)
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
    mine = z[np.arange(rows), np.minimum(targets, V - 1)][:, None]
    near = ((z != mine) & (np.abs(z - mine) < LENS_NEAR_TIE)).sum(1)  # two logits that rounding may swap
    assert (np.abs(got["stats"][:, 3] - exact_stats[:, 3]) <= near).all(), "a target has another rank"


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
