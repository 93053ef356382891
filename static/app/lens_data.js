// Fills the logit lens piece by piece: first the cell that is looked at, then its column, then the visible rows from the
// top. Each request is small, so that a slow device stays responsive and a new selection is served next.

import { later } from "./later.js";

/** @typedef {{ids: number[], logprobs: number[], entropy: number}} LensCell */
/** @typedef {{position: number, depth: number, from: number, to: number}} Wish visible positions are from..to-1 */

/** @typedef {{layer: number, row0: number, rows: number}} Part */

/** A third of a second where a CPU stands in for a GPU; the kernels take eight rows together. */
const [REQUEST_FLOPS, LEAST_ROWS] = [400_000_000, 8];

export class LensData {
  /**
   * @param {import("./state.js").Trace} trace
   * @param {(layer: number, row0: number, rows: number) => void} onCells
   * @param {(error: Error) => void} onError
   */
  constructor(trace, onCells, onError) {
    this.trace = trace;
    this.onCells = onCells;
    this.onError = onError;
    /** @type {Map<number, LensCell>} */
    this.cells = new Map();
    /** @type {Wish | null} */
    this.wish = null;
    this.working = false;
    this.closed = false;
    const { D, V } = trace.shape;
    /** Rows of one request: a new prompt waits for the one that runs. */
    this.atOnce = Math.max(LEAST_ROWS, Math.floor(REQUEST_FLOPS / (2 * D * V)));
  }

  /**
   * @param {number} layer 0..L
   * @param {number} position
   */
  get(layer, position) {
    return this.cells.get(layer * this.trace.shape.T + position);
  }

  /** @param {Wish} wish replaces the one before */
  want(wish) {
    this.wish = wish;
    if (!this.working) void this.#work();
  }

  close() {
    this.closed = true;
  }

  /** Cells of the visible part, and how many are there: rows may fill all at once, so counting full ones would say none. */
  get progress() {
    const { from, to } = this.wish ?? { from: 0, to: 0 };
    let done = 0;
    for (let layer = 0; layer <= this.trace.shape.L; layer += 1)
      for (let place = from; place < to; place += 1) done += this.get(layer, place) ? 1 : 0;
    return { done, total: (this.trace.shape.L + 1) * (to - from) };
  }

  /** @param {number} layer @param {number} from @param {number} to @returns {[number, number] | null} first missing, count */
  #missing(layer, from, to) {
    let [first, last] = [-1, -1];
    for (let position = from; position < to; position += 1) {
      if (this.get(layer, position)) continue;
      if (first < 0) first = position;
      last = position;
    }
    return first < 0 ? null : [first, last - first + 1];
  }

  /** @returns {Part | null} */
  #next() {
    if (!this.wish) return null;
    const { position, depth, from, to } = this.wish;
    const layers = [depth, ...Array.from({ length: this.trace.shape.L + 1 }, (_, i) => this.trace.shape.L - i)];
    for (const layer of layers) if (!this.get(layer, position)) return { layer, row0: position, rows: 1 };
    if (this.trace.lensOrder === "columns") {
      for (let place = to - 1; place >= from; place -= 1)
        for (const layer of layers) if (!this.get(layer, place)) return { layer, row0: place, rows: 1 };
    }
    for (const layer of layers) {
      const missing = this.#missing(layer, from, to);
      if (missing) return { layer, row0: missing[0], rows: Math.min(missing[1], this.atOnce) };
    }
    return null;
  }

  /** The wish may have changed while others had their turn. @returns {Promise<[Part | null, import("./state.js").LensRows | null]>} */
  async #ask() {
    const next = this.closed ? null : this.#next();
    return [next, next && (await this.trace.lensRows(next))];
  }

  async #work() {
    this.working = true;
    try {
      while (this.#next() && !this.closed) {
        const [next, found] = await later(() => this.#ask());
        if (!next || !found) break;
        for (let i = 0; i < next.rows; i += 1) {
          const part = [i * 10, i * 10 + 10];
          const cell = {
            ids: Array.from(found.ids).slice(...part),
            logprobs: Array.from(found.logprobs).slice(...part),
            entropy: found.entropy[i],
          };
          this.cells.set(next.layer * this.trace.shape.T + next.row0 + i, cell);
        }
        if (!this.closed) this.onCells(next.layer, next.row0, next.rows);
      }
    } catch (error) {
      if (!this.closed) this.onError(/** @type {Error} */ (error));
    }
    this.working = false;
  }
}
