"""What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.

Nothing here touches a device. Attention is in attention.py, the lens in lens_ops.py. static/gpu/ops.js has the same
functions, and a test holds both to the same list of dispatches.
Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs; vectors (norm weights, biases) are f32.
Notation as everywhere: T queries, S keys, D width, N query heads, K key/value heads, H head dimension, V vocabulary.
"""

from __future__ import annotations

from webgpu.attention import attention, attention_operation, attention_scratch, attention_turns
from webgpu.dispatch import (
    MAX_GROUPS,
    MAX_HEAD_DIM,
    MAX_TURNS,
    NONE,
    Dispatch,
    UnsupportedShape,
    ceil_div,
    check_groups,
    fold,
    head_dim,
)

__all__ = [
    "BF16", "F16", "F32", "MAX_GROUPS", "MAX_HEAD_DIM", "MAX_TURNS", "NONE", "Dispatch", "UnsupportedShape", "add",
    "attention", "attention_operation", "attention_probs", "attention_scratch", "attention_turns", "ceil_div",
    "embedding", "fold", "matmul", "rmsnorm", "rope", "swiglu",
]  # fmt: skip

F32, F16, BF16 = 0, 1, 2


def embedding(ids, table, out, *, T, D, v0, v_count, fmt) -> Dispatch:
    """Write out [T,D] for the ids that fall into this table's vocabulary rows v0 .. v0+v_count-1."""
    return Dispatch(
        "embedding",
        {"WEIGHT_FORMAT": fmt},
        {"T": T, "D": D, "v0": v0, "v_count": v_count},
        fold(ceil_div(T * D, 64)),
        {"ids": ids, "table": table, "out": out},
    )


def rmsnorm(x, weight, out, *, rows, width, eps) -> Dispatch:
    """Normalise rows of [rows,width]; QK-norm is rows = T * heads, width = H. weight is f32."""
    return Dispatch(
        "rmsnorm",
        {},
        {"rows": rows, "width": width, "eps": eps},
        fold(ceil_div(rows, 8)),
        {"x": x, "weight": weight, "out": out},
    )


def matmul(x, weight, bias, out, *, T, d_in, d_out, fmt, out_row0=0, out_col0=0, out_stride=None) -> Dispatch:
    """Write x [T,d_in] times weight [d_out,d_in] transposed, plus bias [d_out] unless None.

    T = 1 takes matvec; a d_in that is not a multiple of 8 takes the plain matmul_any.
    """
    overrides = {"WEIGHT_FORMAT": fmt, "HAS_BIAS": bias is not None}
    params = {
        "d_in": d_in,
        "d_out": d_out,
        "out_row0": out_row0,
        "out_col0": out_col0,
        "out_stride": d_out if out_stride is None else out_stride,
    }
    bindings = {"x": x, "weight": weight, "bias": NONE if bias is None else bias, "out": out}
    if d_in % 8:
        return Dispatch("matmul_any", overrides, {"T": T, **params}, fold(ceil_div(T * d_out, 64)), bindings)
    if T == 1:
        return Dispatch("matvec", overrides, params, fold(ceil_div(d_out, 4 * 64)), bindings)
    blocks = ceil_div(T, 8) * ceil_div(d_out, 8)
    return Dispatch("matmul", overrides, {"T": T, **params}, fold(ceil_div(blocks, 32)), bindings)


def rope(x, cos, sin, out, *, T, heads, H, out_row0=0, rotate=True) -> Dispatch:
    """Rotate x [T,heads,H] by tables cos and sin [T,H/2]; rotate=False copies (the tables may be "none")."""
    if H % 2:
        raise UnsupportedShape(f"head dimension is {H}; rotary pairs need an even one.")
    return Dispatch(
        "rope",
        {"ROTATE": rotate},
        {"T": T, "heads": heads, "H": H, "out_row0": out_row0},
        fold(ceil_div(T * heads * H // 2, 64)),
        {"x": x, "cos_table": cos if rotate else NONE, "sin_table": sin if rotate else NONE, "out": out},
    )


def attention_probs(
    q,
    k,
    lse,
    out,
    *,
    T,
    S,
    N,
    K,
    H,
    head0,
    heads,
    row0,
    rows,
    col0,
    cols,
    out_rows,
    out_cols,
    reduce,
    offset,
    window,
    sinks,
    scale,
) -> list[Dispatch]:
    """Rebuild the pattern of heads head0.. for one window -> out [heads,out_rows,out_cols].

    reduce is "max" or "mean" over the cells of a pixel. A window of pixels that are cells takes the quick kernel;
    pixels of many cells are reduced over several dispatches.
    """
    check_groups(N, K)
    if reduce not in ("max", "mean"):
        raise UnsupportedShape(f'reduce is {reduce!r}; allowed are "max" and "mean".')
    if row0 + rows > T or col0 + cols > S or head0 + heads > N:
        raise UnsupportedShape(
            f"window rows {row0}+{rows}, columns {col0}+{cols}, heads {head0}+{heads} leaves the pattern [{N},{T},{S}]."
        )
    params = {
        "T": T,
        "S": S,
        "N": N,
        "K": K,
        "head0": head0,
        "row0": row0,
        "rows": rows,
        "col0": col0,
        "cols": cols,
        "out_rows": out_rows,
        "out_cols": out_cols,
        "slice0": 0,
        "slice1": 0,
        "offset": offset,
        "window": window,
        "sinks": sinks,
        "scale": scale,
    }
    bindings = {"q": q, "k": k, "lse": lse, "out": out}
    if (rows, cols) == (out_rows, out_cols):
        grid = (ceil_div(ceil_div(cols, 4), 16), ceil_div(rows, 4), heads)
        return [Dispatch("attention_cells", {"H": head_dim(H)}, params, grid, bindings)]
    overrides = {"H": head_dim(H), "MEAN": reduce == "mean"}
    pixel_rows, pixel_cols = ceil_div(rows, out_rows), ceil_div(cols, out_cols)
    step = (MAX_TURNS - 1) // (1 + ceil_div(pixel_cols, 4) * (5 + ceil_div(H, 16))) * 4
    if step == 0:
        raise UnsupportedShape(
            f"a pixel of {pixel_cols} columns takes over {MAX_TURNS} loop turns; ask for more pixels."
        )
    grid = (ceil_div(out_cols, 16), out_rows, heads)
    return [
        Dispatch(
            "attention_pixels",
            overrides,
            {**params, "slice0": row, "slice1": min(row + step, pixel_rows)},
            grid,
            bindings,
        )
        for row in range(0, pixel_rows, step)
    ]


def swiglu(gate, up, out, *, count) -> Dispatch:
    """out = silu(gate) * up, elementwise."""
    return Dispatch("swiglu", {}, {"count": count}, fold(ceil_div(count, 64)), {"gate": gate, "up": up, "out": out})


def add(a, b, out, *, count) -> Dispatch:
    """out = a + b, elementwise; out is neither a nor b."""
    return Dispatch("add", {}, {"count": count}, fold(ceil_div(count, 64)), {"a": a, "b": b, "out": out})
