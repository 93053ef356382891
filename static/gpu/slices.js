/**
 * Large work in slices, so that no dispatch alone keeps a slow device for longer than a submit should: rows of a weight
 * matrix, and tokens of a prompt. Mirrors webgpu/slices.py, where it is explained.
 * @module
 */
export const SLICE_ROWS = 128;
export const CHUNK_STEP = 64;

/**
 * First row and rows of slices of about the same size, multiples of `unit`, of at most `mostRows` or one unit.
 * @param {number} rows @param {number} mostRows @param {number} unit @returns {[start: number, rows: number][]}
 */
export function slices(rows, mostRows, unit = SLICE_ROWS) {
  const units = Math.ceil(rows / unit);
  const count = rows <= mostRows ? 1 : Math.ceil(units / Math.max(1, Math.floor(mostRows / unit)));
  const step = Math.ceil(units / count) * unit;
  return Array.from({ length: Math.ceil(rows / step) }, (_, i) => [i * step, Math.min(step, rows - i * step)]);
}

/**
 * Offset and tokens of a prompt's chunks: at most `mostTokens`, and fewer where the cache is long.
 * @param {number} T @param {number} mostTokens @param {number} pairFlops what one query costs for one key
 * @param {number} mostFlops @returns {[offset: number, tokens: number][]}
 */
export function chunks(T, mostTokens, pairFlops, mostFlops) {
  /** @type {[number, number][]} */
  const found = [];
  for (let offset = 0; offset < T; ) {
    const fits = Math.floor(mostFlops / (pairFlops * (offset + mostTokens)) / CHUNK_STEP) * CHUNK_STEP;
    const tokens = Math.min(mostTokens, Math.max(fits, CHUNK_STEP));
    found.push([offset, Math.min(tokens, T - offset)]);
    offset += tokens;
  }
  return found;
}
