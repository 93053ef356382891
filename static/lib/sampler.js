/**
 * Choosing the next token from logits: temperature, top-k, top-p, a seeded generator. Pure: same seed, same tokens.
 *
 *     p = softmax(logits / temperature), kept: the k most likely, of those the fewest whose sum reaches top-p
 * Temperature 0 is greedy. Equal logits: the lower id comes first. Log-probabilities are the model's own (temperature 1).
 * @module
 */

/** @typedef {{temperature?: number, topK?: number, topP?: number}} Sampling topK 0 and topP 1 keep every token */

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
export function argmax(logits) {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  return best;
}

/** ln of the sum of exponentials. @param {Float32Array} logits */
export function logSumExp(logits) {
  const most = logits[argmax(logits)];
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  return most + Math.log(sum);
}

/**
 * The tokens that stay in the draw, most likely first, with their probabilities (not renormalised).
 * @param {Float32Array} logits @param {number} temperature @param {number} topK @param {number} topP
 * @returns {[id: number, probability: number][]}
 */
export function kept(logits, temperature, topK, topP) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  const candidates = topK > 0 ? order.slice(0, topK) : order;
  const most = logits[order[0]];
  const weights = candidates.map((id) => Math.exp((logits[id] - most) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  /** @type {[number, number][]} */
  const chosen = [];
  let reached = 0;
  for (let i = 0; i < candidates.length && (i === 0 || reached < topP); i++) {
    chosen.push([candidates[i], weights[i] / total]);
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
