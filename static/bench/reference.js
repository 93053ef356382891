/**
 * The formulas in float64, slow and obvious: what a kernel's result is compared with before its time is believed.
 * Notation of the house; mirrors bench/reference.py.
 * @module
 */

/**
 * Scores of one query against the first `count` keys of its head. q [T,N,H], k [S,K,H] -> [count]
 * @param {Float32Array} q @param {Float32Array} k
 * @param {{N: number, K: number, H: number}} heads @param {number} t @param {number} n @param {number} count
 */
function scores(q, k, { N, K, H }, t, n, count) {
  const found = new Float64Array(count);
  const [from, group] = [(t * N + n) * H, Math.floor(n / (N / K))];
  for (let s = 0; s < count; s++) {
    const key = (s * K + group) * H;
    let sum = 0;
    for (let h = 0; h < H; h++) sum += q[from + h] * k[key + h];
    found[s] = sum / Math.sqrt(H);
  }
  return found;
}

/** Natural log of the sum of exponentials. @param {Float64Array} values */
export function logSumExp(values) {
  let top = -Infinity;
  for (const value of values) top = Math.max(top, value);
  let total = 0;
  for (const value of values) total += Math.exp(value - top);
  return top + Math.log(total);
}

/**
 * Causal grouped-query attention of one query row and head; the last of T queries sees all S keys.
 * @param {{q: Float32Array, k: Float32Array, v: Float32Array}} tensors
 * @param {{T: number, S: number, N: number, K: number, H: number}} shape @param {number} t @param {number} n
 * @returns {{o: Float64Array, lse: number}} o [H]
 */
export function attentionRow({ q, k, v }, { T, S, N, K, H }, t, n) {
  const row = scores(q, k, { N, K, H }, t, n, S - T + t + 1);
  const lse = logSumExp(row);
  const o = new Float64Array(H);
  const group = Math.floor(n / (N / K));
  for (let s = 0; s < row.length; s++) {
    const weight = Math.exp(row[s] - lse);
    const value = (s * K + group) * H;
    for (let h = 0; h < H; h++) o[h] += weight * v[value + h];
  }
  return { o, lse };
}

/**
 * Pattern of head 0 in one row: weights of the T keys (0 where masked), and the row's lse.
 * @param {Float32Array} q @param {Float32Array} k @param {{T: number, N: number, K: number, H: number}} shape @param {number} t
 */
export function patternRow(q, k, { T, N, K, H }, t) {
  const row = scores(q, k, { N, K, H }, t, 0, t + 1);
  const lse = logSumExp(row);
  const cells = new Float64Array(T);
  for (let s = 0; s <= t; s++) cells[s] = Math.exp(row[s] - lse);
  return { cells, lse };
}

/**
 * One row of x [T,d_in] times weight [d_out,d_in] transposed -> [d_out].
 * @param {Float32Array} x @param {Float32Array} weight @param {number} d_in @param {number} d_out @param {number} t
 */
export function productRow(x, weight, d_in, d_out, t) {
  const row = new Float64Array(d_out);
  for (let m = 0; m < d_out; m++) {
    let sum = 0;
    for (let d = 0; d < d_in; d++) sum += x[t * d_in + d] * weight[m * d_in + d];
    row[m] = sum;
  }
  return row;
}

/** Collects the largest difference and the largest value wanted; `share` is their ratio, infinite for what is no number. */
export class Worst {
  error = 0;
  largest = 0;
  /** @param {ArrayLike<number>} found @param {number} at @param {ArrayLike<number>} wanted */
  add(found, at, wanted) {
    for (let i = 0; i < wanted.length; i++) {
      const off = Math.abs(found[at + i] - wanted[i]);
      this.error = off <= this.error ? this.error : Number.isNaN(off) ? Infinity : off;
      this.largest = Math.max(this.largest, Math.abs(wanted[i]));
    }
  }
  get share() {
    return this.error / this.largest;
  }
}
