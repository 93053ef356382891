"""Attention as dispatches: many queries stream the keys, one query splits them. Mirrors static/gpu/attention.js.

`variant` names one of webgpu/variants.py; None is the first, which runs everywhere.
"""

from __future__ import annotations

from webgpu.dispatch import (
    MAX_IMAGE,
    MAX_TURNS,
    NEAREST,
    NONE,
    Dispatch,
    UnsupportedShape,
    ceil_div,
    check_groups,
    fold,
    head_dim,
)
from webgpu.variants import pick

HEAD_SLICE = 32  # dimensions of o per invocation of attention_fa2 and attention_decode
PACKED_ROWS = 64  # packed query rows per workgroup of all variants but attention_fa2 and attention_plain
DECODE_SPAN = 64  # keys per invocation of attention_decode


def attention_operation(T: int) -> str:
    """Which operation of webgpu/variants.py attends with T queries."""
    return "decode" if T == 1 else "attention"


def attention_variant(variant: str | None, *, T: int, S: int, N: int, H: int) -> str:
    """The name of the variant that will attend; what does not fit into an image leaves texels to the first."""
    picked = pick(attention_operation(T), variant, H=H, S=S)
    fits = max(T, S, N * H // 4) <= MAX_IMAGE
    return picked if fits or picked != "texels" else pick(attention_operation(T), None)


def attention_turns(S: int, H: int) -> int:
    """Loop turns of one invocation that streams S keys: attention_fa2 or attention_registers, which take the most."""
    return max(ceil_div(S, 4) * (1 + ceil_div(H, 16)) + 36, S + 16)


def attention_scratch(*, T, S, N, H) -> int:
    """Bytes of the `scratch` buffer that attention needs, whatever the variant (0 unless T = 1)."""
    return T * N * ceil_div(S, DECODE_SPAN) * (H + 4) * 4 if attention_operation(T) == "decode" else 0


def attention(
    q, k, v, o, lse, *, T, S, N, K, H, offset, window, sinks, scale, scratch=NONE, variant=None, most_flops=None
) -> list[Dispatch]:
    """Attention of q [T,N,H] over k and v [S,K,H] -> o [T,N,H], lse [N,T] natural log.

    Query t stands at offset + t; window 0 = all earlier keys; sinks = first keys always seen. T = 1 splits the keys
    and needs `scratch` of attention_scratch bytes; T > 1 streams them, in dispatches of about most_flops each
    (None: any). Raises UnsupportedShape, UnknownVariant.
    """
    check_groups(N, K)
    head_dim(H)
    name = attention_variant(variant, T=T, S=S, N=N, H=H)
    common = {"T": T, "S": S, "N": N, "K": K, "offset": offset, "window": window, "sinks": sinks, "scale": scale}
    if attention_operation(T) == "decode" and name != "plain":
        return _split(name, common, H, {"q": q, "k": k, "v": v, "part": scratch}, {"part": scratch, "o": o, "lse": lse})
    bindings = {"q": q, "k": k, "v": v, "o": o, "lse": lse}
    if name == "texels":
        return _texels(common, H, bindings, most_flops)
    return _stream(name, common, H, bindings, most_flops)


def _texels(common: dict, H: int, bindings: dict, most_flops: int | None) -> list[Dispatch]:
    """Queries, keys and values made into images, the same three for every layer, and attention that reads those."""
    T, S = common["T"], common["S"]
    q_width, width = common["N"] * H // 4, common["K"] * H // 4
    images = {"q": f"q_image:{q_width}*{T}"} | {name: f"{name}_image:{width}*{S}" for name in "kv"}
    made = Dispatch(
        "attention_images",
        {},
        {"T": T, "q_width": q_width, "S": S, "width": width},
        fold(max(T, S)),
        {name: bindings[name] for name in images} | {f"{name}_image": image for name, image in images.items()},
    )
    return [made, *_stream("texels", common, H, bindings | images | {NEAREST: NEAREST}, most_flops)]


def _stream(name: str, common: dict, H: int, bindings: dict, most_flops: int | None) -> list[Dispatch]:
    T, S, N, K = (common[letter] for letter in "TSNK")
    if attention_turns(S, H) >= MAX_TURNS:
        raise UnsupportedShape(f"{S} keys of head dimension {H} take over {MAX_TURNS} loop turns; use a shorter text.")
    if name == "plain":
        groups = ceil_div(T * N * H // 4, 16)
    elif name == "fa2":
        groups = ceil_div(ceil_div(T, 4) * ceil_div(H, HEAD_SLICE) * N, 16)
    else:
        groups = K * ceil_div(T * N // K, PACKED_ROWS)
    # Whole workgroups, whose rows stay where they are: a row's sums depend on its place among those beside it.
    most = groups if most_flops is None else max(1, min(groups, most_flops * groups // (4 * T * S * N * H)))
    step = ceil_div(groups, ceil_div(groups, most))
    return [
        Dispatch(
            f"attention_{name}", {"H": H}, {**common, "group0": group0}, fold(min(step, groups - group0)), bindings
        )
        for group0 in range(0, groups, step)
    ]  # fmt: skip


def _split(name: str, common: dict, H: int, bindings: dict, merge_bindings: dict) -> list[Dispatch]:
    T, S, N, K = (common[letter] for letter in "TSNK")
    splits = ceil_div(S, DECODE_SPAN)
    rows = K * ceil_div(T * N // K, 4)
    params = {**common, "span": DECODE_SPAN, "splits": splits}
    if name == "once":
        first = Dispatch("attention_split", {"H": H}, params, fold(ceil_div(rows * splits, 8)), bindings)
    else:
        blocks = rows * ceil_div(H, HEAD_SLICE) * splits
        first = Dispatch("attention_decode", {"H": H}, params, fold(ceil_div(blocks, 16)), bindings)
    merge = {"T": T, "N": N, "splits": splits}
    return [
        first,
        Dispatch("attention_merge", {"H": H}, merge, fold(ceil_div(T * N * H // 4, 16)), merge_bindings),
    ]
