/**
 * What is asked of a finished pass, as data: heatmap windows, logits, lens rows. Mirrors webgpu/queries.py.
 *
 * Each returns a Builder: buffers to make (scratch and results, by name) and steps to run.
 * @module
 */
import { NORM } from "./layout.js";
import { lens as lensOps, lensScratch, lensTile } from "./lens_ops.js";
import { attentionProbs } from "./ops.js";
import { runs } from "./pieces.js";
import { Builder } from "./plan.js";
import { SLICE_ROWS } from "./slices.js";

/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./variants.js").Choice} Choice */
/**
 * @typedef {{layer: number, T: number, head0: number, heads: number, row0: number, rows: number, col0: number, cols: number,
 *   out_rows: number, out_cols: number, reduce: string}} Place
 */
/** @typedef {[layer: number, row0: number, rows: number]} Source rows of the residual stream entering a layer (L: the last) */

export const TOP = 10;
/** Rows that lens_quads takes together; 9 cost what 16 do. */
export const LENS_ROWS = 8;
export const QUERY_FLOPS = 2_000_000_000;
export const WALL_FLOPS = 4_000_000_000;
export const WALL_BYTES = 16 * 2 ** 20;

/**
 * Heads head0.. of one layer's pattern, reduced to pixels: buffer `window` [heads,out_rows,out_cols] f32.
 * @param {Config} config @param {Layout} placed @param {Place & {choice?: Choice, submit_flops?: number}} options
 */
export function window(config, placed, { choice = {}, submit_flops, ...place }) {
  const plan = new Builder(config, placed, submit_flops, choice);
  plan.clear(plan.buffer("window", place.heads * place.out_rows * place.out_cols));
  pixels(plan, "window", place);
  return plan;
}

/**
 * Whole patterns of every head of some layers as out x out pixels, for one readback. Buffer `thumbnails`: thumbnailWords of
 * f32 a layer, the first N * out * out of them [N,out,out].
 * @param {Config} config @param {Layout} placed
 * @param {{layer0: number, layers: number, T: number, out: number, reduce: string, choice?: Choice, submit_flops?: number}} options
 */
export function thumbnails(config, placed, { layer0, layers, T, out, reduce, choice = {}, submit_flops }) {
  const plan = new Builder(config, placed, submit_flops, choice);
  const slotBytes = 4 * thumbnailWords(config, out);
  plan.clear(plan.buffer("thumbnails", (layers * slotBytes) / 4));
  const whole = { head0: 0, heads: config.N, row0: 0, rows: T, col0: 0, cols: T, out_rows: out, out_cols: out, reduce };
  for (let index = 0; index < layers; index++) {
    pixels(plan, `thumbnails@${index * slotBytes}+${slotBytes}`, { layer: layer0 + index, T, ...whole });
  }
  return plan;
}

/** Words of a layer's thumbnails, up to a multiple of 64. @param {Config} config @param {number} out */
export const thumbnailWords = ({ N }, out) => Math.ceil((N * out * out) / 64) * 64;

/**
 * How many layers one thumbnails query should take, so that the first answer comes soon and stays small.
 * @param {Config} config @param {number} T @param {number} out
 */
export function layersPerQuery(config, T, out) {
  const flops = 2 * config.N * Math.max(T, out) ** 2 * config.H;
  const sizeBytes = 4 * thumbnailWords(config, out);
  return Math.max(1, Math.min(config.L, Math.floor(WALL_FLOPS / flops), Math.floor(WALL_BYTES / sizeBytes)));
}

/**
 * Part of a layer's pattern into a binding that holds zeros; above the diagonal there is nothing to do.
 * @param {Builder} plan @param {string} out @param {Place} place
 */
