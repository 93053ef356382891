/**
 * What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.
 *
 * Attention is in attention.js, the lens in lens_ops.js. Mirrors webgpu/ops.py, where shapes are described; a test holds
 * both to the same list of dispatches.
 * Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs; vectors are f32.
 * @module
 */
import { MAX_TURNS, NONE, UnsupportedShape, ceil, checkGroups, fold, headDim } from "./dispatch.js";

export { MAX_GROUPS, MAX_HEAD_DIM, MAX_TURNS, NONE, UnsupportedShape, fold } from "./dispatch.js";
export { attention, attentionOperation, attentionScratch, attentionTurns } from "./attention.js";

/** @typedef {import("./dispatch.js").Dispatch} Dispatch */
/** @typedef {[buffer: string, v0: number, vCount: number]} Table a piece of the vocabulary */

export const MAX_TOP_K = 16;
export const LENS_TILE = 512;
export const LENS_PARTS = 1024;

/**
 * Write out [T,D] for the ids that fall into this table's vocabulary rows v0 .. v0+v_count-1.
 * @param {{ids: string, table: string, out: string, T: number, D: number, v0: number, v_count: number, fmt: number}} given
 * @returns {Dispatch}
 */
export function embedding({ ids, table, out, T, D, v0, v_count, fmt }) {
  const params = { T, D, v0, v_count };
  const grid = fold(ceil(T * D, 64));
  return { kernel: "embedding", overrides: { WEIGHT_FORMAT: fmt }, params, grid, bindings: { ids, table, out } };
}

/**
 * Normalise rows of [rows,width]; QK-norm is rows = T * heads, width = H.
 * @param {{x: string, weight: string, out: string, rows: number, width: number, eps: number}} given
 * @returns {Dispatch}
 */
export function rmsnorm({ x, weight, out, rows, width, eps }) {
  const params = { rows, width, eps };
  return { kernel: "rmsnorm", overrides: {}, params, grid: fold(ceil(rows, 8)), bindings: { x, weight, out } };
}

/**
 * Write x [T,d_in] times weight [d_out,d_in] transposed, plus bias [d_out] unless null.
 * T = 1 takes matvec; a d_in that is not a multiple of 8 takes the plain matmul_any.
 * @param {{x: string, weight: string, bias: string | null, out: string, T: number, d_in: number, d_out: number,
 *   fmt: number, out_row0?: number, out_col0?: number, out_stride?: number}} given
 * @returns {Dispatch}
 */
export function matmul({ x, weight, bias, out, T, d_in, d_out, fmt, out_row0 = 0, out_col0 = 0, out_stride = d_out }) {
  const overrides = { WEIGHT_FORMAT: fmt, HAS_BIAS: bias !== null };
  const params = { d_in, d_out, out_row0, out_col0, out_stride };
  const bindings = { x, weight, bias: bias ?? NONE, out };
  if (d_in % 8) {
    return { kernel: "matmul_any", overrides, params: { T, ...params }, grid: fold(ceil(T * d_out, 64)), bindings };
  }
  if (T === 1) return { kernel: "matvec", overrides, params, grid: fold(ceil(d_out, 4 * 64)), bindings };
  const blocks = ceil(T, 8) * ceil(d_out, 8);
  return { kernel: "matmul", overrides, params: { T, ...params }, grid: fold(ceil(blocks, 32)), bindings };
}

/**
 * Rotate x [T,heads,H] by tables cos and sin [T,H/2]; rotate = false copies.
 * @param {{x: string, cos: string, sin: string, out: string, T: number, heads: number, H: number, out_row0?: number,
 *   rotate?: boolean}} given
 * @returns {Dispatch}
 */
export function rope({ x, cos, sin, out, T, heads, H, out_row0 = 0, rotate = true }) {
  if (H % 2) throw new UnsupportedShape(`head dimension is ${H}; rotary pairs need an even one.`);
  return {
    kernel: "rope",
    overrides: { ROTATE: rotate },
    params: { T, heads, H, out_row0 },
    grid: fold(ceil(Math.floor((T * heads * H) / 2), 64)),
    bindings: { x, cos_table: rotate ? cos : NONE, sin_table: rotate ? sin : NONE, out },
  };
}

/**
 * Rebuild the pattern of heads head0.. for one window -> out [heads,out_rows,out_cols], "max" or "mean" over the cells of
 * a pixel. Pixels that are cells take the quick kernel; pixels of many cells are reduced over several dispatches.
 * @param {{q: string, k: string, lse: string, out: string, T: number, S: number, N: number, K: number, H: number,
 *   head0: number, heads: number, row0: number, rows: number, col0: number, cols: number, out_rows: number,
 *   out_cols: number, reduce: string, offset: number, window: number, sinks: number, scale: number}} given
 * @returns {Dispatch[]}
 */
export function attentionProbs(given) {
  const { q, k, lse, out, T, S, N, K, H, head0, heads, row0, rows, col0, cols, out_rows, out_cols, reduce } = given;
  checkGroups(N, K);
  if (reduce !== "max" && reduce !== "mean") {
    throw new UnsupportedShape(`reduce is '${reduce}'; allowed are "max" and "mean".`);
  }
  if (row0 + rows > T || col0 + cols > S || head0 + heads > N) {
    throw new UnsupportedShape(
      `window rows ${row0}+${rows}, columns ${col0}+${cols}, heads ${head0}+${heads} leaves the pattern [${N},${T},${S}].`,
    );
  }
  const { offset, window, sinks, scale } = given;
  const place = { T, S, N, K, head0, row0, rows, col0, cols, out_rows, out_cols };
  const params = { ...place, slice0: 0, slice1: 0, offset, window, sinks, scale };
  const bindings = { q, k, lse, out };
  if (rows === out_rows && cols === out_cols) {
    const overrides = { H: headDim(H) };
    return [{ kernel: "attention_cells", overrides, params, grid: [ceil(ceil(cols, 4), 16), ceil(rows, 4), heads], bindings }];
  }
  const overrides = { H: headDim(H), MEAN: reduce === "mean" };
  const pixelRows = ceil(rows, out_rows);
  const turns = 1 + ceil(ceil(cols, out_cols), 4) * (5 + ceil(H, 16));
  const step = Math.floor((MAX_TURNS - 1) / turns) * 4;
  if (step === 0) {
    throw new UnsupportedShape(`a pixel of ${ceil(cols, out_cols)} columns takes over ${MAX_TURNS} loop turns; ask for more pixels.`);
  }
  /** @type {Dispatch[]} */
  const dispatches = [];
  for (let slice0 = 0; slice0 < pixelRows; slice0 += step) {
    const slice = { ...params, slice0, slice1: Math.min(slice0 + step, pixelRows) };
    dispatches.push({ kernel: "attention_pixels", overrides, params: slice, grid: [ceil(out_cols, 16), out_rows, heads], bindings });
  }
  return dispatches;
}

/**
 * out = silu(gate) * up, elementwise.
 * @param {{gate: string, up: string, out: string, count: number}} given @returns {Dispatch}
 */
export function swiglu({ gate, up, out, count }) {
  return { kernel: "swiglu", overrides: {}, params: { count }, grid: fold(ceil(count, 64)), bindings: { gate, up, out } };
}

/**
 * out = a + b, elementwise; out is neither a nor b.
 * @param {{a: string, b: string, out: string, count: number}} given @returns {Dispatch}
 */
export function add({ a, b, out, count }) {
  return { kernel: "add", overrides: {}, params: { count }, grid: fold(ceil(count, 64)), bindings: { a, b, out } };
}
