"""What is asked of a finished pass, as data: heatmap windows, logits, lens rows. Mirrored by `static/gpu/queries.js`.

Each returns a Builder: buffers to make (scratch and results, by name) and steps to run. The kept buffers of the pass
(`q.l`, `k.l`, `lse.l`, `resid.l`) are bound by name.
"""

from collections.abc import Mapping
from math import lcm

from webgpu import lens_ops, ops
from webgpu.config import Config
from webgpu.layout import NORM
from webgpu.pieces import Placed, runs
from webgpu.plan import SUBMIT_FLOPS, Builder
from webgpu.slices import SLICE_ROWS

TOP = 10  # tokens a lens row keeps
LENS_ROWS = 8  # rows that lens_quads takes together; 9 cost what 16 do
QUERY_FLOPS = 2_000_000_000
WALL_FLOPS = 4_000_000_000
WALL_BYTES = 16 << 20

Choice = Mapping[str, str] | None  # operation -> variant


def window(
    config: Config, placed: Mapping[str, Placed], *, layer: int, T: int, head0: int, heads: int, row0: int, rows: int,
    col0: int, cols: int, out_rows: int, out_cols: int, reduce: str, choice: Choice = None,
    submit_flops: int | None = None,
) -> Builder:  # fmt: skip
    """Heads head0.. of one layer's pattern, reduced to pixels: buffer `window` [heads,out_rows,out_cols] f32."""
    plan = Builder(config, placed, submit_flops or SUBMIT_FLOPS, choice)
    plan.clear(plan.buffer("window", heads * out_rows * out_cols))
    pixels(
        plan, "window", layer=layer, T=T, head0=head0, heads=heads, row0=row0, rows=rows, col0=col0, cols=cols,
        out_rows=out_rows, out_cols=out_cols, reduce=reduce,
    )  # fmt: skip
    return plan


