// What the page does to attention weights before they become colours. A cell (query, key) is NaN when it is not part of the
// picture: masked, or left out on purpose.
import { cellsOfPixel } from "./maths.js";

/** @typedef {{window: number, sinks: number}} Rule window 0: a query sees every earlier key */
/** @typedef {{row0: number, rows: number, col0: number, cols: number}} Region */

/**
 * @param {number} query
 * @param {number} key
 * @param {Rule} rule
 */
export function visible(query, key, { window, sinks }) {
  return key <= query && (window === 0 || query - key < window || key < sinks);
}

/**
 * Whether no cell of the block rows r0..r1-1, columns c0..c1-1 is visible.
 * @param {number} r0
 * @param {number} r1
 * @param {number} c0
 * @param {number} c1
 * @param {Rule} rule
 */
export function blockMasked(r0, r1, c0, c1, { window, sinks }) {
  if (c0 > r1 - 1) return true;
  if (window === 0 || c0 < sinks) return false;
  return r0 - (c1 - 1) >= window;
}

/**
 * Puts NaN where a pixel shows only masked cells. Changes `pixels` in place and returns it.
 * @param {Float32Array} pixels [outRows * outCols]
 * @param {Region} region
 * @param {number} outRows
 * @param {number} outCols
 * @param {Rule} rule
 */
export function maskPixels(pixels, region, outRows, outCols, rule) {
  for (let i = 0; i < outRows; i += 1) {
    const [r0, r1] = cellsOfPixel(i, region.rows, outRows);
    for (let j = 0; j < outCols; j += 1) {
      const [c0, c1] = cellsOfPixel(j, region.cols, outCols);
      if (blockMasked(region.row0 + r0, region.row0 + r1, region.col0 + c0, region.col0 + c1, rule)) pixels[i * outCols + j] = NaN;
    }
  }
  return pixels;
}

/**
 * Takes key 0 out and lets the other weights of each row sum to 1 again: w / (1 - w0). A row with nothing left is NaN.
 * @param {Float32Array} cells [rows * cols], one cell each
 * @param {Region} region
 * @param {ArrayLike<number>} first [rows] weights of key 0
 */
export function withoutFirst(cells, region, first) {
  const out = new Float32Array(cells.length);
  for (let i = 0; i < region.rows; i += 1) {
    const rest = 1 - first[i];
    for (let j = 0; j < region.cols; j += 1) {
      const at = i * region.cols + j;
      out[at] = region.col0 + j === 0 || rest < 1e-6 ? NaN : cells[at] / rest;
    }
  }
  return out;
}

/**
 * Weights to 0..1 for the colour map. "unit": the weight; "sqrt": its square root; "row": divided by the row's largest.
 * @param {Float32Array} cells [rows * cols]; NaN stays NaN
 * @param {number} cols
 * @param {"unit" | "row" | "sqrt"} scale
 */
export function toShade(cells, cols, scale) {
  if (scale === "unit") return cells;
  if (scale === "sqrt") return cells.map(Math.sqrt);
  const out = new Float32Array(cells.length);
  for (let row = 0; row < cells.length; row += cols) {
    let most = 0;
    for (let j = 0; j < cols; j += 1) if (cells[row + j] > most) most = cells[row + j];
    for (let j = 0; j < cols; j += 1) out[row + j] = most > 0 ? cells[row + j] / most : cells[row + j];
  }
  return out;
}
