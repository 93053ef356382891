"""Windows of the attention pattern as dispatches: cells one by one, or many cells reduced to a pixel.

Mirrors static/gpu/probs.js. `variant` names one of webgpu/variants.py ("cells"); None is the first, which runs
everywhere. `out` begins as zeros: nothing is written above the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

from webgpu.dispatch import MAX_TURNS, Dispatch, UnsupportedShape, ceil_div, check_groups, fold, head_dim
from webgpu.variants import pick


@dataclass(frozen=True)
class Shape:
    """How a variant cuts its work: the end of its kernels' names, a workgroup's invocations, an invocation's keys."""

    suffix: str
    workgroup: int
    keys: int


SHAPES = {"rows": Shape("", 16, 64), "quads": Shape("_quads", 8, 256)}
ROWS = 4  # query rows of an invocation


def attention_probs(
    q, k, lse, out, *, T, S, N, K, H, head0, heads, row0, rows, col0, cols, out_rows, out_cols, reduce, offset, window,
    sinks, scale, variant=None, most_flops=None,
) -> list[Dispatch]:  # fmt: skip
    """Rebuild the pattern of heads head0.. for one window -> out [heads,out_rows,out_cols], which begins as zeros.

    reduce is "max" or "mean" over the cells of a pixel. A window of pixels that are cells takes the quick kernel. More
    work than about most_flops (None: any) or than the loop limit is cut into several dispatches.
    Raises UnsupportedShape, UnknownVariant.
    """
    check_groups(N, K)
    if reduce not in ("max", "mean"):
        raise UnsupportedShape(f'reduce is {reduce!r}; allowed are "max" and "mean".')
    if row0 + rows > T or col0 + cols > S or head0 + heads > N:
        raise UnsupportedShape(
            f"window rows {row0}+{rows}, columns {col0}+{cols}, heads {head0}+{heads} leaves the pattern [{N},{T},{S}]."
        )
    name = pick("cells", variant, H=head_dim(H))
    place = {
        "T": T, "S": S, "N": N, "K": K, "head0": head0, "row0": row0, "rows": rows, "col0": col0, "cols": cols,
        "out_rows": out_rows, "out_cols": out_cols,
    }  # fmt: skip
    rest = {"offset": offset, "window": window, "sinks": sinks, "scale": scale}
    bindings = {"q": q, "k": k, "lse": lse, "out": out}
    if name == "plain" and plain_turns(place, H) < MAX_TURNS:
        params = {name: value for name, value in {**place, **rest, "heads": heads}.items() if name != "S"}
        grid = fold(ceil_div(heads * out_rows * out_cols, 16))
        return [Dispatch("attention_pixels_plain", {"H": H, "MEAN": reduce == "mean"}, params, grid, bindings)]
    shape = SHAPES.get(name, SHAPES["rows"])
    if (rows, cols) == (out_rows, out_cols):
        return _cells(shape, H, heads, place, rest, bindings, most_flops)
    return _pixels(shape, H, reduce == "mean", heads, place, rest, bindings, most_flops)


def _cells(shape: Shape, H: int, heads: int, place: dict, rest: dict, bindings: dict, most_flops: int | None):
    rows, cols, block = place["rows"], place["cols"], ROWS * shape.workgroup
    step = ceil_div(rows, block) * block
    if most_flops is not None:
        step = min(step, max(1, most_flops // (2 * H * heads * cols * block)) * block)
    return [
        Dispatch(
            f"attention_cells{shape.suffix}",
            {"H": H},
            {**place, "slice0": row, "slice1": min(row + step, rows), "span": shape.keys, **rest},
            (ceil_div(cols, shape.keys), ceil_div(min(step, rows - row), block), heads),
            bindings,
        )
        for row in range(0, rows, step)
    ]


def _pixels(shape: Shape, H: int, mean: bool, heads: int, place: dict, rest: dict, bindings: dict, most_flops):
    out_rows, out_cols = place["out_rows"], place["out_cols"]
    pixel_rows, pixel_cols = ceil_div(place["rows"], out_rows), ceil_div(place["cols"], out_cols)
    span = max(1, min(out_cols, shape.keys // pixel_cols))
    step = (MAX_TURNS - 1) // (span * pixel_turns(pixel_cols, H)) * ROWS
    if step == 0:
        raise UnsupportedShape(
            f"a pixel of {pixel_cols} columns takes over {MAX_TURNS} loop turns; ask for more pixels."
        )
    if most_flops is not None:
        row_flops = 2 * H * heads * out_rows * out_cols * pixel_cols
        step = min(step, max(1, most_flops // (row_flops * ROWS)) * ROWS)
    return [
        Dispatch(
            f"attention_pixels{shape.suffix}",
            {"H": H, "MEAN": mean},
            {**place, "slice0": row, "slice1": min(row + step, pixel_rows), "span": span, **rest},
            (ceil_div(out_cols, span), ceil_div(out_rows, shape.workgroup), heads),
            bindings,
        )
        for row in range(0, pixel_rows, step)
    ]


def plain_turns(place: dict, H: int) -> int:
    """Loop turns of one invocation that takes the cells of a pixel one by one."""
    pixel_rows, pixel_cols = (ceil_div(place[side], place[f"out_{side}"]) for side in ("rows", "cols"))
    return pixel_rows * (1 + pixel_cols * (1 + H // 4))


def pixel_turns(pixel_cols: int, H: int) -> int:
    """Loop turns of one invocation for four rows of one pixel; heads wider than 128 take turns for the rest."""
    return 1 + pixel_cols * (1 + (ceil_div(H - 128, 16) if H > 128 else 0))
