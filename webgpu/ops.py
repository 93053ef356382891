"""What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.

Nothing here touches a device. static/gpu/ops.js has the same functions, and a test holds both to the same list of
dispatches. Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs; vectors (norm weights, biases) are f32.
Notation as everywhere: T queries, S keys, D width, N query heads, K key/value heads, H head dimension, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

F32, F16, BF16 = 0, 1, 2
NONE = "none"
MAX_GROUPS = 65_535     # WebGPU: workgroups per dimension
MAX_TURNS = 32_768      # loop turns per invocation; llvmpipe silently stops at 65,535
MAX_HEAD_DIM = 256
MAX_TOP_K = 16
HEAD_SLICE = 32         # dimensions of o per invocation of attention_fa2 and attention_decode
DECODE_SPAN = 64        # keys per invocation of attention_decode
LENS_TILE = 512         # vocabulary rows per invocation of lens_tile
LENS_PARTS = 1024       # most tiles a row's merge can take


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
    return (x, max(1, _ceil(groups, x)), 1)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _head_dim(H: int) -> int:
    if H % 4 or not 4 <= H <= MAX_HEAD_DIM:
        raise UnsupportedShape(f"head dimension is {H}; the attention kernels take multiples of 4 up to {MAX_HEAD_DIM}.")
    return H


def _groups(N: int, K: int) -> None:
    if K < 1 or N % K:
        raise UnsupportedShape(f"{N} query heads cannot share {K} key/value heads; N must be a multiple of K.")


def embedding(ids, table, out, *, T, D, v0, v_count, fmt) -> Dispatch:
    """Write out [T,D] for the ids that fall into this table's vocabulary rows v0 .. v0+v_count-1."""
    return Dispatch(
        "embedding", {"WEIGHT_FORMAT": fmt}, {"T": T, "D": D, "v0": v0, "v_count": v_count},
        fold(_ceil(T * D, 64)), {"ids": ids, "table": table, "out": out},
    )


def rmsnorm(x, weight, out, *, rows, width, eps) -> Dispatch:
    """Normalise rows of [rows,width]; QK-norm is rows = T * heads, width = H. weight is f32."""
    return Dispatch(
        "rmsnorm", {}, {"rows": rows, "width": width, "eps": eps},
        fold(_ceil(rows, 8)), {"x": x, "weight": weight, "out": out},
    )


def matmul(x, weight, bias, out, *, T, d_in, d_out, fmt, out_row0=0, out_col0=0, out_stride=None) -> Dispatch:
    """Write x [T,d_in] times weight [d_out,d_in] transposed, plus bias [d_out] unless None.

    T = 1 takes matvec; a d_in that is not a multiple of 8 takes the plain matmul_any.
    """
    overrides = {"WEIGHT_FORMAT": fmt, "HAS_BIAS": bias is not None}
    params = {"d_in": d_in, "d_out": d_out, "out_row0": out_row0, "out_col0": out_col0,
              "out_stride": d_out if out_stride is None else out_stride}
    bindings = {"x": x, "weight": weight, "bias": NONE if bias is None else bias, "out": out}
    if d_in % 8:
        return Dispatch("matmul_any", overrides, {"T": T, **params}, fold(_ceil(T * d_out, 64)), bindings)
    if T == 1:
        return Dispatch("matvec", overrides, params, fold(_ceil(d_out, 4 * 32)), bindings)
    blocks = _ceil(T, 8) * _ceil(d_out, 8)
    return Dispatch("matmul", overrides, {"T": T, **params}, fold(_ceil(blocks, 32)), bindings)


