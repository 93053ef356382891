/**
 * Vectors of a checkpoint as f32: norm weights and biases are small, and kernels read them as f32 always.
 * @module
 */

/** @typedef {{dtype: string, bytes: Uint8Array}} Tensor */

/** The bytes of a vector as f32. Exact: every f16 and bf16 number is an f32 number. @param {Tensor} tensor */
export function widen({ dtype, bytes }) {
  if (dtype === "F32") return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = new Float32Array(bytes.byteLength / 2);
  const number = dtype === "BF16" ? bfloat : half;
  for (let i = 0; i < wide.length; i++) wide[i] = number(view.getUint16(2 * i, true));
  return new Uint8Array(wide.buffer);
}

const word = new DataView(new ArrayBuffer(4));

/** bf16 is the upper half of an f32. @param {number} bits */
function bfloat(bits) {
  word.setUint32(0, bits * 65536);
  return word.getFloat32(0);
}

/** IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. @param {number} bits */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
