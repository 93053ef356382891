// Fills the logit lens piece by piece: first the cell that is looked at and its column, then the visible rows from the top.
// A question takes cells of any layers, as many as the device answers soon: less costs a slow device more for each, and more
// would keep a new selection waiting. It can be stopped and go on; what is there stays.

import { later } from "./later.js";

/** @typedef {{ids: number[], logprobs: number[], entropy: number}} LensCell */
/** @typedef {{position: number, depth: number, from: number, to: number}} Wish visible positions are from..to-1 */
/** @typedef {[layer: number, position: number]} Place */

/** Rows of the first question, which is what somebody waits for: the kernels take eight together. */
const FIRST_ROWS = 8;

export class LensData {
  /**
   * @param {import("./state.js").Trace} trace
   * @param {(places: Place[]) => void} onCells
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
    this.working = this.stopped = this.closed = this.failed = false;
    /** Ends the question on its way. */
    this.asking = new AbortController();
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
    void this.#work();
  }

  /** Asks for nothing more, and gives up the question on its way. */
  stop() {
    this.stopped = true;
    this.asking.abort();
  }

  /** Goes on after `stop`. */
  resume() {
    this.stopped = false;
    void this.#work();
  }

  /** Another prompt's cells are wanted. */
  close() {
    this.closed = true;
    this.asking.abort();
  }

  /** Cells of the visible part, and how many are there: rows may fill all at once, so counting full ones would say none. */
  get progress() {
    const { from, to } = this.wish ?? { from: 0, to: 0 };
    let done = 0;
    for (let layer = 0; layer <= this.trace.shape.L; layer += 1)
      for (let place = from; place < to; place += 1) done += this.get(layer, place) ? 1 : 0;
    return { done, total: (this.trace.shape.L + 1) * (to - from) };
  }

  /** Every cell that is wanted, in the order in which it is. @returns {Generator<Place>} */
  *#wanted() {
    if (!this.wish) return;
    const { position, depth, from, to } = this.wish;
    const { L } = this.trace.shape;
    const layers = [depth, ...Array.from({ length: L + 1 }, (_, i) => L - i).filter((layer) => layer !== depth)];
    for (const layer of layers) yield [layer, position];
    if (this.trace.lensOrder === "columns") {
      for (let place = to - 1; place >= from; place -= 1) for (const layer of layers) if (place !== position) yield [layer, place];
    } else {
      for (const layer of layers) for (let place = from; place < to; place += 1) if (place !== position) yield [layer, place];
    }
  }

  /** The cells of the next question. @returns {Place[]} */
  #next() {
    const most = this.cells.size === 0 ? Math.min(FIRST_ROWS, this.trace.lensAtOnce) : this.trace.lensAtOnce;
    const byColumns = this.trace.lensOrder === "columns";
    /** @type {Place[]} */
    const places = [];
    for (const [layer, position] of this.#wanted()) {
      if (places.length === most) break;
      if (this.get(layer, position)) continue;
      if (byColumns && places.length > 0 && position !== places[0][1]) break; // of which each is an answer of its own
      places.push([layer, position]);
    }
    return places;
  }

  get #wants() {
    return !this.closed && !this.stopped && this.#next().length > 0;
  }

  /** The wish may have changed while others had their turn. @param {AbortSignal} signal */
  async #ask(signal) {
    const places = signal.aborted ? [] : this.#next();
    if (places.length === 0) return;
    const found = await this.trace.lensAt(runsOf(places), { signal });
    if (signal.aborted) return;
    places.forEach(([layer, position], i) => {
      const part = [i * 10, i * 10 + 10];
      const [ids, logprobs] = [found.ids, found.logprobs].map((values) => Array.from(values).slice(...part));
      this.cells.set(layer * this.trace.shape.T + position, { ids, logprobs, entropy: found.entropy[i] });
    });
    this.onCells(places);
  }

  async #work() {
    if (this.working) return;
    this.working = true;
    while (this.#wants) {
      const { signal } = (this.asking = new AbortController());
      try {
        await later(() => this.#ask(signal));
      } catch (error) {
        if (signal.aborted) continue; // stopped, and perhaps going on by now
        this.failed = true;
        this.onError(/** @type {Error} */ (error));
        break;
      }
    }
    this.working = false;
  }
}

/**
 * Cells one after the other as the trace takes them: [layer, row0, rows].
 * @param {Place[]} places
 */
function runsOf(places) {
  /** @type {[layer: number, row0: number, rows: number][]} */
  const runs = [];
  for (const [layer, position] of places) {
    const last = runs[runs.length - 1];
    if (last && last[0] === layer && last[1] + last[2] === position) last[2] += 1;
    else runs.push([layer, position, 1]);
  }
  return runs;
}
