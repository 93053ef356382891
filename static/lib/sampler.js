/**
 * Choosing the next token from logits: temperature, top-k, top-p, a seeded generator. Pure: same seed, same tokens.
 *
 *     p = softmax(logits / temperature), kept: the k most likely, of those the fewest whose sum reaches top-p
 * Temperature 0 is greedy. Equal logits: the lower id comes first. Log-probabilities are the model's own (temperature 1).
 *
 * A draw mostly needs few of a row's logits: `sampleFrom` gives the token that `sample` would give of the whole row, from
 * what webgpu/candidates.wgsl kept of it, or says that it cannot tell.
 * @module
 */
import { logSumExp } from "./maths.js";

/** @typedef {{temperature?: number, topK?: number, topP?: number}} Sampling topK 0 and topP 1 keep every token */
/**
 * The likeliest tokens of a row in order, none left out between them; lse: ln of the sum of exponentials of the whole row;
 * total: its sum of exp((logit - largest) / temperature), both to about TOTAL_ERROR; whole: whether ids are the whole row.
 * @typedef {{ids: number[], logits: number[], lse: number, total: number, whole: boolean}} Candidates
 */

const LIST_WORDS = 20;
const LIST_PLACES = 8;
const EMPTY = 0xffffffff;
/**
 * Most by which a device's sum of weights may be off, as a share: up to 600 weights are added in single precision, each with
 * the error that WGSL allows `exp` (3 + 2 |x| units in the last place; weights beyond x = -20 do not count).
 */
const TOTAL_ERROR = 1e-4;
/** Room for the rounding of double precision, which another order of adding changes. */
const ROUNDING = 1e-9;

/**
 * A generator of numbers in [0, 1): mulberry32, 32 bits of state.
 * @param {number} seed a whole number; its lower 32 bits count
 */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Choose a token. random: a function like `seeded` returns; it is called once unless the choice is greedy.
 * @param {Float32Array} logits @param {Sampling} sampling @param {() => number} random
 * @returns {{id: number, logprob: number}}
 */
export function sample(logits, { temperature = 1, topK = 0, topP = 1 }, random) {
  const lse = logSumExp(logits);
  const id = temperature > 0 ? draw(kept(logits, temperature, topK, topP), random()) : argmax(logits);
  return { id, logprob: logits[id] - lse };
}

/** The largest logit's id, the lowest of equals. @param {Float32Array} logits */
function argmax(logits) {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  return best;
}

/**
 * The tokens that stay in the draw, most likely first, with their probabilities (not renormalised).
 * @param {Float32Array} logits @param {number} temperature @param {number} topK @param {number} topP
 * @returns {[id: number, probability: number][]}
 */
export function kept(logits, temperature, topK, topP) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  const candidates = topK > 0 ? order.slice(0, topK) : order;
  return likeliest(candidates, candidates.map((id) => logits[id]), temperature, topP);
}

/**
 * Of tokens in order of their logits the fewest whose probabilities reach topP.
 * @param {number[]} ids @param {number[]} logits @param {number} temperature @param {number} topP
 * @returns {[id: number, probability: number][]}
 */
function likeliest(ids, logits, temperature, topP) {
  const weights = logits.map((logit) => Math.exp((logit - logits[0]) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  /** @type {[number, number][]} */
  const chosen = [];
  let reached = 0;
  for (let i = 0; i < ids.length && (i === 0 || reached < topP); i++) {
    chosen.push([ids[i], weights[i] / total]);
    reached += weights[i] / total;
  }
  return chosen;
}

/**
 * The token at `point` (0 .. 1) of the kept probabilities laid end to end.
 * @param {[number, number][]} chosen @param {number} point
 */
function draw(chosen, point) {
  let left = point * chosen.reduce((sum, [, probability]) => sum + probability, 0);
  for (const [id, probability] of chosen) {
    left -= probability;
    if (left < 0) return id;
  }
  return chosen[chosen.length - 1][0];
}

/**
 * What the lists of webgpu/candidates.wgsl say for certain. A logit that none of them holds is at most the last one of a full
 * list, so larger ones are all there.
 * @param {ArrayBuffer} lists [.., LIST_WORDS] words: m, s, h, 0, logits, ids
 * @param {number} temperature that of h, not 0 @returns {Candidates}
 */
export function candidatesOf(lists, temperature) {
  const [words, numbers] = [new Uint32Array(lists), new Float32Array(lists)];
  let [most, hidden] = [-Infinity, -Infinity];
  for (let at = 0; at < words.length; at += LIST_WORDS) {
    most = Math.max(most, numbers[at]);
    if (words[at + 19] !== EMPTY) hidden = Math.max(hidden, numbers[at + 11]);
  }
  /** @type {[id: number, logit: number][]} */
  const found = [];
  let [sum, total] = [0, 0];
  for (let at = 0; at < words.length; at += LIST_WORDS) {
    const below = numbers[at] - most;
    sum += numbers[at + 1] * Math.exp(below);
    total += numbers[at + 2] * Math.exp(below / temperature);
    for (let i = at + 4; i < at + 4 + LIST_PLACES && numbers[i] > hidden && words[i + LIST_PLACES] !== EMPTY; i++) {
      found.push([words[i + LIST_PLACES], numbers[i]]);
    }
  }
  found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const [ids, logits] = [found.map(([id]) => id), found.map(([, logit]) => logit)];
  return { ids, logits, lse: most + Math.log(sum), total, whole: hidden === -Infinity };
}

/**
 * The token that `sample` chooses of the whole row at this point of the draw (0 .. 1); null when the candidates cannot tell.
 * @param {Candidates} candidates their total for this temperature, which is not 0
 * @param {Sampling} sampling @param {number} point @returns {{id: number, logprob: number} | null}
 */
export function sampleFrom({ ids, logits, lse, total, whole }, { temperature = 1, topK = 0, topP = 1 }, point) {
  if (!whole && topK > ids.length) return null;
  const many = topK || ids.length;
  const id =
    whole || topK > 0
      ? draw(likeliest(ids.slice(0, many), logits.slice(0, many), temperature, topP), point)
      : drawOfMore(ids, logits.map((logit) => Math.exp((logit - logits[0]) / temperature)), total, topP, point);
  return id === null ? null : { id, logprob: logits[ids.indexOf(id)] - lse };
}

/**
 * The token at `point` of a row of which only the largest weights are known, and the total nearly; null when what is not
 * known decides.
 * @param {number[]} ids @param {number[]} weights @param {number} total @param {number} topP @param {number} point
 * @returns {number | null}
 */
function drawOfMore(ids, weights, total, topP, point) {
  let reached = 0;
  const sums = weights.map((weight) => (reached += weight));
  /** @param {number} share @param {number} room */
  const beyond = (share, room) => sums.findIndex((sum) => sum > share * (1 + room));
  let [low, high] = [total * (1 - TOTAL_ERROR), total * (1 + TOTAL_ERROR)];
  if (topP < 1) {
    const [first, last] = [beyond(topP * low, -ROUNDING), beyond(topP * high, ROUNDING)];
    if (last < 0) return null;
    [low, high] = [sums[first], sums[last]]; // the tokens kept end between these two
  }
  const i = beyond(point * low, -ROUNDING);
  return i >= 0 && i === beyond(point * high, ROUNDING) ? ids[i] : null;
}
