/**
 * The logit lens as dispatches: unembedding with online log-sum-exp, the best k tokens and a target's rank.
 *
 * Mirrors webgpu/lens_ops.py.
 * @module
 */
import { MAX_TURNS, NONE, UnsupportedShape, ceil, fold } from "./dispatch.js";
import { matmul } from "./ops.js";
import { pick } from "./variants.js";

/** @typedef {import("./ops.js").Dispatch} Dispatch */
/** @typedef {import("./ops.js").Table} Table */

const MAX_TOP_K = 16;
/** Vocabulary rows per invocation of lens_tile. */
const LENS_TILE = 512;
/** Most tiles a row's merge can take. */
const LENS_PARTS = 1024;
/** Most bytes of logits that "groups" keeps for a moment; beyond, the first variant runs. */
const LENS_WHOLE_BYTES = 64 * 2 ** 20;

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
  const answer = { ids, logits, stats };
  if (picked === "groups") {
    const bindings = { whole, targets, ...answer };
    const params = { rows, V };
    return [...products(given, whole), { kernel: "lens_groups", overrides: { TOP_K: k }, params, grid: fold(rows), bindings }];
  }
  const [tile, parts, quads] = [lensTile(D, V, k), lensParts(tables, { D, V, k }), picked === "quads"];
  const target = { targets, target_logit };
  const lists = { part_logits, part_ids, part_stats };
  const eighths = fold(ceil(rows, 8));
  /** @type {[Dispatch[], Dispatch[]]} */
  const [first, second] = [[], []];
  let part0 = 0;
  for (const [table, v0, v_count, scales = NONE] of tables) {
    const params = { rows, D, v0, v_count };
    const bindings = { x, table, scales, ...target };
    first.push({ kernel: "lens_target", overrides: { WEIGHT_FORMAT: fmt, IN_ORDER: quads }, params, grid: eighths, bindings });
    second.push(tiles(quads, fmt, k, { ...params, tile, part0, parts }, { ...bindings, ...lists }));
    part0 += ceil(v_count, tile);
  }
  const bindings = { ...lists, ...target, ...answer };
  return [...first, ...second, { kernel: "lens_merge", overrides: { TOP_K: k }, params: { rows, parts }, grid: eighths, bindings }];
}

/**
 * Rows times the tiles of one table: an invocation owns four rows of a tile, a quad four or eight of four.
 * @param {boolean} quads @param {number} fmt @param {number} k @param {Dispatch["params"]} params
 * @param {Dispatch["bindings"]} bindings @returns {Dispatch}
 */
function tiles(quads, fmt, k, params, bindings) {
  const { rows } = params;
  const count = ceil(params.v_count, params.tile);
  if (quads) {
    const MANY = rows > 4; // eight rows then
    const grid = fold(ceil(ceil(rows, MANY ? 8 : 4) * ceil(count, 4), 2));
    return { kernel: "lens_quads", overrides: { TOP_K: k, MANY }, params, grid, bindings };
  }
  const grid = fold(ceil(ceil(rows, 4) * count, 16));
  return { kernel: "lens_tile", overrides: { WEIGHT_FORMAT: fmt, TOP_K: k }, params, grid, bindings };
}

/**
 * Logits [rows,V] of all tables, each into its columns.
 * @param {{x: string, tables: Table[], rows: number, D: number, V: number, fmt: number}} given @param {string} whole
 */
function products({ x, tables, rows, D, V, fmt }, whole) {
  const rest = { x, bias: null, out: whole, T: rows, d_in: D, fmt, out_stride: V, variant: "groups" };
  return tables.map(([weight, v0, d_out, scales = NONE]) => matmul({ ...rest, weight, d_out, out_col0: v0, scales }));
}
