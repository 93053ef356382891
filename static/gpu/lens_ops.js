/**
 * The logit lens as dispatches: unembedding with online log-sum-exp, the best k tokens and a target's rank.
 *
 * Mirrors webgpu/lens_ops.py.
 * @module
 */
import { LENS_PARTS, LENS_TILE, MAX_TOP_K, MAX_TURNS, NONE, UnsupportedShape, fold, matmul } from "./ops.js";
import { pick } from "./variants.js";

/** @typedef {import("./ops.js").Dispatch} Dispatch */
/** @typedef {import("./ops.js").Table} Table */

/** Most bytes of logits that "groups" keeps for a moment; beyond, the first variant runs. */
const LENS_WHOLE_BYTES = 64 * 2 ** 20;

/** @param {number} a @param {number} b */
const ceil = (a, b) => Math.ceil(a / b);

/**
 * Vocabulary rows per invocation: at most LENS_TILE, few enough tiles to merge, few enough turns to finish.
 * @param {number} D @param {number} V @param {number} k
 */
export function lensTile(D, V, k = 10) {
  let tile = Math.floor(Math.max(LENS_TILE, ceil(V, LENS_PARTS - 8) + 7) / 8) * 8;
  while (tile > 8 && Math.floor(tile / 8) * (ceil(D, 8) + 1) + tile * (k + 1) + 5 * k + 4 > MAX_TURNS) tile -= 8;
  if (ceil(V, tile) > LENS_PARTS - 8) {
    throw new UnsupportedShape(`a vocabulary of ${V} at width ${D} needs more than ${LENS_PARTS} tiles of ${tile} rows.`);
  }
  return tile;
}

/**
 * How many tiles the tables [buffer, v0, v_count] make together.
 * @param {Table[]} tables @param {{D: number, V: number, k?: number}} sizes
 */
export function lensParts(tables, { D, V, k = 10 }) {
  return tables.reduce((sum, [, , vCount]) => sum + ceil(vCount, lensTile(D, V, k)), 0);
}

/** The variant that will run. @param {string | undefined} variant @param {{rows: number, V: number, fmt: number}} sizes */
function lensVariant(variant, { rows, V, fmt }) {
  const picked = pick("lens", variant, { fmt });
  return picked === "groups" && 4 * rows * V > LENS_WHOLE_BYTES ? pick("lens", null, {}) : picked;
}

/**
 * Bytes of each scratch buffer that lens needs, by argument name.
 * @param {Table[]} tables @param {{rows: number, D: number, V: number, fmt: number, k?: number, variant?: string}} sizes
 * @returns {Record<string, number>}
 */
export function lensScratch(tables, { rows, D, V, fmt, k = 10, variant }) {
  if (lensVariant(variant, { rows, V, fmt }) === "groups") return { whole: rows * V * 4 };
  const parts = lensParts(tables, { D, V, k });
  const list = rows * parts * k * 4;
  return { target_logit: rows * 4, part_logits: list, part_ids: list, part_stats: rows * parts * 16 };
}

/**
 * Unembed x [rows,D] (after the final norm) and keep what is asked of the logits: ids, logits [rows,k] best first (equal
 * logits: lower id first), stats [rows,4] = (lse, entropy in nats, target logit, target rank with 0 = best).
 * @param {{x: string, tables: Table[], targets: string, ids: string, logits: string, stats: string, target_logit?: string,
 *   part_logits?: string, part_ids?: string, part_stats?: string, whole?: string, rows: number, D: number, V: number, fmt: number,
 *   k?: number, variant?: string}} given variant: one of variants.js; scratch as lensScratch says
 * @returns {Dispatch[]}
 */
export function lens(given) {
  const { x, tables, targets, ids, logits, stats, rows, D, V, fmt, k = 10 } = given;
  const { target_logit = NONE, part_logits = NONE, part_ids = NONE, part_stats = NONE, whole = NONE } = given;
  if (D % 8) throw new UnsupportedShape(`the model's width is ${D}; the lens takes multiples of 8.`);
  if (k < 1 || k > MAX_TOP_K) throw new UnsupportedShape(`k is ${k}; the lens keeps 1 to ${MAX_TOP_K} tokens.`);
  const picked = lensVariant(given.variant, { rows, V, fmt });
  if (picked === "groups") {
    const bindings = { whole, targets, ids, logits, stats };
    const params = { rows, V };
    return [...products(given, whole), { kernel: "lens_groups", overrides: { TOP_K: k }, params, grid: fold(rows), bindings }];
  }
  const tile = lensTile(D, V, k);
  const parts = lensParts(tables, { D, V, k });
  const weights = { WEIGHT_FORMAT: fmt };
  const quads = picked === "quads";
  const scratch = { part_logits, part_ids, part_stats };
  /** @type {Dispatch[]} */
  const first = [];
  /** @type {Dispatch[]} */
  const second = [];
  let part0 = 0;
  for (const [table, v0, v_count, scales = NONE] of tables) {
    const shape = { rows, D, v0, v_count };
    const bindings = { x, table, scales, targets, target_logit };
    first.push({ kernel: "lens_target", overrides: { ...weights, IN_ORDER: quads }, params: shape, grid: fold(ceil(rows, 8)), bindings });
    const tiles = ceil(v_count, tile);
    second.push({
      kernel: quads ? "lens_quads" : "lens_tile",
      overrides: quads ? { TOP_K: k, MANY: rows > 4 } : { ...weights, TOP_K: k },
      params: { ...shape, tile, part0, parts },
      grid: fold(quads ? ceil(ceil(rows, rows > 4 ? 8 : 4) * ceil(tiles, 4), 2) : ceil(ceil(rows, 4) * tiles, 16)),
      bindings: { ...bindings, ...scratch },
    });
    part0 += tiles;
  }
  /** @type {Dispatch} */
  const merge = {
    kernel: "lens_merge",
    overrides: { TOP_K: k },
    params: { rows, parts },
    grid: fold(ceil(rows, 8)),
    bindings: { ...scratch, targets, target_logit, ids, logits, stats },
  };
  return [...first, ...second, merge];
}

/**
 * Logits [rows,V] of all tables, each into its columns.
 * @param {{x: string, tables: Table[], rows: number, D: number, V: number, fmt: number}} given @param {string} whole
 */
function products({ x, tables, rows, D, V, fmt }, whole) {
  const rest = { x, bias: null, out: whole, T: rows, d_in: D, fmt, out_stride: V, variant: "groups" };
  return tables.map(([weight, v0, d_out, scales = NONE]) => matmul({ ...rest, weight, d_out, out_col0: v0, scales }));
}
