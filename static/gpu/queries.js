/**
 * What is asked of a finished pass, as data: heatmap windows, logits, lens rows. Mirrors webgpu/queries.py.
 *
 * Each returns a Builder: buffers to make (scratch and results, by name) and steps to run.
 * @module
 */
import { NORM } from "./layout.js";
import { lens as lensOps, lensScratch } from "./lens_ops.js";
import { attentionProbs } from "./ops.js";
import { Builder } from "./plan.js";

/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {[layer: number, row0: number, rows: number]} Source rows of the residual stream entering a layer (L: the last) */

export const TOP = 10;
export const QUERY_FLOPS = 2_000_000_000;

/**
 * Heads head0.. of one layer's pattern, reduced to pixels: buffer `window` [heads,out_rows,out_cols] f32.
 * @param {Config} config @param {Layout} placed
 * @param {{layer: number, T: number, head0: number, heads: number, row0: number, rows: number, col0: number, cols: number,
 *   out_rows: number, out_cols: number, reduce: string}} options
 */
export function window(config, placed, options) {
  const { layer, T, heads, rows, cols, out_rows, out_cols } = options;
  const { N, K, H, windows, scale } = config;
  const plan = new Builder(config, placed);
  const out = plan.buffer("window", heads * out_rows * out_cols);
  const names = { q: `q.${layer}`, k: `k.${layer}`, lse: `lse.${layer}`, out };
  const fixed = { S: T, N, K, H, offset: 0, window: windows[layer], sinks: 0, scale };
  const dispatches = attentionProbs({ ...options, ...names, ...fixed });
  const flops = 2 * heads * Math.max(rows, out_rows) * Math.max(cols, out_cols) * H;
  for (const dispatch of dispatches) plan.emit(dispatch, Math.floor(flops / dispatches.length));
  return plan;
}

/**
 * Final norm and unembedding of rows of the residual stream: buffers `final_norm` [R,D] and `logits` [R,V] f32.
 * @param {Config} config @param {Layout} placed @param {{sources: Source[]}} options
 */
export function logits(config, placed, { sources }) {
  const plan = new Builder(config, placed);
  plan.logits(residual(plan, sources), countRows(sources));
  return plan;
}

/**
 * Logit lens of rows of the residual stream, fused: like `logits`, but no [R,V] is kept. D is a multiple of 8.
 * In: `targets` [R] u32, 0xffffffff = none. Out: `lens_ids`, `lens_logits` [R,10], `lens_stats` [R,4] f32.
 * @param {Config} config @param {Layout} placed @param {{sources: Source[]}} options
 */
export function lens(config, placed, { sources }) {
  const { D, V } = config;
  const plan = new Builder(config, placed);
  const rows = countRows(sources);
  const x = plan.norm(residual(plan, sources), NORM, plan.buffer("lens_normed", rows * D), rows, D);
  const { pieces, fmt } = plan.tensor(plan.head());
  const tables = pieces.map((piece) => /** @type {import("./ops.js").Table} */ ([piece.buffer, piece.row0, piece.rows]));
  const targets = plan.buffer("targets", rows);
  const ids = plan.buffer("lens_ids", rows * TOP);
  const best = plan.buffer("lens_logits", rows * TOP);
  const stats = plan.buffer("lens_stats", rows * 4);
  const sizes = lensScratch(tables, { rows, D, V, k: TOP });
  const scratch = { target_logit: "", part_logits: "", part_ids: "", part_stats: "" };
  for (const name of /** @type {(keyof typeof scratch)[]} */ (Object.keys(scratch))) {
    scratch[name] = plan.buffer(`lens_${name}`, sizes[name] / 4);
  }
  for (const dispatch of lensOps({ x, tables, targets, ids, logits: best, stats, ...scratch, rows, D, V, fmt, k: TOP })) {
    plan.emit(dispatch, dispatch.kernel === "lens_tile" ? Math.floor((2 * rows * D * V) / tables.length) : 0);
  }
  return plan;
}

/**
 * Rows of the kept residual stream, copied to scratch (a binding may only start at a multiple of 256 bytes).
 * @param {Builder} plan @param {Source[]} sources
 */
function residual(plan, sources) {
  const rowBytes = 4 * plan.config.D;
  const target = plan.buffer("rows", countRows(sources) * plan.config.D);
  let row = 0;
  for (const [layer, row0, rows] of sources) {
    const bytes = rows * rowBytes;
    plan.copy({ source: `resid.${layer}`, source_start: row0 * rowBytes, target, target_start: row * rowBytes, bytes });
    row += rows;
  }
  return target;
}

/** @param {Source[]} sources */
export function countRows(sources) {
  return sources.reduce((sum, [, , rows]) => sum + rows, 0);
}

/**
 * How many rows one lens or logits query should take, so that its product with the vocabulary stays short.
 * @param {Config} config
 */
export function rowsPerQuery({ D, V }) {
  return Math.max(1, Math.min(256, Math.floor(QUERY_FLOPS / (2 * D * V))));
}