def thumbnails(
    config: Config, placed: Mapping[str, Placed], *, layer0: int, layers: int, T: int, out: int, reduce: str,
    choice: Choice = None, submit_flops: int | None = None,
) -> Builder:  # fmt: skip
    """Whole patterns of every head of some layers as out x out pixels, for one readback.

    Buffer `thumbnails`: thumbnail_words of f32 a layer, the first N * out * out of them [N,out,out].
    """
    plan = Builder(config, placed, submit_flops or SUBMIT_FLOPS, choice)
    slot_bytes = 4 * thumbnail_words(config, out)
    plan.clear(plan.buffer("thumbnails", layers * slot_bytes // 4))
    for index in range(layers):
        pixels(
            plan, f"thumbnails@{index * slot_bytes}+{slot_bytes}", layer=layer0 + index, T=T, head0=0, heads=config.N,
            row0=0, rows=T, col0=0, cols=T, out_rows=out, out_cols=out, reduce=reduce,
        )  # fmt: skip
    return plan


def thumbnail_words(config: Config, out: int) -> int:
    """Words of a layer's thumbnails, up to a multiple of 64: a binding starts at a multiple of 256 bytes."""
    return -(-config.N * out * out // 64) * 64


def layers_per_query(config: Config, T: int, out: int) -> int:
    """How many layers one thumbnails query should take, so that the first answer comes soon and stays small."""
    flops, size_bytes = 2 * config.N * max(T, out) ** 2 * config.H, 4 * thumbnail_words(config, out)
    return max(1, min(config.L, WALL_FLOPS // flops, WALL_BYTES // size_bytes))


def pixels(plan: Builder, out: str, *, layer: int, T: int, heads: int, **place: int | str) -> None:
    """Part of a layer's pattern into a binding that holds zeros; above the diagonal there is nothing to do."""
    c = plan.config
    dispatches = ops.attention_probs(
        q=f"q.{layer}", k=f"k.{layer}", lse=f"lse.{layer}", out=out, T=T, S=T, N=c.N, K=c.K, H=c.H, heads=heads,
        **place, offset=0, window=c.windows[layer], sinks=0, scale=c.scale, variant=plan.choice.get("cells"),
        most_flops=plan.submit_flops,
    )  # fmt: skip
    flops = 2 * heads * max(place["rows"], place["out_rows"]) * max(place["cols"], place["out_cols"]) * c.H
    for dispatch in dispatches:
        plan.emit(dispatch, flops // len(dispatches))


def logits(
    config: Config, placed: Mapping[str, Placed], *, sources: list[tuple[int, int, int]], choice: Choice = None,
    submit_flops: int | None = None,
) -> Builder:  # fmt: skip
    """Final norm and unembedding of rows of the residual stream: buffers `final_norm` [R,D] and `logits` [R,V] f32.

    sources: (layer 0 .. L, row0, rows), one after the other; R rows in all.
    """
    plan = Builder(config, placed, submit_flops or SUBMIT_FLOPS, choice)
    plan.logits(residual(plan, sources), sum(rows for _, _, rows in sources))
    return plan


def lens(
    config: Config, placed: Mapping[str, Placed], *, sources: list[tuple[int, int, int]], choice: Choice = None,
    submit_flops: int | None = None,
) -> Builder:  # fmt: skip
    """Logit lens of rows of the residual stream, like `logits`, but no [R,V] comes back. D is a multiple of 8.

    In: buffer `targets` [R] u32,
    0xffffffff = none. Out: `lens_ids` and `lens_logits` [R,10], `lens_stats` [R,4] f32 = (lse, entropy in nats,
    target logit, target rank).
    """
    plan, c = Builder(config, placed, submit_flops or SUBMIT_FLOPS, choice), config
    rows = sum(count for _, _, count in sources)
    x = residual(plan, sources)
    normed = plan.norm(x, NORM, plan.buffer("lens_normed", rows * c.D), rows, c.D)
    head = placed[plan.head()]
    tables = vocabulary(plan, head, rows)
    how = {"rows": rows, "D": c.D, "V": c.V, "fmt": head.fmt, "k": TOP, "variant": plan.choice.get("lens")}
    sizes = lens_ops.lens_scratch(tables, **how)
    dispatches = lens_ops.lens(
        x=normed, tables=tables, targets=plan.buffer("targets", rows), ids=plan.buffer("lens_ids", rows * TOP),
        logits=plan.buffer("lens_logits", rows * TOP), stats=plan.buffer("lens_stats", rows * 4),
        **how, **{name: plan.buffer(f"lens_{name}", size // 4) for name, size in sizes.items()},
    )  # fmt: skip
    for dispatch in dispatches:
        multiplies = dispatch.kernel not in ("lens_target", "lens_merge", "lens_groups")
        plan.emit(dispatch, 2 * taken(rows) * c.D * c.V // len(tables) if multiplies else 0)
    return plan


def vocabulary(plan: Builder, head: Placed, rows: int) -> list[tuple[str, int, int, str]]:
    """The unembedding as the lens takes it, (buffer, v0, v_count, scales): its pieces, in slices for many rows."""
    D, V = plan.config.D, plan.config.V
    unit = lcm(4 * lens_ops.lens_tile(D, V, TOP), SLICE_ROWS)  # a quad of lens_quads owns four tiles
    tables, v0 = [], 0
    for run in runs([head], max(plan.submit_flops // (2 * taken(rows) * D), 1), unit):
        tables.append((run.weight, v0, run.rows, run.scales))
        v0 += run.rows
    return tables


def residual(plan: Builder, sources: list[tuple[int, int, int]]) -> str:
    """Rows of the kept residual stream, copied to scratch (a binding may only start at a multiple of 256 bytes)."""
    row_bytes, row = 4 * plan.config.D, 0
    x = plan.buffer("rows", sum(rows for _, _, rows in sources) * plan.config.D)
    for layer, row0, rows in sources:
        plan.copy(f"resid.{layer}", row0 * row_bytes, x, row * row_bytes, rows * row_bytes)
        row += rows
    return x


def rows_per_query(config: Config) -> int:
    """How many rows one lens or logits query should take, so that its product with the vocabulary stays short."""
    most = max(1, min(256, QUERY_FLOPS // (2 * config.D * config.V)))
    return most // LENS_ROWS * LENS_ROWS or most


def taken(rows: int) -> int:
    """Rows that the lens multiplies for so many: eights, or one four."""
    return LENS_ROWS // 2 if rows <= LENS_ROWS // 2 else -(-rows // LENS_ROWS) * LENS_ROWS
