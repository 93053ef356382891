// Matrices kept as blocks of 32 weights, exactly the values of the file they come from: NAME.q4_1 or NAME.q8_0, and
// NAME.scales beside it, stand for one matrix NAME [rows, width]. The layout is described in weights/blocks.py, where the
// same rules stand in the same order.
import { quoted, SafetensorsError } from "./strict_json.js";

export const BLOCK = 32;
/** @type {Record<string, {name: string, dtype: string, packed: number, numbers: number[]}>} */
const KINDS = {
  q4_1: { name: "Q4_1", dtype: "U32", packed: 8, numbers: [2] },
  q8_0: { name: "Q8_0", dtype: "I8", packed: 1, numbers: [] },
};
const NAMES = Object.keys(KINDS);
const QUANTS = /^(.+)\.(q[0-9]+_[0-9a-z]+)$/;
const SCALES = ".scales";

/**
 * @param {string} code
 * @param {string} message
 * @returns {never}
 */
function refuse(code, message) {
  throw new SafetensorsError(code, message);
}

/** @param {readonly number[]} sizes */
const show = (sizes) => `[${sizes.join(", ")}]`;

/**
 * Puts the two tensors of each block matrix together: its dtype becomes the block type, its shape the matrix's, and
 * `scales` is the other tensor. Others stay as they are, in the order of the file.
 * @template {{dtype: string, shape: number[]}} Tensor
 * @param {Map<string, Tensor>} tensors
 * @returns {Map<string, Tensor & {scales?: Tensor}>}
 */
export function fold(tensors) {
  /** @type {Map<string, Tensor & {scales?: Tensor}>} */
  const weights = new Map();
  for (const [name, tensor] of tensors) {
    const found = QUANTS.exec(name);
    if (found) weights.set(found[1], pair(found[1], found[2], tensor, tensors));
    else if (!name.endsWith(SCALES)) weights.set(name, tensor);
    else if (!NAMES.some((kind) => tensors.has(`${name.slice(0, -SCALES.length)}.${kind}`))) {
      refuse("block-pair", `Tensor ${quoted(name)} holds scales of no block matrix. Convert the file again.`);
    }
  }
  return weights;
}

/**
 * The matrix `base` of quants `base.suffix` and `base.scales`, checked.
 * @template {{dtype: string, shape: number[]}} Tensor
 * @param {string} base @param {string} suffix @param {Tensor} quants @param {Map<string, Tensor>} tensors
 */
function pair(base, suffix, quants, tensors) {
  const name = `${base}.${suffix}`;
  if (!Object.hasOwn(KINDS, suffix)) {
    refuse("block-kind", `Tensor ${quoted(name)} holds blocks of type ${suffix}; allowed: ${NAMES.join(", ")}.`);
  }
  if (tensors.has(base) || NAMES.filter((kind) => tensors.has(`${base}.${kind}`)).length > 1) {
    refuse("block-twice", `Matrix ${quoted(base)} is stored in more than one way; keep one of them.`);
  }
  const scales = tensors.get(base + SCALES) ??
    refuse("block-pair", `Tensor ${quoted(name)} has no ${quoted(base + SCALES)} beside it. Convert the file again.`);
  const kind = KINDS[suffix];
  const [rows, words] = quants.shape;
  const width = words * kind.packed;
  if (quants.dtype !== kind.dtype || quants.shape.length !== 2 || width % BLOCK) {
    refuse("block-shape", `Tensor ${quoted(name)} is ${quants.dtype} ${show(quants.shape)}; ${suffix} is ${kind.dtype} of two sizes, its rows whole blocks of ${BLOCK} weights.`);
  }
  const wanted = show([rows, width / BLOCK, ...kind.numbers]);
  if (scales.dtype !== "F16" || show(scales.shape) !== wanted) {
    refuse("block-shape", `Tensor ${quoted(base + SCALES)} is ${scales.dtype} ${show(scales.shape)}; ${quoted(name)} needs F16 ${wanted}.`);
  }
  return { ...quants, dtype: kind.name, shape: [rows, width], scales };
}
