// Numbers for people: three significant digits, thousands separated, units beside them.

/**
 * Three significant digits; very small values in scientific notation.
 * @param {number} value
 */
export function three(value) {
  if (typeof value !== "number" || Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.001 || size >= 1e6) return value.toExponential(2).replace("e-", "e−").replace("e+", "e");
  return size >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/**
 * A weight or probability for a column of figures: always three decimals, so that columns line up.
 * @param {number} value 0..1
 */
export function share(value) {
  return value > 0 && value < 0.0005 ? "<.001" : value.toFixed(3);
}

/**
 * By hand: the first use of the browser's own formatter reads its tables and holds the page up for 50 ms.
 * @param {number} value a whole number
 * @returns {string} 8192 -> 8,192
 */
export function count(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * As weights/sizes.py writes it.
 * @param {number} bytes
 * @returns {string} decimal megabytes, the unit that download sizes are given in
 */
export function megabytes(bytes) {
  return bytes < 1e6 ? `${(Math.round(Math.max(0, bytes) / 1e5) / 10).toFixed(1)} MB` : `${count(bytes / 1e6)} MB`;
}

/**
 * How much of a size is there.
 * @param {number} done_bytes
 * @param {number} total_bytes
 * @returns {string} 41 of 97 MB
 */
export function partOf(done_bytes, total_bytes) {
  const done = total_bytes < 1e6 ? megabytes(Math.min(done_bytes, total_bytes)) : `${count(done_bytes / 1e6)} MB`;
  return `${done.replace(" MB", "")} of ${megabytes(total_bytes)}`;
}

/**
 * @param {number} n
 * @param {string} word
 * @param {string} [many]
 */
export function plural(n, word, many = `${word}s`) {
  return `${count(n)} ${n === 1 ? word : many}`;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string} 20 4D 61
 */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}
