"""What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.

Nothing here touches a device. Attention is in attention.py, windows of its pattern in probs.py, the lens in
lens_ops.py. static/gpu/ops.js has the same functions, and a test holds both to the same list of dispatches.
Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs, 3 = Q4_1 and 4 = Q8_0 blocks (weights/blocks.py), whose scales
are a buffer beside the quants; vectors (norm weights, biases) are f32.
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
    fold,
)
from webgpu.probs import attention_probs
from webgpu.variants import pick

__all__ = [
    "BF16", "F16", "F32", "FEW_TOKENS", "MAX_GROUPS", "MAX_HEAD_DIM", "MAX_TURNS", "NONE", "Q4_1", "Q8_0", "QUAD_ROWS",
    "Dispatch", "UnsupportedShape", "attention", "attention_operation", "attention_probs", "attention_scratch",
    "attention_turns", "ceil_div", "embedding", "fold", "matmul", "product_operation", "rmsnorm", "rope", "swiglu",
]  # fmt: skip

F32, F16, BF16, Q4_1, Q8_0 = 0, 1, 2, 3, 4
FEW_TOKENS = 32  # up to here workgroups share rows of weights, beyond a tile of the product
QUAD_ROWS = 8  # tokens of a quad's block; of more than 8 it takes twice as many, but 17 to 24 are three blocks of 8


def embedding(ids, table, out, *, T, D, v0, v_count, fmt, scales=NONE) -> Dispatch:
    """Write out [T,D] for the ids that fall into this table's vocabulary rows v0 .. v0+v_count-1."""
    return Dispatch(
        "embedding",
        {"WEIGHT_FORMAT": fmt},
        {"T": T, "D": D, "v0": v0, "v_count": v_count},
        fold(ceil_div(T * D, 64)),
        {"ids": ids, "table": table, "scales": scales, "out": out},
    )


def rmsnorm(x, weight, out, *, rows, width, eps, heads=1, N=1, stride=None, variant=None) -> Dispatch:
    """Normalise rows into out [rows,width]; x [rows,width] and weight [width] f32.

    QK-norm: rows = T * heads, width = H; x has `stride` numbers a token, which begin with its heads; weight [2,H] is
    for the first N of them and for the others.
    """
    groups = pick("norm", variant) == "groups"
    return Dispatch(
        "rmsnorm_groups" if groups else "rmsnorm",
        {},
        {"rows": rows, "width": width, "heads": heads, "N": N, "stride": stride or width, "eps": eps},
        fold(rows if groups else ceil_div(rows, 8)),
        {"x": x, "weight": weight, "out": out},
    )


def product_operation(T: int) -> str:
    """Which operation of webgpu/variants.py multiplies T tokens by a matrix."""
    return "matvec" if T == 1 else "matmul"


def matmul(
    x, weight, bias, out, *, T, d_in, d_out, fmt, scales=NONE, out_row0=0, out_col0=0, out_stride=None,
    residual=NONE, variant=None,
) -> Dispatch:  # fmt: skip
    """Write x [T,d_in] times weight [d_out,d_in] transposed, plus bias [d_out] unless None, plus residual.

    residual lies as out does and is another buffer; "none" adds nothing.

    T = 1 takes matvec; a d_in that is not a multiple of 8 takes the plain matmul_any. variant names one of
    webgpu/variants.py for product_operation(T); None is the first.
    """
    overrides = {"WEIGHT_FORMAT": fmt, "HAS_BIAS": bias is not None}
    params = {
        "d_in": d_in,
        "d_out": d_out,
        "out_row0": out_row0,
        "out_col0": out_col0,
        "out_stride": d_out if out_stride is None else out_stride,
        "add_residual": int(residual != NONE),
    }
    bindings = {"x": x, "weight": weight, "bias": NONE if bias is None else bias, "residual": residual, "out": out}
    if d_in % 8:  # never blocks: their rows are multiples of 32
        return Dispatch("matmul_any", overrides, {"T": T, **params}, fold(ceil_div(T * d_out, 64)), bindings)
    bindings["scales"] = scales
    picked = pick(product_operation(T), variant, fmt=fmt)
    if picked == "groups":
        return _matmul_groups(T, overrides, params, bindings)
    quads = picked == "quads"
    if T == 1 and quads:
        return Dispatch("matvec_quads", overrides, params, fold(ceil_div(d_out, 8 * 8)), bindings)
    if quads:
        tall = T > QUAD_ROWS and ceil_div(T, QUAD_ROWS) != 3
        blocks = ceil_div(T, QUAD_ROWS * (1 + tall)) * ceil_div(d_out, 32)
        return Dispatch(
            "matmul_quads", overrides | {"TALL": tall}, {"T": T, **params}, fold(ceil_div(blocks, 2)), bindings
        )
    if T == 1 or picked == "plain":
        return Dispatch("matvec", overrides, {"T": T, **params}, fold(ceil_div(T * ceil_div(d_out, 4), 64)), bindings)
    blocks = ceil_div(T, 8) * ceil_div(d_out, 8)
    return Dispatch("matmul", overrides, {"T": T, **params}, fold(ceil_div(blocks, 32)), bindings)


def _matmul_groups(T: int, overrides: dict, params: dict, bindings: dict) -> Dispatch:
    """The product by workgroups that share rows of weights (one token, few tokens) or a tile."""
    d_out = params["d_out"]
    if T == 1:
        return Dispatch("matvec_groups", overrides, params, fold(ceil_div(d_out, 8)), bindings)
    if T <= FEW_TOKENS:
        few = ceil_div(T, 8) * ceil_div(d_out, 8)
        return Dispatch("matmul_few_groups", overrides, {"T": T, **params}, fold(few), bindings)
    tiles = ceil_div(T, 32) * ceil_div(d_out, 64)
    return Dispatch("matmul_groups", overrides, {"T": T, **params}, fold(tiles), bindings)


def rope(x, qkv, cos, sin, q, k, v, *, T, N, K, H, stride=None, out_row0=0, rotate=True) -> Dispatch:
    """Rotate the N + K heads that each row of x [T,stride] begins with, by tables cos and sin [T,H/2] -> q [T,N,H], k.

    qkv [T,N+2K,H]: its last K heads are copied to v. k and v [..,K,H] are written from row out_row0 on. stride: that of
    qkv if None; rotate=False copies (the tables may be "none").
    """
    if H % 2:
        raise UnsupportedShape(f"head dimension is {H}; rotary pairs need an even one.")
    heads = N + 2 * K
    params = {"T": T, "N": N, "K": K, "H": H, "stride": stride or heads * H, "out_row0": out_row0}
    tables = {"cos_table": cos if rotate else NONE, "sin_table": sin if rotate else NONE}
    bindings = {"x": x, "qkv": qkv, **tables, "q": q, "k": k, "v": v}
    return Dispatch("rope", {"ROTATE": rotate}, params, fold(ceil_div(T * heads * H // 2, 64)), bindings)


def swiglu(gate_up, out, *, T, F) -> Dispatch:
    """out [T,F] = silu(gate) * up, where a row of gate_up [T,2F] is F gates and then F of up."""
    return Dispatch("swiglu", {}, {"T": T, "F": F}, fold(ceil_div(T * F, 64)), {"gate_up": gate_up, "out": out})