function pixels(plan, out, { layer, T, ...place }) {
  const { N, K, H, windows, scale } = plan.config;
  const { heads, rows, cols, out_rows, out_cols } = place;
  const names = { q: `q.${layer}`, k: `k.${layer}`, lse: `lse.${layer}`, out };
  const fixed = { T, S: T, N, K, H, offset: 0, window: windows[layer], sinks: 0, scale };
  const how = { variant: plan.choice.cells, most_flops: plan.submitFlops };
  const dispatches = attentionProbs({ ...place, ...names, ...fixed, ...how });
  const flops = 2 * heads * Math.max(rows, out_rows) * Math.max(cols, out_cols) * H;
  for (const dispatch of dispatches) plan.emit(dispatch, Math.floor(flops / dispatches.length));
}

/**
 * Final norm and unembedding of rows of the residual stream: buffers `final_norm` [R,D] and `logits` [R,V] f32.
 * @param {Config} config @param {Layout} placed @param {{sources: Source[], choice?: Choice, submit_flops?: number}} options
 */
export function logits(config, placed, { sources, choice = {}, submit_flops }) {
  const plan = new Builder(config, placed, submit_flops, choice);
  plan.logits(residual(plan, sources), countRows(sources));
  return plan;
}

/**
 * Logit lens of rows of the residual stream, like `logits`, but no [R,V] comes back. D is a multiple of 8.
 * In: `targets` [R] u32, 0xffffffff = none. Out: `lens_ids`, `lens_logits` [R,10], `lens_stats` [R,4] f32.
 * @param {Config} config @param {Layout} placed @param {{sources: Source[], choice?: Choice, submit_flops?: number}} options
 */
export function lens(config, placed, { sources, choice = {}, submit_flops }) {
  const { D, V } = config;
  const plan = new Builder(config, placed, submit_flops, choice);
  const rows = countRows(sources);
  const x = plan.norm(residual(plan, sources), NORM, plan.buffer("lens_normed", rows * D), rows, D);
  const { fmt } = plan.tensor(plan.head());
  const tables = vocabulary(plan, rows);
  const targets = plan.buffer("targets", rows);
  const ids = plan.buffer("lens_ids", rows * TOP);
  const best = plan.buffer("lens_logits", rows * TOP);
  const stats = plan.buffer("lens_stats", rows * 4);
  const how = { rows, D, V, fmt, k: TOP, variant: plan.choice.lens };
  /** @type {Record<string, string>} */
  const scratch = {};
  for (const [name, bytes] of Object.entries(lensScratch(tables, how))) scratch[name] = plan.buffer(`lens_${name}`, bytes / 4);
  for (const dispatch of lensOps({ x, tables, targets, ids, logits: best, stats, ...scratch, ...how })) {
    const multiplies = !["lens_target", "lens_merge", "lens_groups"].includes(dispatch.kernel);
    plan.emit(dispatch, multiplies ? Math.floor((2 * taken(rows) * D * V) / tables.length) : 0);
  }
  return plan;
}

/**
 * The unembedding as the lens takes it: its pieces, in slices for many rows.
 * @param {Builder} plan @param {number} rows @returns {import("./ops.js").Table[]}
 */
function vocabulary(plan, rows) {
  const { D, V } = plan.config;
  const quad = 4 * lensTile(D, V, TOP); // of lens_quads owns four tiles
  const unit = (quad / gcd(quad, SLICE_ROWS)) * SLICE_ROWS;
  let v0 = 0;
  return runs([plan.tensor(plan.head())], Math.max(Math.floor(plan.submitFlops / (2 * taken(rows) * D)), 1), unit).map((run) => {
    v0 += run.rows;
    return [run.weight, v0 - run.rows, run.rows, run.scales];
  });
}

/** @param {number} a @param {number} b @returns {number} */
const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));

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
  const most = Math.max(1, Math.min(256, Math.floor(QUERY_FLOPS / (2 * D * V))));
  return Math.floor(most / LENS_ROWS) * LENS_ROWS || most;
}

/** Rows that the lens multiplies for so many: eights, or one four. @param {number} rows */
function taken(rows) {
  return rows <= LENS_ROWS / 2 ? LENS_ROWS / 2 : Math.ceil(rows / LENS_ROWS) * LENS_ROWS;
}
