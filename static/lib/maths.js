// The few formulas the page computes itself; everything heavier runs in the kernels.

/**
 * Natural logarithm of the sum of exponentials, in double precision.
 * @param {ArrayLike<number>} logits [V]
 */
export function logSumExp(logits) {
  let most = -Infinity;
  for (let i = 0; i < logits.length; i += 1) most = Math.max(most, logits[i]);
  let sum = 0;
  for (let i = 0; i < logits.length; i += 1) sum += Math.exp(logits[i] - most);
  return most + Math.log(sum);
}

/**
 * The k largest logits with their log-probabilities; ties go to the lower id, as in the kernels.
 * @param {ArrayLike<number>} logits [V]
 * @param {number} k
 * @returns {{id: number, logprob: number}[]}
 */
export function topTokens(logits, k) {
  const lse = logSumExp(logits);
  /** @type {number[]} */
  const best = [];
  for (let id = 0; id < logits.length; id += 1) {
    if (best.length === k && !(logits[id] > logits[best[k - 1]])) continue;
    let place = best.length;
    while (place > 0 && logits[id] > logits[best[place - 1]]) place -= 1;
    best.splice(place, 0, id);
    if (best.length > k) best.pop();
  }
  return best.map((id) => ({ id, logprob: logits[id] - lse }));
}

/**
 * Entropy of the softmax of the logits, in nats: -sum p log p.
 * @param {ArrayLike<number>} logits [V]
 */
export function entropy(logits) {
  const lse = logSumExp(logits);
  let sum = 0;
  for (let i = 0; i < logits.length; i += 1) sum -= Math.exp(logits[i] - lse) * (logits[i] - lse);
  return sum;
}

/**
 * First and one-past-last cell that pixel `i` of `out` covers when `total` cells are spread over it: at least one cell.
 * The same rule as the attention_probs kernel.
 * @param {number} i
 * @param {number} total
 * @param {number} out
 * @returns {[number, number]}
 */
export function cellsOfPixel(i, total, out) {
  const from = Math.floor((i * total) / out);
  return [from, Math.max(from + 1, Math.floor(((i + 1) * total) / out))];
}

/**
 * Shrinks a matrix by taking the largest value of each block; NaN only where a block holds nothing else.
 * @param {Float32Array} cells [rows * cols]
 * @param {number} rows
 * @param {number} cols
 * @param {number} outRows at most rows
 * @param {number} outCols at most cols
 */
export function blockMax(cells, rows, cols, outRows, outCols) {
  if (outRows === rows && outCols === cols) return cells;
  const out = new Float32Array(outRows * outCols);
  for (let i = 0; i < outRows; i += 1) {
    const [r0, r1] = cellsOfPixel(i, rows, outRows);
    for (let j = 0; j < outCols; j += 1) {
      const [c0, c1] = cellsOfPixel(j, cols, outCols);
      let most = NaN;
      for (let r = r0; r < r1; r += 1) {
        for (let c = c0; c < c1; c += 1) if (!(cells[r * cols + c] <= most) && !Number.isNaN(cells[r * cols + c])) most = cells[r * cols + c];
      }
      out[i * outCols + j] = most;
    }
  }
  return out;
}
