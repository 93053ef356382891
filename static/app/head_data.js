// The weights of the chosen head: the part that is on the screen, and single rows in full. Nothing larger is ever asked for.
import { cellsOfPixel } from "../lib/maths.js";
import { maskPixels, withoutFirst } from "../lib/pattern.js";
import { isWhole } from "../lib/zoom.js";

/** Up to here every cell comes over one by one; beyond, a picture pixel is the largest weight of its block. */
const MOST_CELLS = 1 << 20;

/** @typedef {import("../lib/pattern.js").Region} Region */
/** @typedef {{cells: Float32Array, outRows: number, outCols: number, region: Region, exact: boolean}} Picture */

/** @param {Region} region */
export const isExact = ({ rows, cols }) => rows * cols <= MOST_CELLS;

/** One head of one trace. */
export class HeadData {
  /**
   * @param {import("./state.js").Trace} trace
   * @param {import("../lib/pattern.js").Rule} rule
   * @param {number} layer
   * @param {number} head
   */
  constructor(trace, rule, layer, head) {
    this.trace = trace;
    this.rule = rule;
    this.layer = layer;
    this.head = head;
    /** @type {Map<number, Promise<Float32Array>>} */
    this.rows = new Map();
    /** All cells, once they were asked for: rows are parts of them. @type {Promise<Float32Array> | null} */
    this.every = null;
    /** The part that was read last: what is asked for ahead is not asked for again when it is shown. */
    this.part = { name: "", cells: /** @type {Promise<Float32Array> | null} */ (null) };
  }

  /**
   * @param {Region} region
   * @param {number} side most pixels per side when the region is too large to come cell by cell
   * @param {boolean} noFirst only where the region is exact
   * @returns {Promise<Picture>}
   */
  async picture(region, side, noFirst) {
    const exact = isExact(region);
    const [outRows, outCols] = exact ? [region.rows, region.cols] : [Math.min(region.rows, side), Math.min(region.cols, side)];
    const raw = await (exact && isWhole(region, this.trace.shape.T) ? this.#whole(region) : this.#readPart(region, outRows, outCols));
    const cells = exact && noFirst ? withoutFirst(raw, region, await this.#read({ ...region, col0: 0, cols: 1 }, region.rows, 1)) : raw;
    return { cells: maskPixels(cells, region, outRows, outCols, this.rule), outRows, outCols, region, exact };
  }

  /**
   * All T weights of one query.
   * @param {number} query
   * @param {boolean} noFirst
   */
  async row(query, noFirst) {
    const { T } = this.trace.shape;
    const region = { row0: query, rows: 1, col0: 0, cols: T };
    if (!this.every && !this.rows.has(query)) {
      const asked = this.#read(region, 1, T);
      this.rows.set(query, asked);
      asked.catch(() => this.rows.delete(query)); // it may come the next time
    }
    const cells = this.rows.get(query) ?? this.every?.then((all) => all.subarray(query * T, (query + 1) * T));
    const raw = Float32Array.from(await /** @type {Promise<Float32Array>} */ (cells));
    return maskPixels(noFirst ? withoutFirst(raw, region, raw) : raw, region, 1, region.cols, this.rule);
  }

  /** @param {Region} region @param {number} outRows @param {number} outCols */
  #read(region, outRows, outCols) {
    return this.trace.window({ layer: this.layer, head0: this.head, heads: 1, ...region, outRows, outCols, reduce: "max" });
  }

  /** @param {Region} region @param {number} outRows @param {number} outCols */
  async #readPart(region, outRows, outCols) {
    const { row0, rows, col0, cols } = region;
    const name = String([row0, rows, col0, cols, outRows, outCols]);
    if (name !== this.part.name || !this.part.cells) this.part = { name, cells: this.#read(region, outRows, outCols) };
    const { cells } = this.part;
    cells?.catch(() => (this.part.name = "")); // it may come the next time
    return Float32Array.from(await /** @type {Promise<Float32Array>} */ (cells));
  }

  /** @param {Region} region */
  async #whole(region) {
    this.every ??= this.#read(region, region.rows, region.cols);
    this.every.catch(() => (this.every = null)); // it may come the next time
    return Float32Array.from(await this.every); // masking changes it
  }
}

/**
 * The pixel of a reduced picture that holds a cell, and what it covers.
 * @param {Picture} picture
 * @param {{row: number, col: number}} cell
 * @returns {{value: number, rows: [number, number], cols: [number, number]}} half-open ranges of positions
 */
export function pixelOf({ cells, outRows, outCols, region }, { row, col }) {
  const i = Math.ceil(((row - region.row0 + 1) * outRows) / region.rows) - 1;
  const j = Math.ceil(((col - region.col0 + 1) * outCols) / region.cols) - 1;
  const [r0, r1] = cellsOfPixel(i, region.rows, outRows);
  const [c0, c1] = cellsOfPixel(j, region.cols, outCols);
  return { value: cells[i * outCols + j], rows: [region.row0 + r0, region.row0 + r1], cols: [region.col0 + c0, region.col0 + c1] };
}
