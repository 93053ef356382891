"""What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.

Nothing here touches a device. static/gpu/ops.js has the same functions, and a test holds both to the same list of
dispatches. Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs; vectors (norm weights, biases) are f32.
Notation as everywhere: T queries, S keys, D width, N query heads, K key/value heads, H head dimension, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

F32, F16, BF16 = 0, 1, 2
NONE = "none"
MAX_GROUPS = 65_535  # WebGPU: workgroups per dimension
MAX_TURNS = 32_768  # loop turns per invocation; llvmpipe silently stops at 65,535
MAX_HEAD_DIM = 256
HEAD_SLICE = 32  # dimensions of o per invocation of attention_fa2 and attention_decode
DECODE_SPAN = 64  # keys per invocation of attention_decode


class UnsupportedShape(ValueError):
    """A size no kernel takes; the message names it and what is allowed."""


@dataclass(frozen=True)
class Dispatch:
    """One kernel call: overrides and parameters are numbers, bindings map the kernel's names to buffer names."""

    kernel: str
    overrides: dict
    params: dict
    grid: tuple[int, int, int]
    bindings: dict


def fold(groups: int) -> tuple[int, int, int]:
    """Fold a count of workgroups into two dimensions of at most 65,535."""
    x = max(1, min(groups, MAX_GROUPS))
    return (x, max(1, ceil_div(groups, x)), 1)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _head_dim(H: int) -> int:
    if H % 4 or not 4 <= H <= MAX_HEAD_DIM:
        raise UnsupportedShape(f"head dimension is {H}; the kernels take multiples of 4 up to {MAX_HEAD_DIM}.")
    return H


def _groups(N: int, K: int) -> None:
    if K < 1 or N % K:
        raise UnsupportedShape(f"{N} query heads cannot share {K} key/value heads; N must be a multiple of K.")


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


def attention_turns(S: int, H: int) -> int:
    """Loop turns of one invocation that streams S keys."""
    return ceil_div(S, 4) * (1 + ceil_div(H, 16)) + 36


def attention_scratch(*, T, S, N, H) -> int:
    """Bytes of the `scratch` buffer that attention needs (0 unless T = 1)."""
    return T * N * ceil_div(S, DECODE_SPAN) * (H + 4) * 4 if T == 1 else 0


def attention(q, k, v, o, lse, *, T, S, N, K, H, offset, window, sinks, scale, scratch=NONE) -> list[Dispatch]:
    """Attention of q [T,N,H] over k and v [S,K,H] -> o [T,N,H], lse [N,T] natural log.

    Query t stands at offset + t; window 0 = all earlier keys; sinks = first keys always seen. T = 1 splits the keys
    and needs `scratch` of attention_scratch bytes; T > 1 streams them.
    """
    _groups(N, K)
    common = {"T": T, "S": S, "N": N, "K": K, "offset": offset, "window": window, "sinks": sinks, "scale": scale}
    overrides, slices = {"H": _head_dim(H)}, ceil_div(H, HEAD_SLICE)
    if T == 1:
        splits = ceil_div(S, DECODE_SPAN)
        blocks = K * ceil_div(T * N // K, 4) * slices * splits
        return [
            Dispatch(
                "attention_decode",
                overrides,
                {**common, "span": DECODE_SPAN, "splits": splits},
                fold(ceil_div(blocks, 16)),
                {"q": q, "k": k, "v": v, "part": scratch},
            ),
            Dispatch(
                "attention_merge",
                overrides,
                {"T": T, "N": N, "splits": splits},
                fold(ceil_div(T * N * H // 4, 16)),
                {"part": scratch, "o": o, "lse": lse},
            ),
        ]
    if attention_turns(S, H) >= MAX_TURNS:
        raise UnsupportedShape(f"{S} keys of head dimension {H} take over {MAX_TURNS} loop turns; use a shorter text.")
    return [
        Dispatch(
            "attention_fa2",
            overrides,
            common,
            fold(ceil_div(ceil_div(T, 4) * slices * N, 16)),
            {"q": q, "k": k, "v": v, "o": o, "lse": lse},
        )
    ]


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
    _groups(N, K)
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
        return [Dispatch("attention_cells", {"H": _head_dim(H)}, params, grid, bindings)]
    overrides = {"H": _head_dim(H), "MEAN": reduce == "mean"}
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
