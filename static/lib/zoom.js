// Which part of a T x T picture is looked at. Zooming keeps a chosen cell where it is; panning stops at the edges.

/** @typedef {import("./pattern.js").Region} Region */

const SMALLEST = 8;

/**
 * A region that fits the picture, whatever was asked for.
 * @param {Region} region
 * @param {number} T
 * @returns {Region}
 */
export function fitRegion({ row0, rows, col0, cols }, T) {
  const height = Math.max(1, Math.min(T, Math.round(rows)));
  const width = Math.max(1, Math.min(T, Math.round(cols)));
  /** @param {number} from @param {number} size */
  const place = (from, size) => Math.max(0, Math.min(T - size, Math.round(from)));
  return { row0: place(row0, height), rows: height, col0: place(col0, width), cols: width };
}

/** @param {number} T */
export const wholeRegion = (T) => ({ row0: 0, rows: T, col0: 0, cols: T });

/**
 * @param {Region} region
 * @param {number} factor above 1 looks closer
 * @param {number} row the cell that stays in place
 * @param {number} col
 * @param {number} T
 */
export function zoomAt(region, factor, row, col, T) {
  const rows = Math.max(Math.min(SMALLEST, T), region.rows / factor);
  const cols = Math.max(Math.min(SMALLEST, T), region.cols / factor);
  const row0 = row - ((row - region.row0) * rows) / region.rows;
  const col0 = col - ((col - region.col0) * cols) / region.cols;
  return fitRegion({ row0, rows, col0, cols }, T);
}

/**
 * The region moved just so far that it holds a cell.
 * @param {Region} region
 * @param {number} row
 * @param {number} col
 * @param {number} T
 */
export function reveal(region, row, col, T) {
  /** @param {number} from @param {number} size @param {number} at */
  const near = (from, size, at) => (at < from ? at : at >= from + size ? at - size + 1 : from);
  return fitRegion({ ...region, row0: near(region.row0, region.rows, row), col0: near(region.col0, region.cols, col) }, T);
}

/**
 * zoomAt with the cell always inside, also one at the edge or one that was panned away.
 * @param {Region} region
 * @param {number} factor above 1 looks closer
 * @param {number} row
 * @param {number} col
 * @param {number} T
 */
export function zoomAround(region, factor, row, col, T) {
  return reveal(zoomAt(region, factor, row, col, T), row, col, T);
}

/**
 * @param {Region} region
 * @param {number} T
 */
export const isWhole = (region, T) => region.rows >= T && region.cols >= T;
