/**
 * Judges one row of the logit lens against its exact logits; mirrors judge_lens in bench/cases.py.
 * @module
 */
import { logSumExp } from "./reference.js";

const TOLERANCE = 1e-5;

/**
 * Largest error as a share of the largest exact logit. Tokens whose exact logits agree to TOLERANCE may change places.
 * @param {Float64Array} exact [V] @param {number} target
 * @param {{ids: Uint32Array, logits: Float32Array, stats: Float32Array}} found ids and logits [10], stats [4]
 */
export function judgeLens(exact, target, { ids, logits, stats }) {
  if (![...logits, ...stats].every(Number.isFinite)) return Infinity;
  if (new Set(ids).size !== ids.length || ids.some((id) => id >= exact.length)) return Infinity;
  const largest = exact.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const lse = logSumExp(exact);
  const entropy = exact.reduce((sum, value) => sum - Math.exp(value - lse) * (value - lse), 0);
  const near = TOLERANCE * largest;
  let [above, atLeast] = [0, 0];
  for (const value of exact) {
    if (value > exact[target] + near) above += 1;
    if (value >= exact[target] - near) atLeast += 1;
  }
  if (!(above <= stats[3] && stats[3] < atLeast)) return Infinity;
  const wanted = Float64Array.from(exact).sort().reverse();
  let worst = Math.max(Math.abs(stats[0] - lse), Math.abs(stats[1] - entropy), Math.abs(stats[2] - exact[target]));
  ids.forEach((id, i) => {
    worst = Math.max(worst, Math.abs(logits[i] - wanted[i]), Math.abs(logits[i] - exact[id]));
  });
  return worst / largest;
}
