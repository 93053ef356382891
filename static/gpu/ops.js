/**
 * What each kernel is asked to do: pure functions from sizes and buffer names to dispatches.
 *
 * Mirrors webgpu/ops.py, where shapes are described; a test holds both to the same list of dispatches.
 * Weight formats: 0 = f32, 1 = f16 pairs, 2 = bf16 pairs; vectors are f32.
 * @module
 */

/**
 * One kernel call: overrides and parameters are numbers, bindings map the kernel's names to buffer names.
 * @typedef {{kernel: string, overrides: Record<string, number | boolean>, params: Record<string, number>,
 *   grid: [number, number, number], bindings: Record<string, string>}} Dispatch
 */
/** @typedef {[buffer: string, v0: number, vCount: number]} Table a piece of the vocabulary */

export const NONE = "none";
export const MAX_GROUPS = 65_535;
export const MAX_TURNS = 32_768;
export const MAX_HEAD_DIM = 256;
export const MAX_TOP_K = 16;
export const HEAD_SLICE = 32;
export const DECODE_SPAN = 64;
export const LENS_TILE = 512;
export const LENS_PARTS = 1024;

/** A size no kernel takes; the message names it and what is allowed. */
export class UnsupportedShape extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "UnsupportedShape";
    this.code = "unsupported-shape";
  }
}

/** @param {number} a @param {number} b */
const ceil = (a, b) => Math.ceil(a / b);

/**
 * Fold a count of workgroups into two dimensions of at most 65,535.
 * @param {number} groups @returns {[number, number, number]}
 */
export function fold(groups) {
  const x = Math.max(1, Math.min(groups, MAX_GROUPS));
  return [x, Math.max(1, ceil(groups, x)), 1];
}

/** @param {number} H */
function headDim(H) {
  if (H % 4 || H < 4 || H > MAX_HEAD_DIM) {
    throw new UnsupportedShape(`head dimension is ${H}; the kernels take multiples of 4 up to ${MAX_HEAD_DIM}.`);
  }
  return H;
}

/** @param {number} N @param {number} K */
function checkGroups(N, K) {
  if (K >= 1 && N % K === 0) return;
  throw new UnsupportedShape(`${N} query heads cannot share ${K} key/value heads; N must be a multiple of K.`);
}

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

/** Loop turns of one invocation that streams S keys. @param {number} S @param {number} H */
export function attentionTurns(S, H) {
  return ceil(S, 4) * (1 + ceil(H, 16)) + 36;
}

/**
 * Bytes of the `scratch` buffer that attention needs (0 unless T = 1).
 * @param {{T: number, S: number, N: number, H: number}} sizes
 */
export function attentionScratch({ T, S, N, H }) {
  return T === 1 ? T * N * ceil(S, DECODE_SPAN) * (H + 4) * 4 : 0;
}

/**
 * Attention of q [T,N,H] over k and v [S,K,H] -> o [T,N,H], lse [N,T] natural log. Query t stands at offset + t;
 * window 0 = all earlier keys; sinks = first keys always seen. T = 1 splits the keys and needs `scratch`.
 * @param {{q: string, k: string, v: string, o: string, lse: string, T: number, S: number, N: number, K: number,
 *   H: number, offset: number, window: number, sinks: number, scale: number, scratch?: string}} given
 * @returns {Dispatch[]}
 */
export function attention({ q, k, v, o, lse, T, S, N, K, H, offset, window, sinks, scale, scratch = NONE }) {
  checkGroups(N, K);
  const common = { T, S, N, K, offset, window, sinks, scale };
  const overrides = { H: headDim(H) };
  const slices = ceil(H, HEAD_SLICE);
  if (T === 1) {
    const splits = ceil(S, DECODE_SPAN);
    const blocks = K * ceil(Math.floor((T * N) / K), 4) * slices * splits;
    return [
      {
        kernel: "attention_decode",
        overrides,
        params: { ...common, span: DECODE_SPAN, splits },
        grid: fold(ceil(blocks, 16)),
        bindings: { q, k, v, part: scratch },
      },
      {
        kernel: "attention_merge",
        overrides,
        params: { T, N, splits },
        grid: fold(ceil(Math.floor((T * N * H) / 4), 16)),
        bindings: { part: scratch, o, lse },
      },
    ];
  }
  if (attentionTurns(S, H) >= MAX_TURNS) {
    throw new UnsupportedShape(`${S} keys of head dimension ${H} take over ${MAX_TURNS} loop turns; use a shorter text.`);
  }
  const grid = fold(ceil(ceil(T, 4) * slices * N, 16));
  return [{ kernel: "attention_fa2", overrides, params: common, grid, bindings: { q, k, v, o, lse } }];
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
