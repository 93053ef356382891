// Attention weights rebuilt from q, k and the log-sum-exp of each row, for one window, reduced to pixels: what the kernel
// attention_probs does, in plain JavaScript, for devices that cannot run it.
//   pattern[n,t,s] = exp(scale * q[t,n] . k[s, floor(n / G)] - lse[n,t])   for visible keys s, else 0
import { cellsOfPixel } from "./maths.js";
import { visible } from "./pattern.js";

/**
 * @typedef {object} Layer
 * @property {Float32Array} q [T,N,H]
 * @property {Float32Array} k [T,K,H]
 * @property {Float32Array} lse [N,T]
 */

/**
 * @param {Layer} layer
 * @param {{N: number, K: number, H: number, T: number}} shape
 * @param {import("./pattern.js").Rule} rule
 * @param {number} head
 * @param {number} row
 * @param {number} col
 */
export function weight({ q, k, lse }, { N, K, H, T }, rule, head, row, col) {
  if (!visible(row, col, rule)) return 0;
  const group = Math.floor(head / (N / K));
  const [q0, k0] = [(row * N + head) * H, (col * K + group) * H];
  let dot = 0;
  for (let i = 0; i < H; i += 1) dot += q[q0 + i] * k[k0 + i];
  return Math.exp(dot / Math.sqrt(H) - lse[head * T + row]);
}

/**
 * @param {Layer} layer
 * @param {{N: number, K: number, H: number, T: number}} shape
 * @param {import("./pattern.js").Rule} rule
 * @param {{head0: number, heads: number, row0: number, rows: number, col0: number, cols: number, outRows: number, outCols: number, reduce: "max" | "mean"}} request
 * @returns {Float32Array} [heads * outRows * outCols]
 */
export function patternWindow(layer, shape, rule, { head0, heads, row0, rows, col0, cols, outRows, outCols, reduce }) {
  const out = new Float32Array(heads * outRows * outCols);
  let at = 0;
  for (let head = head0; head < head0 + heads; head += 1) {
    for (let i = 0; i < outRows; i += 1) {
      const [r0, r1] = cellsOfPixel(i, rows, outRows);
      for (let j = 0; j < outCols; j += 1, at += 1) {
        const [c0, c1] = cellsOfPixel(j, cols, outCols);
        let value = 0;
        for (let r = row0 + r0; r < row0 + r1; r += 1) {
          for (let c = col0 + c0; c < col0 + c1; c += 1) {
            const one = weight(layer, shape, rule, head, r, c);
            value = reduce === "max" ? Math.max(value, one) : value + one;
          }
        }
        out[at] = reduce === "max" ? value : value / ((r1 - r0) * (c1 - c0));
      }
    }
  }
  return out;
}
