/**
 * Windows of the attention pattern as dispatches: cells one by one, or many cells reduced to a pixel. Mirrors webgpu/probs.py.
 *
 * `variant` names one of variants.js ("cells"); none is the first, which runs everywhere. `out` begins as zeros: nothing is
 * written above the diagonal.
 * @module
 */
import { MAX_TURNS, UnsupportedShape, ceil, checkGroups, fold, headDim } from "./dispatch.js";
import { pick } from "./variants.js";

/** @typedef {import("./dispatch.js").Dispatch} Dispatch */
/** @typedef {{suffix: string, workgroup: number, keys: number}} Shape kernels' names end in suffix; keys: of an invocation */
/**
 * @typedef {{H: number, heads: number, place: Record<string, number>, rest: Record<string, number>,
 *   bindings: Record<string, string>, most_flops: number | null}} Work
 */

/** @type {Record<string, Shape>} */
const SHAPES = { rows: { suffix: "", workgroup: 16, keys: 64 }, quads: { suffix: "_quads", workgroup: 8, keys: 256 } };
const ROWS = 4;

/**
 * Rebuild the pattern of heads head0.. for one window -> out [heads,out_rows,out_cols], "max" or "mean" over the cells of
 * a pixel. Pixels that are cells take the quick kernel; more work than about most_flops (null: any) or than the loop limit
 * is cut into several dispatches.
 * @param {{q: string, k: string, lse: string, out: string, T: number, S: number, N: number, K: number, H: number,
 *   head0: number, heads: number, row0: number, rows: number, col0: number, cols: number, out_rows: number,
 *   out_cols: number, reduce: string, offset: number, window: number, sinks: number, scale: number,
 *   variant?: string | null, most_flops?: number | null}} given
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
  const name = pick("cells", given.variant, { H: headDim(H) });
  const place = { T, S, N, K, head0, row0, rows, col0, cols, out_rows, out_cols };
  const { offset, window, sinks, scale, most_flops = null } = given;
  const rest = { offset, window, sinks, scale };
  const bindings = { q, k, lse, out };
  if (name === "plain" && plainTurns(place, H) < MAX_TURNS) {
    const { S: _, ...params } = { ...place, ...rest, heads };
    const grid = fold(ceil(heads * out_rows * out_cols, 16));
    return [{ kernel: "attention_pixels_plain", overrides: { H, MEAN: reduce === "mean" }, params, grid, bindings }];
  }
  const shape = SHAPES[name] ?? SHAPES.rows;
  const work = { H, heads, place, rest, bindings, most_flops };
  return rows === out_rows && cols === out_cols ? cells(shape, work) : pixels(shape, reduce === "mean", work);
}

/** @param {Shape} shape @param {Work} work @returns {Dispatch[]} */
function cells({ suffix, workgroup, keys }, { H, heads, place, rest, bindings, most_flops }) {
  const { rows, cols } = place;
  const block = ROWS * workgroup;
  let step = ceil(rows, block) * block;
  if (most_flops !== null) step = Math.min(step, Math.max(1, Math.floor(most_flops / (2 * H * heads * cols * block))) * block);
  /** @type {Dispatch[]} */
  const dispatches = [];
  for (let slice0 = 0; slice0 < rows; slice0 += step) {
    const params = { ...place, slice0, slice1: Math.min(slice0 + step, rows), span: keys, ...rest };
    const grid = /** @type {[number, number, number]} */ ([ceil(cols, keys), ceil(Math.min(step, rows - slice0), block), heads]);
    dispatches.push({ kernel: `attention_cells${suffix}`, overrides: { H }, params, grid, bindings });
  }
  return dispatches;
}

/** @param {Shape} shape @param {boolean} MEAN @param {Work} work @returns {Dispatch[]} */
function pixels({ suffix, workgroup, keys }, MEAN, { H, heads, place, rest, bindings, most_flops }) {
  const { out_rows, out_cols } = place;
  const [pixelRows, pixelCols] = [ceil(place.rows, out_rows), ceil(place.cols, out_cols)];
  const span = Math.max(1, Math.min(out_cols, Math.floor(keys / pixelCols)));
  let step = Math.floor((MAX_TURNS - 1) / (span * pixelTurns(pixelCols, H))) * ROWS;
  if (step === 0) {
    throw new UnsupportedShape(`a pixel of ${pixelCols} columns takes over ${MAX_TURNS} loop turns; ask for more pixels.`);
  }
  if (most_flops !== null) {
    const rowFlops = 2 * H * heads * out_rows * out_cols * pixelCols;
    step = Math.min(step, Math.max(1, Math.floor(most_flops / (rowFlops * ROWS))) * ROWS);
  }
  /** @type {Dispatch[]} */
  const dispatches = [];
  for (let slice0 = 0; slice0 < pixelRows; slice0 += step) {
    const params = { ...place, slice0, slice1: Math.min(slice0 + step, pixelRows), span, ...rest };
    const grid = /** @type {[number, number, number]} */ ([ceil(out_cols, span), ceil(out_rows, workgroup), heads]);
    dispatches.push({ kernel: `attention_pixels${suffix}`, overrides: { H, MEAN }, params, grid, bindings });
  }
  return dispatches;
}

/** Loop turns of one invocation that takes the cells of a pixel one by one. @param {Record<string, number>} place @param {number} H */
function plainTurns({ rows, cols, out_rows, out_cols }, H) {
  return ceil(rows, out_rows) * (1 + ceil(cols, out_cols) * (1 + Math.floor(H / 4)));
}

/** Loop turns of one invocation for four rows of one pixel; heads wider than 128 take turns for the rest. @param {number} pixelCols @param {number} H */
const pixelTurns = (pixelCols, H) => 1 + pixelCols * (1 + (H > 128 ? ceil(H - 128, 16) : 0));
