"""What the kernels of the fused logit lens are asked to do; see ops.py. Mirrored by static/gpu/lens_ops.js."""

from __future__ import annotations

from webgpu.ops import MAX_TURNS, NONE, Dispatch, UnsupportedShape, ceil_div, fold, matmul
from webgpu.variants import pick

MAX_TOP_K = 16
LENS_TILE = 512  # vocabulary rows per invocation of lens_tile
LENS_PARTS = 1024  # most tiles a row's merge can take
LENS_WHOLE_BYTES = 64 << 20  # most bytes of logits that "groups" keeps for a moment; beyond, the first variant runs


def lens_tile(D: int, V: int, k: int = 10) -> int:
    """Vocabulary rows per invocation: at most LENS_TILE, few enough tiles to merge, few enough turns to finish."""
    tile = max(LENS_TILE, ceil_div(V, LENS_PARTS - 8) + 7) // 8 * 8
    while tile > 8 and tile // 8 * (ceil_div(D, 8) + 1) + tile * (k + 1) + 5 * k + 4 > MAX_TURNS:
        tile -= 8
    if ceil_div(V, tile) > LENS_PARTS - 8:
        raise UnsupportedShape(f"a vocabulary of {V} at width {D} needs more than {LENS_PARTS} tiles of {tile} rows.")
    return tile


def lens_parts(tables: list, *, D, V, k=10) -> int:
    """How many tiles the tables [(buffer, v0, v_count)] make together; a fourth entry is the buffer of scales."""
    return sum(ceil_div(v_count, lens_tile(D, V, k)) for _, _, v_count, *_ in tables)


def lens_variant(variant: str | None, *, rows, V, fmt) -> str:
    """The variant that will run."""
    picked = pick("lens", variant, fmt=fmt)
    return pick("lens", None) if picked == "groups" and 4 * rows * V > LENS_WHOLE_BYTES else picked


def lens_scratch(tables: list, *, rows, D, V, fmt, k=10, variant=None) -> dict[str, int]:
    """Bytes of each scratch buffer that lens needs, by argument name."""
    if lens_variant(variant, rows=rows, V=V, fmt=fmt) == "groups":
        return {"whole": rows * V * 4}
    parts = lens_parts(tables, D=D, V=V, k=k)
    return {
        "target_logit": rows * 4,
        "part_logits": rows * parts * k * 4,
        "part_ids": rows * parts * k * 4,
        "part_stats": rows * parts * 16,
    }


def lens(
    x, tables, targets, ids, logits, stats, *, target_logit=NONE, part_logits=NONE, part_ids=NONE, part_stats=NONE,
    whole=NONE, rows, D, V, fmt, k=10, variant=None,
) -> list[Dispatch]:  # fmt: skip
    """Unembed x [rows,D] (after the final norm) and keep what is asked of the logits.

    tables: [(buffer, v0, v_count)] in vocabulary order, a fourth entry names the scales of blocks. targets [rows] u32,
    0xffffffff = none. Scratch: lens_scratch.
    -> ids, logits [rows,k] (best first, equal logits: lower id first), stats [rows,4] = (lse, entropy in nats,
    target logit, target rank with 0 = best; without a target -1e30 and -1). log-probability = logit - lse.
    variant: one of webgpu/variants.py; None is the first.
    """
    if D % 8:
        raise UnsupportedShape(f"the model's width is {D}; the lens takes multiples of 8.")
    if not 1 <= k <= MAX_TOP_K:
        raise UnsupportedShape(f"k is {k}; the lens keeps 1 to {MAX_TOP_K} tokens.")
    picked, answer = lens_variant(variant, rows=rows, V=V, fmt=fmt), {"ids": ids, "logits": logits, "stats": stats}
    if picked == "groups":
        bindings = {"whole": whole, "targets": targets, **answer}
        rest = Dispatch("lens_groups", {"TOP_K": k}, {"rows": rows, "V": V}, fold(rows), bindings)
        return [*_products(x, tables, whole, rows, D, V, fmt), rest]
    target = {"targets": targets, "target_logit": target_logit}
    lists = {"part_logits": part_logits, "part_ids": part_ids, "part_stats": part_stats}
    tile, parts, quads = lens_tile(D, V, k), lens_parts(tables, D=D, V=V, k=k), picked == "quads"
    first, second, part0, eighths = [], [], 0, fold(ceil_div(rows, 8))
    for table, v0, v_count, *scales in tables:
        shape = {"rows": rows, "D": D, "v0": v0, "v_count": v_count}
        read = {"x": x, "table": table, "scales": scales[0] if scales else NONE, **target}
        first.append(Dispatch("lens_target", {"WEIGHT_FORMAT": fmt, "IN_ORDER": quads}, shape, eighths, read))
        params = {**shape, "tile": tile, "part0": part0, "parts": parts}
        second.append(_tiles(quads, fmt, k, params, {**read, **lists}))
        part0 += ceil_div(v_count, tile)
    params, bindings = {"rows": rows, "parts": parts}, {**lists, **target, **answer}
    return [*first, *second, Dispatch("lens_merge", {"TOP_K": k}, params, eighths, bindings)]


def _tiles(quads: bool, fmt: int, k: int, params: dict, bindings: dict) -> Dispatch:
    """Rows times the tiles of one table: an invocation owns four rows of a tile, a quad four or eight of four."""
    rows, tiles = params["rows"], ceil_div(params["v_count"], params["tile"])
    if quads:
        many = rows > 4  # eight rows then
        groups = ceil_div(ceil_div(rows, 8 if many else 4) * ceil_div(tiles, 4), 2)
        return Dispatch("lens_quads", {"TOP_K": k, "MANY": many}, params, fold(groups), bindings)
    groups = ceil_div(ceil_div(rows, 4) * tiles, 16)
    return Dispatch("lens_tile", {"WEIGHT_FORMAT": fmt, "TOP_K": k}, params, fold(groups), bindings)


def _products(x: str, tables: list, whole: str, rows: int, D: int, V: int, fmt: int) -> list[Dispatch]:
    """Logits [rows,V] of all tables, each into its columns."""
    rest = {"T": rows, "d_in": D, "fmt": fmt, "out_stride": V, "variant": "groups"}
    return [
        matmul(x, table, None, whole, d_out=v_count, out_col0=v0, scales=scales[0] if scales else NONE, **rest)
        for table, v0, v_count, *scales in tables
    ]
