// What the heads do on the prompt at hand, by the definitions of python_ref/heads.py. A pattern is [T, T], row t the weights of
// query t. Repeats are queries whose token stood there before; the copy meant is the latest one, at s < t:
//   previous_token    mean over t >= 1  of pattern[t, t - 1]
//   first_token       mean over t >= 1  of pattern[t, 0]
//   induction         mean over repeats of pattern[t, s + 1], where s + 1 < t: what followed the copy
//   duplicate_token   mean over repeats of pattern[t, s]
// On tokens that come again every P positions these are the very sums of python_ref, there s = t - P. A score that no query
// can have (one token; nothing repeats) is NaN.

export const PROMPT_SCORES = /** @type {const} */ (["previous_token", "first_token", "induction", "duplicate_token"]);
/** @typedef {typeof PROMPT_SCORES[number]} PromptScore */

/**
 * @param {ArrayLike<number>} ids [T]
 * @returns {Int32Array} [T] position of the latest earlier copy of each token, -1 where there is none
 */
function earlierCopies(ids) {
  /** @type {Map<number, number>} */
  const last = new Map();
  return Int32Array.from({ length: ids.length }, (_, t) => {
    const copy = last.get(ids[t]) ?? -1;
    last.set(ids[t], t);
    return copy;
  });
}

/**
 * The cells that each score is the mean of, as offsets into a pattern of T rows.
 * @param {ArrayLike<number>} ids [T]
 * @returns {Record<PromptScore, number[]>}
 */
export function scoredCells(ids) {
  const T = ids.length;
  const copies = earlierCopies(ids);
  /** @type {Record<PromptScore, number[]>} */
  const cells = { previous_token: [], first_token: [], induction: [], duplicate_token: [] };
  for (let t = 1; t < T; t += 1) {
    cells.previous_token.push(t * T + t - 1);
    cells.first_token.push(t * T);
    const copy = copies[t];
    if (copy < 0) continue;
    cells.duplicate_token.push(t * T + copy);
    if (copy + 1 < t) cells.induction.push(t * T + copy + 1);
  }
  return cells;
}

/**
 * @param {Float32Array} patterns [N * T * T] of the heads of one layer
 * @param {number} N
 * @param {Record<PromptScore, number[]>} cells of `scoredCells`
 * @returns {Record<PromptScore, Float32Array>} [N] each
 */
export function scoresOfHeads(patterns, N, cells) {
  const size = patterns.length / N;
  /** @param {number[]} chosen */
  const means = (chosen) =>
    Float32Array.from({ length: N }, (_, n) => chosen.reduce((sum, cell) => sum + patterns[n * size + cell], 0) / chosen.length);
  const { previous_token, first_token, induction, duplicate_token } = cells;
  return {
    previous_token: means(previous_token),
    first_token: means(first_token),
    induction: means(induction),
    duplicate_token: means(duplicate_token),
  };
}