def rope(x, cos, sin, out, *, T, heads, H, out_row0=0, rotate=True) -> Dispatch:
    """Rotate x [T,heads,H] by tables cos and sin [T,H/2]; rotate=False copies (the tables may be "none")."""
    if H % 2:
        raise UnsupportedShape(f"head dimension is {H}; rotary pairs need an even one.")
    return Dispatch(
        "rope", {"ROTATE": rotate}, {"T": T, "heads": heads, "H": H, "out_row0": out_row0},
        fold(_ceil(T * heads * H // 2, 64)),
        {"x": x, "cos_table": cos if rotate else NONE, "sin_table": sin if rotate else NONE, "out": out},
    )


def attention_turns(S: int, H: int) -> int:
    """Loop turns of one invocation that streams S keys."""
    return _ceil(S, 4) * (1 + _ceil(H, 16)) + 36


def attention_scratch(*, T, S, N, H) -> int:
    """Bytes of the `scratch` buffer that attention needs (0 unless T = 1)."""
    return T * N * _ceil(S, DECODE_SPAN) * (H + 4) * 4 if T == 1 else 0


def attention(q, k, v, o, lse, *, T, S, N, K, H, offset, window, sinks, scale, scratch=NONE) -> list[Dispatch]:
    """Attention of q [T,N,H] over k and v [S,K,H] -> o [T,N,H], lse [N,T] natural log.

    Query t stands at offset + t; window 0 = all earlier keys; sinks = first keys always seen. T = 1 splits the keys
    and needs `scratch` of attention_scratch bytes; T > 1 streams them.
    """
    _groups(N, K)
    common = {"T": T, "S": S, "N": N, "K": K, "offset": offset, "window": window, "sinks": sinks, "scale": scale}
    overrides, slices = {"H": _head_dim(H)}, _ceil(H, HEAD_SLICE)
    if T == 1:
        splits = _ceil(S, DECODE_SPAN)
        blocks = K * _ceil(T * N // K, 4) * slices * splits
        return [
            Dispatch("attention_decode", overrides, {**common, "span": DECODE_SPAN, "splits": splits},
                     fold(_ceil(blocks, 16)), {"q": q, "k": k, "v": v, "part": scratch}),
            Dispatch("attention_merge", overrides, {"T": T, "N": N, "splits": splits},
                     fold(_ceil(T * N * H // 4, 16)), {"part": scratch, "o": o, "lse": lse}),
        ]
    if attention_turns(S, H) >= MAX_TURNS:
        raise UnsupportedShape(f"{S} keys of head dimension {H} take more than {MAX_TURNS} loop turns; use a shorter text.")
    return [Dispatch("attention_fa2", overrides, common, fold(_ceil(_ceil(T, 4) * slices * N, 16)),
                     {"q": q, "k": k, "v": v, "o": o, "lse": lse})]


def attention_probs(
    q, k, lse, out, *, T, S, N, K, H, head0, heads, row0, rows, col0, cols, out_rows, out_cols, reduce,
    offset, window, sinks, scale,
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
    params = {"T": T, "S": S, "N": N, "K": K, "head0": head0, "row0": row0, "rows": rows, "col0": col0, "cols": cols,
              "out_rows": out_rows, "out_cols": out_cols, "slice0": 0, "slice1": 0,
              "offset": offset, "window": window, "sinks": sinks, "scale": scale}
    bindings = {"q": q, "k": k, "lse": lse, "out": out}
    if (rows, cols) == (out_rows, out_cols):
        grid = (_ceil(_ceil(cols, 4), 16), _ceil(rows, 4), heads)
        return [Dispatch("attention_cells", {"H": _head_dim(H)}, params, grid, bindings)]
    overrides = {"H": _head_dim(H), "MEAN": reduce == "mean"}
    pixel_rows, pixel_cols = _ceil(rows, out_rows), _ceil(cols, out_cols)
    step = max(1, (MAX_TURNS - 1) // (1 + _ceil(pixel_cols, 4) * (5 + _ceil(H, 16)))) * 4
    grid = (_ceil(out_cols, 16), out_rows, heads)
    return [
        Dispatch("attention_pixels", overrides, {**params, "slice0": s, "slice1": min(s + step, pixel_rows)}, grid, bindings)
        for s in range(0, pixel_rows, step)
    ]


def swiglu(gate, up, out, *, count) -> Dispatch:
    """out = silu(gate) * up, elementwise."""
    return Dispatch("swiglu", {}, {"count": count}, fold(_ceil(count, 64)), {"gate": gate, "up": up, "out": out})


def add(a, b, out, *, count) -> Dispatch:
    """out = a + b, elementwise; out is neither a nor b."""
    return Dispatch("add", {}, {"count": count}, fold(_ceil(count, 64)), {"a": a, "b": b, "out": out})


def lens_tile(D: int, V: int, k: int = 10) -> int:
    """Vocabulary rows per invocation: at most LENS_TILE, few enough tiles to merge, few enough turns to finish."""
    tile = max(LENS_TILE, _ceil(V, LENS_PARTS - 8) + 7) // 8 * 8
    while tile > 8 and tile // 8 * (_ceil(D, 8) + 1) + tile * (k + 1) + 5 * k + 4 > MAX_TURNS:
        tile -= 8
    if _ceil(V, tile) > LENS_PARTS - 8:
        raise UnsupportedShape(f"a vocabulary of {V} at width {D} needs more than {LENS_PARTS} tiles of {tile} rows.")
    return tile


def lens_parts(tables: list, *, D, V, k=10) -> int:
    """How many tiles the tables [(buffer, v0, v_count)] make together."""
    return sum(_ceil(v_count, lens_tile(D, V, k)) for _, _, v_count in tables)


def lens_scratch(tables: list, *, rows, D, V, k=10) -> dict[str, int]:
    """Bytes of each scratch buffer that lens needs, by argument name."""
    parts = lens_parts(tables, D=D, V=V, k=k)
    return {
        "target_logit": rows * 4, "part_logits": rows * parts * k * 4,
        "part_ids": rows * parts * k * 4, "part_stats": rows * parts * 16,
    }


def lens(
    x, tables, targets, ids, logits, stats, *, target_logit, part_logits, part_ids, part_stats, rows, D, V, fmt, k=10,
) -> list[Dispatch]:
    """Unembed x [rows,D] (after the final norm) and keep what is asked of the logits.

    tables: [(buffer, v0, v_count)] in vocabulary order. targets [rows] u32, 0xffffffff = none. Scratch: lens_scratch.
    -> ids, logits [rows,k] (best first, equal logits: lower id first), stats [rows,4] = (lse, entropy in nats,
    target logit, target rank with 0 = best; without a target -1e30 and -1). log-probability = logit - lse.
    """
    if D % 8:
        raise UnsupportedShape(f"the model's width is {D}; the lens takes multiples of 8.")
    if not 1 <= k <= MAX_TOP_K:
        raise UnsupportedShape(f"k is {k}; the lens keeps 1 to {MAX_TOP_K} tokens.")
    tile, parts, part0 = lens_tile(D, V, k), lens_parts(tables, D=D, V=V, k=k), 0
    weights = {"WEIGHT_FORMAT": fmt}
    first, second = [], []
    for table, v0, v_count in tables:
        shape = {"rows": rows, "D": D, "v0": v0, "v_count": v_count}
        first.append(Dispatch("lens_target", weights, shape, fold(_ceil(rows, 8)),
                              {"x": x, "table": table, "targets": targets, "target_logit": target_logit}))
        tiles = _ceil(v_count, tile)
        second.append(Dispatch(
            "lens_tile", {**weights, "TOP_K": k}, {**shape, "tile": tile, "part0": part0, "parts": parts},
            fold(_ceil(_ceil(rows, 4) * tiles, 16)),
            {"x": x, "table": table, "targets": targets, "target_logit": target_logit,
             "part_logits": part_logits, "part_ids": part_ids, "part_stats": part_stats},
        ))
        part0 += tiles
    merge = Dispatch("lens_merge", {"TOP_K": k}, {"rows": rows, "parts": parts}, fold(_ceil(rows, 8)),
                     {"part_logits": part_logits, "part_ids": part_ids, "part_stats": part_stats, "targets": targets,
                      "target_logit": target_logit, "ids": ids, "logits": logits, "stats": stats})
    return [*first, *second, merge]
