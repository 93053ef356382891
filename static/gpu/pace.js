/**
 * How much work one submit of a prefill takes: what this device did in TARGET_MS a moment ago. A page on the same device waits
 * for a submit before it can draw, so a slow device gets small ones; a fast one gets large ones, of which each costs a round
 * trip. The budget is an input of a plan: webgpu/ keeps the constant.
 * @module
 */
import { SUBMIT_FLOPS } from "./plan.js";

export const TARGET_MS = 100;
export const LEAST_FLOPS = 50_000_000;
export const MOST_FLOPS = 20_000_000_000;
/** One run changes the budget by at most this: a busy moment says little about the device. */
const CHANGE = 4;

/** The budget of one model, learnt run by run. */
export class Pace {
  constructor() {
    this.flops = SUBMIT_FLOPS;
    /** The slowest submit of this run, flops per ms. */
    this.rate = Infinity;
  }

  /** A submit has run. Nearly empty ones say nothing about the rest. @param {number} flops @param {number} ms */
  note(flops, ms) {
    if (flops >= this.flops / CHANGE) this.rate = Math.min(this.rate, flops / Math.max(ms, 0.1));
  }

  /** A run is over: the budget of the next. */
  settle() {
    if (this.rate < Infinity) {
      const wanted = Math.min(Math.max(this.rate * TARGET_MS, this.flops / CHANGE), this.flops * CHANGE);
      this.flops = Math.round(Math.min(Math.max(wanted, LEAST_FLOPS), MOST_FLOPS));
    }
    this.rate = Infinity;
  }
}
