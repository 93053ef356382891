// Where the thumbnails of the wall stand: layers down and heads across, or, when the wall is ordered or filtered, one after
// the other with a caption each. Both are rows of places, so that arrow keys and screen readers follow what is seen.
import { ofKey } from "./grid_keys.js";

const PAGE_ROWS = 5;
const GAP = 2;
const GROUP_GAP = 6;
const LABELS = 24;
const TOP = 18;
/** Beside the head that is open, about as tall as that; above it, on a narrow screen, no taller than a screen. */
const [TALLEST_PX, TALLEST_NARROW_PX] = [900, 662];
const LARGEST_PX = 64;
/** In a list: room for "L24 H4" and two decimals under a thumbnail. */
const [LISTED_PX, LISTED_GAP, CAPTION_PX] = [44, 6, 34];

/** @typedef {{L: number, N: number, K: number}} Heads */
/** @typedef {{layer: number, head: number}} Place */
/**
 * @typedef {object} Layout
 * @property {number} size side of a thumbnail, CSS pixels
 * @property {number} width of everything
 * @property {number} height
 * @property {boolean} listed one after the other; else layers down, heads across
 * @property {Place[][]} rows
 * @property {(layer: number, head: number) => {x: number, y: number} | null} at null: this head is not shown
 */

/**
 * Layers down, heads across, a gap between K/V groups: 30 x 9 thumbnails of 27 px in 300, 2 x 2 of 64.
 * @param {Heads} shape
 * @param {number} width CSS pixels to spend
 * @param {boolean} wide the open head stands beside it
 * @returns {Layout}
 */
export function byLayer({ L, N, K }, width, wide) {
  const narrow = matchMedia("(pointer: coarse)").matches ? TALLEST_NARROW_PX * 1.25 : TALLEST_NARROW_PX;
  const tallest = wide ? TALLEST_PX : narrow;
  const across = Math.floor((width - LABELS - (K - 1) * (GROUP_GAP - GAP)) / N) - GAP;
  const size = Math.max(8, Math.min(LARGEST_PX, across, Math.floor(tallest / L) - GAP));
  const x = (/** @type {number} */ n) => LABELS + n * (size + GAP) + Math.floor(n / (N / K)) * (GROUP_GAP - GAP);
  const y = (/** @type {number} */ l) => TOP + l * (size + GAP);
  const rows = Array.from({ length: L }, (_, layer) => Array.from({ length: N }, (_, head) => ({ layer, head })));
  const at = (/** @type {number} */ layer, /** @type {number} */ head) => ({ x: x(head), y: y(layer) });
  return { size, rows, at, listed: false, width: x(N - 1) + size + 2, height: y(L - 1) + size + 2 };
}

/**
 * One after the other, as many in a row as fit.
 * @param {Place[]} places in their order
 * @param {number} width CSS pixels to spend
 * @returns {Layout}
 */
export function inOrder(places, width) {
  const columns = Math.max(1, Math.floor((width + LISTED_GAP - 4) / (LISTED_PX + LISTED_GAP)));
  /** @type {Place[][]} */
  const rows = [];
  /** @type {Map<string, {x: number, y: number}>} */
  const spots = new Map();
  places.forEach((place, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    (rows[row] ??= []).push(place);
    spots.set(`${place.layer} ${place.head}`, { x: 2 + column * (LISTED_PX + LISTED_GAP), y: 2 + row * (LISTED_PX + CAPTION_PX + LISTED_GAP) });
  });
  const height = 4 + Math.max(1, rows.length) * (LISTED_PX + CAPTION_PX + LISTED_GAP);
  const at = (/** @type {number} */ layer, /** @type {number} */ head) => spots.get(`${layer} ${head}`) ?? null;
  return { size: LISTED_PX, rows, at, listed: true, width: columns * (LISTED_PX + LISTED_GAP), height };
}

/**
 * The place that a key leads to from another; null for other keys.
 * @param {string} key
 * @param {Layout} layout
 * @param {Place} from
 * @returns {Place | null}
 */
export function placeOfKey(key, { rows, listed }, from) {
  const row = rows.findIndex((places) => places.some(({ layer, head }) => layer === from.layer && head === from.head));
  if (row < 0) return null;
  const column = rows[row].findIndex(({ head, layer }) => layer === from.layer && head === from.head);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (step !== undefined && listed) return rows.flat()[rows[0].length * row + column + step] ?? from;
  return ofKey(key, rows, row, column, PAGE_ROWS);
}
