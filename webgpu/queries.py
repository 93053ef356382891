"""What is asked of a finished pass, as data: heatmap windows, logits, lens rows. Mirrored by `static/gpu/queries.js`.

Each returns a Builder: buffers to make (scratch and results, by name) and steps to run. The kept buffers of the pass
(`q.l`, `k.l`, `lse.l`, `resid.l`) are bound by name.
"""

from collections.abc import Mapping

from webgpu import lens_ops, ops
from webgpu.config import Config
from webgpu.layout import NORM, Placed
from webgpu.plan import Builder

TOP = 10  # tokens a lens row keeps
QUERY_FLOPS = 2_000_000_000


def window(
    config: Config, placed: Mapping[str, Placed], *, layer: int, T: int, head0: int, heads: int, row0: int, rows: int,
    col0: int, cols: int, out_rows: int, out_cols: int, reduce: str,
) -> Builder:  # fmt: skip
    """Heads head0.. of one layer's pattern, reduced to pixels: buffer `window` [heads,out_rows,out_cols] f32."""
    plan, c = Builder(config, placed), config
    out = plan.buffer("window", heads * out_rows * out_cols)
    dispatches = ops.attention_probs(
        q=f"q.{layer}", k=f"k.{layer}", lse=f"lse.{layer}", out=out, T=T, S=T, N=c.N, K=c.K, H=c.H, head0=head0,
        heads=heads, row0=row0, rows=rows, col0=col0, cols=cols, out_rows=out_rows, out_cols=out_cols, reduce=reduce,
        offset=0, window=c.windows[layer], sinks=0, scale=c.scale,
    )  # fmt: skip
    flops = 2 * heads * max(rows, out_rows) * max(cols, out_cols) * c.H // len(dispatches)
    for dispatch in dispatches:
        plan.emit(dispatch, flops)
    return plan


def logits(config: Config, placed: Mapping[str, Placed], *, sources: list[tuple[int, int, int]]) -> Builder:
    """Final norm and unembedding of rows of the residual stream: buffers `final_norm` [R,D] and `logits` [R,V] f32.

    sources: (layer 0 .. L, row0, rows), one after the other; R rows in all.
    """
    plan = Builder(config, placed)
    plan.logits(residual(plan, sources), sum(rows for _, _, rows in sources))
    return plan


def lens(config: Config, placed: Mapping[str, Placed], *, sources: list[tuple[int, int, int]]) -> Builder:
    """Logit lens of rows of the residual stream, fused: like `logits`, but no [R,V] is kept. D is a multiple of 8.

    In: buffer `targets` [R] u32,
    0xffffffff = none. Out: `lens_ids` and `lens_logits` [R,10], `lens_stats` [R,4] f32 = (lse, entropy in nats,
    target logit, target rank).
    """
    plan, c, rows = Builder(config, placed), config, sum(count for _, _, count in sources)
    x = residual(plan, sources)
    normed = plan.norm(x, NORM, plan.buffer("lens_normed", rows * c.D), rows, c.D)
    head = placed[plan.head()]
    tables = [(piece.buffer, piece.row0, piece.rows) for piece in head.pieces]
    sizes = lens_ops.lens_scratch(tables, rows=rows, D=c.D, V=c.V, k=TOP)
    dispatches = lens_ops.lens(
        x=normed, tables=tables, targets=plan.buffer("targets", rows), ids=plan.buffer("lens_ids", rows * TOP),
        logits=plan.buffer("lens_logits", rows * TOP), stats=plan.buffer("lens_stats", rows * 4),
        rows=rows, D=c.D, V=c.V, fmt=head.fmt, k=TOP,
        **{name: plan.buffer(f"lens_{name}", size // 4) for name, size in sizes.items()},
    )  # fmt: skip
    for dispatch in dispatches:
        plan.emit(dispatch, 2 * rows * c.D * c.V // len(tables) if dispatch.kernel == "lens_tile" else 0)
    return plan


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
    return max(1, min(256, QUERY_FLOPS // (2 * config.D * config.V)))
