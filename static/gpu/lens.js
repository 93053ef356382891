/**
 * The logit lens of rows of a trace: the ten best tokens, entropy, log-sum-exp, a target's probability and rank.
 *
 * Part of trace.js, as in webgpu/trace.py.
 * @module
 */
import { entropy, logSumExp, topTokens } from "../lib/maths.js";
import { TOP, countRows, lens, logits, rowsPerQuery } from "./queries.js";

/** @typedef {import("./trace.js").Trace} Trace */
/** @typedef {import("./queries.js").Source} Source */
/**
 * ids and logprobs [rows*10] best first; entropy (nats), lse, targetLogprob, targetRank [rows] (0 = best; without a target
 * NaN and -1).
 * @typedef {{ids: Uint32Array, logprobs: Float32Array, entropy: Float32Array, lse: Float32Array,
 *   targetLogprob: Float32Array, targetRank: Int32Array}} LensRows
 */

const NO_TARGET = 0xffffffff;

/** A question outside this trace: a layer, head, window or name that it does not have. */
export class BadQuery extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "BadQuery";
    this.code = "bad-query";
  }
}

/**
 * Lens of any rows of any layers, in batches that keep a submit short.
 * Throws BadQuery for a target outside the vocabulary.
 * @param {Trace} trace @param {Source[]} sources @param {number | null} target @param {AbortSignal} [signal]
 * @returns {Promise<LensRows>}
 */
export async function lensOf(trace, sources, target, signal) {
  const { V, D } = trace.shape;
  if (target !== null && !(Number.isInteger(target) && target >= 0 && target < V)) {
    throw new BadQuery(`Target ${target} is outside the vocabulary: allowed are 0 to ${V - 1}.`);
  }
  const answer = emptyLens(countRows(sources));
  let at = 0;
  for (const batch of batches(sources, rowsPerQuery(trace.model.config))) {
    const { ids, best, stats } = await (D % 8 ? plain(trace, batch, target, signal) : fused(trace, batch, target, signal));
    answer.ids.set(ids, at * TOP);
    for (let row = 0; row < countRows(batch); row++, at++) {
      const lse = stats[4 * row];
      answer.lse[at] = lse;
      answer.entropy[at] = stats[4 * row + 1];
      answer.targetLogprob[at] = target === null ? NaN : stats[4 * row + 2] - lse;
      answer.targetRank[at] = stats[4 * row + 3];
      for (let i = 0; i < TOP; i++) answer.logprobs[at * TOP + i] = best[row * TOP + i] - lse;
    }
  }
  return answer;
}

/**
 * ids, logits [R,10] and stats [R,4] by the lens kernels.
 * @param {Trace} trace @param {Source[]} sources @param {number | null} target @param {AbortSignal} [signal]
 */
async function fused(trace, sources, target, signal) {
  const rows = countRows(sources);
  const plan = lens(trace.model.config, trace.model.placed, { sources, choice: trace.model.choice, ...trace.model.budget });
  const targets = new Uint32Array(rows).fill(target ?? NO_TARGET);
  /** @type {[string, number][]} */
  const wanted = [["lens_ids", rows * TOP], ["lens_logits", rows * TOP], ["lens_stats", rows * 4]];
  const [ids, best, stats] = await trace.ask(plan, wanted, { targets }, signal);
  return { ids: new Uint32Array(ids), best: new Float32Array(best), stats: new Float32Array(stats) };
}

/**
 * The same from whole logits, for widths that are no multiple of 8 (no trained model has one).
 * @param {Trace} trace @param {Source[]} sources @param {number | null} target @param {AbortSignal} [signal]
 */
async function plain(trace, sources, target, signal) {
  const { V } = trace.shape;
  const rows = countRows(sources);
  const plan = logits(trace.model.config, trace.model.placed, { sources, choice: trace.model.choice, ...trace.model.budget });
  const [bytes] = await trace.ask(plan, [["logits", rows * V]], {}, signal);
  const answer = { ids: new Uint32Array(rows * TOP), best: new Float32Array(rows * TOP), stats: new Float32Array(rows * 4) };
  for (let row = 0; row < rows; row++) {
    const all = new Float32Array(bytes, 4 * row * V, V);
    topTokens(all, TOP).forEach(({ id }, i) => {
      answer.ids[row * TOP + i] = id;
      answer.best[row * TOP + i] = all[id];
    });
    answer.stats.set([logSumExp(all), entropy(all), target === null ? -1e30 : all[target], rankOf(all, target)], 4 * row);
  }
  return answer;
}

/** @param {number} rows @returns {LensRows} */
function emptyLens(rows) {
  const [entropy, lse, targetLogprob] = [new Float32Array(rows), new Float32Array(rows), new Float32Array(rows)];
  const [ids, logprobs] = [new Uint32Array(rows * TOP), new Float32Array(rows * TOP)];
  return { ids, logprobs, entropy, lse, targetLogprob, targetRank: new Int32Array(rows) };
}

/**
 * How many tokens come before the target, equal logits by lower id; -1 without a target.
 * @param {Float32Array} all @param {number | null} target
 */
function rankOf(all, target) {
  if (target === null) return -1;
  const mine = all[target];
  return all.reduce((before, logit, id) => before + Number(logit > mine || (logit === mine && id < target)), 0);
}

/**
 * Regroup [layer, row0, rows] so that each batch has at most `most` rows, in the same order.
 * @param {Source[]} sources @param {number} most
 */
export function batches(sources, most) {
  /** @type {Source[][]} */
  const all = [];
  let room = 0;
  for (const [layer, row0, rows] of sources) {
    for (let start = row0; start < row0 + rows; ) {
      if (room === 0) {
        all.push([]);
        room = most;
      }
      const take = Math.min(row0 + rows - start, room);
      all[all.length - 1].push([layer, start, take]);
      start += take;
      room -= take;
    }
  }
  return all;
}
