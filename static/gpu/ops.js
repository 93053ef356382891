/**
 * What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.
 *
 * Attention is in attention.js, windows of its pattern in probs.js, the lens in lens_ops.js. Mirrors webgpu/ops.py, where
 * shapes are described; a test holds both to the same list of dispatches.
 * Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs, 3 = Q4_1 and 4 = Q8_0 blocks; vectors are f32.
 * @module
 */
import { NONE, UnsupportedShape, ceil, fold } from "./dispatch.js";
import { pick } from "./variants.js";

export { MAX_GROUPS, MAX_HEAD_DIM, MAX_TURNS, NONE, UnsupportedShape, fold } from "./dispatch.js";
export { attention, attentionOperation, attentionScratch, attentionTurns } from "./attention.js";
export { attentionProbs } from "./probs.js";

/** @typedef {import("./dispatch.js").Dispatch} Dispatch */
/** @typedef {[buffer: string, v0: number, vCount: number, scales?: string]} Table a piece of the vocabulary */

/** Up to here workgroups share rows of weights, beyond a tile of the product. */
export const FEW_TOKENS = 32;
/** Tokens of a quad's block; of more than 8 it takes twice as many, but 17 to 24 are three blocks of 8. */
export const QUAD_ROWS = 8;

/**
 * Write out [T,D] for the ids that fall into this table's vocabulary rows v0 .. v0+v_count-1.
 * @param {{ids: string, table: string, out: string, T: number, D: number, v0: number, v_count: number, fmt: number,
 *   scales?: string}} given
 * @returns {Dispatch}
 */
export function embedding({ ids, table, out, T, D, v0, v_count, fmt, scales = NONE }) {
  const params = { T, D, v0, v_count };
  const grid = fold(ceil(T * D, 64));
  return { kernel: "embedding", overrides: { WEIGHT_FORMAT: fmt }, params, grid, bindings: { ids, table, scales, out } };
}

/**
 * Normalise rows into out [rows,width]; heads, N and stride are for QK-norm, see webgpu/ops.py.
 * @param {{x: string, weight: string, out: string, rows: number, width: number, eps: number, heads?: number, N?: number,
 *   stride?: number, variant?: string}} given
 * @returns {Dispatch}
 */
export function rmsnorm({ x, weight, out, rows, width, eps, heads = 1, N = 1, stride = width, variant }) {
  const params = { rows, width, heads, N, stride, eps };
  const bindings = { x, weight, out };
  if (pick("norm", variant, {}) === "groups") return { kernel: "rmsnorm_groups", overrides: {}, params, grid: fold(rows), bindings };
  return { kernel: "rmsnorm", overrides: {}, params, grid: fold(ceil(rows, 8)), bindings };
}

/** Which operation of variants.js multiplies T tokens by a matrix. @param {number} T */
export function productOperation(T) {
  return T === 1 ? "matvec" : "matmul";
}

/**
 * Write x [T,d_in] times weight [d_out,d_in] transposed, plus bias [d_out] unless null, plus residual unless "none".
 * T = 1 takes matvec; a d_in that is not a multiple of 8 takes the plain matmul_any. variant: one of variants.js.
 * @param {{x: string, weight: string, bias: string | null, out: string, T: number, d_in: number, d_out: number,
 *   fmt: number, scales?: string, out_row0?: number, out_col0?: number, out_stride?: number, residual?: string,
 *   variant?: string}} given
 * @returns {Dispatch}
 */
export function matmul(given) {
  const { x, weight, bias, out, T, d_in, d_out, fmt, scales = NONE } = given;
  const { out_row0 = 0, out_col0 = 0, out_stride = d_out, residual = NONE } = given;
  const overrides = { WEIGHT_FORMAT: fmt, HAS_BIAS: bias !== null };
  const params = { d_in, d_out, out_row0, out_col0, out_stride, add_residual: residual === NONE ? 0 : 1 };
  const plain = { x, weight, bias: bias ?? NONE, residual, out };
  if (d_in % 8) {
    return { kernel: "matmul_any", overrides, params: { T, ...params }, grid: fold(ceil(T * d_out, 64)), bindings: plain };
  }
  const bindings = { ...plain, scales };
  const picked = pick(productOperation(T), given.variant, { fmt });
  if (picked === "groups") return matmulGroups(T, overrides, params, bindings);
  const quads = picked === "quads";
  if (T === 1 && quads) return { kernel: "matvec_quads", overrides, params, grid: fold(ceil(d_out, 8 * 8)), bindings };
  if (quads) {
    const TALL = T > QUAD_ROWS && ceil(T, QUAD_ROWS) !== 3;
    const grid = fold(ceil(ceil(T, TALL ? 2 * QUAD_ROWS : QUAD_ROWS) * ceil(d_out, 32), 2));
    return { kernel: "matmul_quads", overrides: { ...overrides, TALL }, params: { T, ...params }, grid, bindings };
  }
  if (T === 1 || picked === "plain") {
    return { kernel: "matvec", overrides, params: { T, ...params }, grid: fold(ceil(T * ceil(d_out, 4), 64)), bindings };
  }
  const blocks = ceil(T, 8) * ceil(d_out, 8);
  return { kernel: "matmul", overrides, params: { T, ...params }, grid: fold(ceil(blocks, 32)), bindings };
}

/**
 * The product by workgroups that share rows of weights (one token, few tokens) or a tile.
 * @param {number} T @param {Dispatch["overrides"]} overrides @param {Dispatch["params"]} params
 * @param {Dispatch["bindings"]} bindings @returns {Dispatch}
 */
function matmulGroups(T, overrides, params, bindings) {
  const { d_out } = params;
  if (T === 1) return { kernel: "matvec_groups", overrides, params, grid: fold(ceil(d_out, 8)), bindings };
  const few = T <= FEW_TOKENS;
  const groups = few ? ceil(T, 8) * ceil(d_out, 8) : ceil(T, 32) * ceil(d_out, 64);
  return { kernel: few ? "matmul_few_groups" : "matmul_groups", overrides, params: { T, ...params }, grid: fold(groups), bindings };
}

/**
 * Rotate the N + K heads that each row of x [T,stride] begins with into q and k, and copy the values of qkv to v; see
 * webgpu/ops.py. rotate = false copies all.
 * @param {{x: string, qkv: string, cos: string, sin: string, q: string, k: string, v: string, T: number, N: number,
 *   K: number, H: number, stride?: number, out_row0?: number, rotate?: boolean}} given
 * @returns {Dispatch}
 */
export function rope({ x, qkv, cos, sin, q, k, v, T, N, K, H, stride, out_row0 = 0, rotate = true }) {
  if (H % 2) throw new UnsupportedShape(`head dimension is ${H}; rotary pairs need an even one.`);
  const heads = N + 2 * K;
  return {
    kernel: "rope",
    overrides: { ROTATE: rotate },
    params: { T, N, K, H, stride: stride ?? heads * H, out_row0 },
    grid: fold(ceil(Math.floor((T * heads * H) / 2), 64)),
    bindings: { x, qkv, cos_table: rotate ? cos : NONE, sin_table: rotate ? sin : NONE, q, k, v },
  };
}

/**
 * out [T,F] = silu(gate) * up, where a row of gate_up [T,2F] is F gates and then F of up.
 * @param {{gate_up: string, out: string, T: number, F: number}} given @returns {Dispatch}
 */
export function swiglu({ gate_up, out, T, F }) {
  return { kernel: "swiglu", overrides: {}, params: { T, F }, grid: fold(ceil(T * F, 64)), bindings: { gate_up, out } };
}
