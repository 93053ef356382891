/**
 * Numbers that Python and JavaScript make alike, bit for bit; bench/tensors.py says how and why.
 * @module
 */

/** @typedef {Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Int8Array<ArrayBuffer>} Stored */

/** Hash of place i under a seed, 32 bits. @param {number} seed @param {number} i */
export function hash(seed, i) {
  let x = (Math.imul(i, 0x9e3779b9) + Math.imul(seed, 0x85ebca6b)) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}

/** float32 in [-2, 2). @param {number} seed @param {number} count */
export function numbers(seed, count) {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = (hash(seed, i) >>> 8) / 2 ** 22 - 2;
  return values;
}

/** float32 in [-1/8, 1/8), eight bits each. @param {number} seed @param {number} count */
export function weights(seed, count) {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = ((hash(seed, i) >>> 24) - 128) / 1024;
  return values;
}

/**
 * Which of `count` rows are compared with float64: all up to 128; beyond, the first, the last and one of each 16.
 * @param {number} count
 */
export function sampled(count) {
  if (count <= 128) return Array.from({ length: count }, (_, row) => row);
  const rows = new Set([0, count - 1]);
  for (let block = 0; block < Math.floor(count / 16); block++) rows.add(block * 16 + ((block * 5) % 16));
  return [...rows].sort((a, b) => a - b);
}

/** The 256 values of `weights` as f16 bits: (byte - 128) / 1024. */
const HALVES = Uint16Array.from({ length: 256 }, (_, byte) => {
  const value = Math.abs(byte - 128) / 1024;
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(value));
  return (byte < 128 ? 0x8000 : 0) | ((exponent + 15) << 10) | ((value / 2 ** exponent - 1) * 1024);
});

/**
 * A weight matrix as float32 [rows*width], and the buffers that keep it: `weight`, and for blocks `scales`.
 * Q8_0 keeps `weights`; Q4_1 keeps (q - 8) / 64 with the hash's first four bits as q.
 * @param {number} seed @param {number} rows @param {number} width @param {string} format
 * @returns {{values: Float32Array<ArrayBuffer>, buffers: Record<string, Stored>}}
 */
export function matrix(seed, rows, width, format) {
  const count = rows * width;
  if (format === "q4_1") {
    const [values, quants] = [new Float32Array(count), new Uint32Array(count / 8)];
    for (let i = 0; i < count; i++) {
      const q = hash(seed, i) >>> 28;
      values[i] = (q - 8) / 64;
      quants[i >> 3] |= q << (4 * (i & 7));
    }
    // f16 bits of 1/64 and -8/64, one pair a block
    const scales = Uint16Array.from({ length: count / 16 }, (_, i) => (i % 2 ? 0xb000 : 0x2400));
    return { values, buffers: { weight: quants, scales } };
  }
  const values = weights(seed, count);
  if (format !== "q8_0") return { values, buffers: { weight: stored(values, format) } };
  const quants = Int8Array.from(values, (value) => value * 1024);
  return { values, buffers: { weight: quants, scales: new Uint16Array(count / 32).fill(0x1400) } }; // 1/1024
}

/**
 * `weights` as a format keeps them; nothing is lost.
 * @param {Float32Array<ArrayBuffer>} values @param {string} format "f16", "f32" or "bf16"
 * @returns {Stored}
 */
function stored(values, format) {
  if (format === "f32") return values;
  if (format === "bf16") return Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);
  return Uint16Array.from(values, (value) => HALVES[value * 1024 + 128]);
}
