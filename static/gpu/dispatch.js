/**
 * What a dispatch is, and the sizes every operation shares. Mirrors webgpu/dispatch.py.
 * @module
 */

/**
 * One kernel call: overrides and parameters are numbers, bindings map the kernel's names to buffer names.
 * An image is bound as "name:width*height", the texels needed: the host makes it (kernels.js).
 * @typedef {{kernel: string, overrides: Record<string, number | boolean>, params: Record<string, number>,
 *   grid: [number, number, number], bindings: Record<string, string>}} Dispatch
 */

export const NONE = "none";
export const MAX_GROUPS = 65_535;
export const MAX_TURNS = 32_768;
export const MAX_HEAD_DIM = 256;
export const MAX_IMAGE = 8192;
export const NEAREST = "nearest";

/** A size no kernel takes; the message names it and what is allowed. */
export class UnsupportedShape extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "UnsupportedShape";
    this.code = "unsupported-shape";
  }
}

/** a / b, rounded up. @param {number} a @param {number} b */
export const ceil = (a, b) => Math.ceil(a / b);

/**
 * Fold a count of workgroups into two dimensions of at most 65,535.
 * @param {number} groups @returns {[number, number, number]}
 */
export function fold(groups) {
  const x = Math.max(1, Math.min(groups, MAX_GROUPS));
  return [x, Math.max(1, ceil(groups, x)), 1];
}

/** H, if the kernels take it. @param {number} H */
export function headDim(H) {
  if (H % 4 || H < 4 || H > MAX_HEAD_DIM) {
    throw new UnsupportedShape(`head dimension is ${H}; the kernels take multiples of 4 up to ${MAX_HEAD_DIM}.`);
  }
  return H;
}

/** Refuse query heads that cannot share their key/value heads evenly. @param {number} N @param {number} K */
export function checkGroups(N, K) {
  if (K >= 1 && N % K === 0) return;
  throw new UnsupportedShape(`${N} query heads cannot share ${K} key/value heads; N must be a multiple of K.`);
}
