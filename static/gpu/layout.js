/**
 * Which tensors a config needs, and in which GPU buffers each one lies.
 *
 * Matrices keep the type of the file: fmt 0 = f32, 1 = pairs of f16, 2 = pairs of bf16, 3 = Q4_1 and 4 = Q8_0 blocks, whose
 * scales lie in a buffer of their own, `name~scales`. Vectors are f32. A tensor beyond one binding is split by rows into `name#0`, `name#1`, ...; a bias is split like its matrix. Mirrors webgpu/layout.py.
 * @module
 */

import { show } from "./config_fields.js";
import { NONE } from "./dispatch.js";
import { padded, rowBytes, stack } from "./pieces.js";

/** @typedef {import("./config.js").Config} Config */
/**
 * A tensor's type and bytes, as the file has them; blocks have their scales beside them.
 * @typedef {{dtype: string, bytes: Uint8Array, scales?: {bytes: Uint8Array}}} Stored
 */
/** @typedef {import("./pieces.js").Piece} Piece */
/** @typedef {import("./pieces.js").Placed} Placed */
/** @typedef {import("./pieces.js").Layout} Layout */

export const MAX_BINDING_BYTES = 2 ** 27;
/** @type {Record<string, number>} */
export const FORMATS = { F32: 0, F16: 1, BF16: 2, Q4_1: 3, Q8_0: 4 };
/**
 * In a word of one f32 or two halves: the exponents' bits, which are all ones for NaN and infinity alone; one unit of
 * each exponent; the bits that adding it then carries into. Two halves at a time check 270 MB in a tenth of a second.
 * @type {Record<string, [exponent: number, one: number, carry: number]>}
 */
const EXPONENTS = {
  F32: [0x7f800000, 0x00800000, 0x80000000],
  F16: [0x7c007c00, 0x04000400, 0x80008000],
  BF16: [0x7f807f80, 0x00800080, 0x80008000],
};
export const EMBED = "model.embed_tokens.weight";
export const HEAD = "lm_head.weight";
export const NORM = "model.norm.weight";

/** The checkpoint's tensors are not those its config.json asks for; `code` names the rule. */
export class WeightsMismatch extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "WeightsMismatch";
    this.code = code;
  }
}

/**
 * Every tensor name with its shape, in the order of the forward pass.
 * @param {Config} c @returns {Map<string, number[]>}
 */
export function tensorShapes(c) {
  const shapes = new Map([[EMBED, [c.V, c.D]]]);
  for (let layer = 0; layer < c.L; layer++) {
    const at = `model.layers.${layer}.`;
    shapes.set(at + "input_layernorm.weight", [c.D]);
    /** @type {[string, number, number, boolean][]} */
    const products = [
      ["self_attn.q_proj", c.N * c.H, c.D, c.qkv_bias],
      ["self_attn.k_proj", c.K * c.H, c.D, c.qkv_bias],
      ["self_attn.v_proj", c.K * c.H, c.D, c.qkv_bias],
      ["self_attn.o_proj", c.D, c.N * c.H, c.o_bias],
      ["mlp.gate_proj", c.F, c.D, c.mlp_bias],
      ["mlp.up_proj", c.F, c.D, c.mlp_bias],
      ["mlp.down_proj", c.D, c.F, c.mlp_bias],
    ];
    for (const [name, dOut, dIn, bias] of products) {
      shapes.set(`${at}${name}.weight`, [dOut, dIn]);
      if (bias) shapes.set(`${at}${name}.bias`, [dOut]);
    }
    if (c.qk_norm) {
      shapes.set(at + "self_attn.q_norm.weight", [c.H]);
      shapes.set(at + "self_attn.k_norm.weight", [c.H]);
    }
    shapes.set(at + "post_attention_layernorm.weight", [c.D]);
  }
  shapes.set(NORM, [c.D]);
  if (!c.tied) shapes.set(HEAD, [c.V, c.D]);
  return shapes;
}

/**
 * Extras that transformers leaves unread too: RoPE's frequencies in old files, and a tied model's second embedding.
 * @param {Config} config
 */
function harmless({ L, tied }) {
  const names = Array.from({ length: L }, (_, layer) => `model.layers.${layer}.self_attn.rotary_emb.inv_freq`);
  return new Set(tied ? [...names, HEAD] : names);
}

/**
 * Throws WeightsMismatch when a tensor is missing or unexpected, naming the first and how many there are.
 * @param {Config} config @param {Iterable<string>} names
 */
export function checkNames(config, names) {
  const wanted = tensorShapes(config);
  const given = new Set(names);
  const missing = [...wanted.keys()].filter((name) => !given.has(name));
  const ignored = harmless(config);
  const extra = [...given].filter((name) => !wanted.has(name) && !ignored.has(name)).sort();
  const some = (/** @type {string[]} */ found) => show(found[0]) + (found.length > 1 ? ` and ${found.length - 1} more` : "");
  if (missing.length) {
    const message = `The checkpoint lacks ${some(missing)}, but config.json asks for it: fetch the model again.`;
    throw new WeightsMismatch("tensor-missing", message);
  }
  if (extra.length) {
    const message =
      `The checkpoint holds ${some(extra)}, which its config.json does not describe, so it would not be run exactly: ` +
      "take the config.json that belongs to these weights, or another model.";
    throw new WeightsMismatch("tensor-unexpected", message);
  }
}

/**
 * Throws WeightsMismatch when the head that a tied model stores is not its embedding, byte for byte.
 * @param {Stored} embed @param {Stored} head
 */
export function checkTwin(embed, head) {
  if (embed.dtype === head.dtype && same(embed.bytes, head.bytes)) {
    if (!embed.scales || !head.scales || same(embed.scales.bytes, head.scales.bytes)) return;
  }
  const message =
    `${HEAD} is not ${EMBED}, but config.json ties the two: set tie_word_embeddings to false there, ` +
    "or choose another model.";
  throw new WeightsMismatch("tensor-untied", message);
}

/** Whether two tensors of one type and shape hold the same bytes. @param {Uint8Array} a @param {Uint8Array} b */
function same(a, b) {
  const [ours, theirs] = [wordsOf(a), wordsOf(b)];
  let differs = 0;
  for (let i = 0; i < ours.length; i++) differs |= ours[i] ^ theirs[i];
  return differs === 0;
}

/**
 * Throws WeightsMismatch when a tensor holds NaN or infinity (blocks: in their scales).
 * @param {string} name @param {Stored} tensor
 */
export function checkFinite(name, { dtype, bytes, scales }) {
  const [exponent, one, carry] = EXPONENTS[scales ? "F16" : dtype];
  let found = 0;
  const words = wordsOf(scales ? scales.bytes : bytes);
  for (let i = 0; i < words.length; i++) found |= (words[i] & exponent) + one;
  if ((found & carry) === 0) return;
  const message = `${name} holds numbers that are not finite (NaN or infinity): fetch the model again, or choose another.`;
  throw new WeightsMismatch("tensor-not-finite", message);
}

/** Bytes as whole words, the last one filled up with zeros. @param {Uint8Array} bytes */
function wordsOf(bytes) {
  const { buffer, byteOffset, byteLength } = bytes;
  if (byteOffset % 4 === 0 && byteLength % 4 === 0) return new Int32Array(buffer, byteOffset, byteLength / 4);
  const words = new Int32Array(Math.ceil(byteLength / 4));
  new Uint8Array(words.buffer).set(bytes);
  return words;
}

/**
 * Throws WeightsMismatch when a tensor's shape is not what config.json says.
 * @param {string} name @param {readonly number[]} shape @param {readonly number[]} wanted
 */
export function checkShape(name, shape, wanted) {
  const words = (/** @type {readonly number[]} */ sizes) => `[${sizes.join(", ")}]`;
  if (words(shape) === words(wanted)) return;
  const message = `${name} has shape ${words(shape)}, but config.json says ${words(wanted)}: fetch the model again.`;
  throw new WeightsMismatch("tensor-shape", message);
}

/**
 * Split every tensor into buffers of at most `mostBytes`, and stack those that share one. dtypes: name -> a key of FORMATS.
 * @param {Config} config @param {Map<string, string>} dtypes @param {number} mostBytes @returns {Layout}
 */
export function place(config, dtypes, mostBytes = MAX_BINDING_BYTES) {
  const shapes = tensorShapes(config);
  const format = (/** @type {string} */ name) => FORMATS[dtypes.get(name) ?? "F32"];
  /** @type {Layout} */
  const placed = new Map();
  for (const [name, shape] of shapes) {
    const matrix = name.endsWith(".bias") ? name.slice(0, -".bias".length) + ".weight" : name;
    const matrixShape = /** @type {number[]} */ (shapes.get(matrix));
    const fmt = shape.length === 2 ? format(name) : 0;
    let rowsAPiece = shape[0];
    if (matrixShape.length === 2) {
      rowsAPiece = Math.max(1, Math.floor(mostBytes / rowBytes(format(matrix), matrixShape[1])[0]));
    }
    const [wide, scalesWide] = shape.length === 2 ? rowBytes(fmt, shape[1]) : [4, 0];
    /** @type {Piece[]} */
    const pieces = [];
    for (let row0 = 0; row0 < shape[0]; row0 += rowsAPiece) {
      const rows = Math.min(rowsAPiece, shape[0] - row0);
      const buffer = rowsAPiece >= shape[0] ? name : `${name}#${pieces.length}`;
      const scales = scalesWide ? `${buffer}~scales` : NONE;
      const scale_bytes = scalesWide ? padded(rows * scalesWide) : 0;
      pieces.push({ buffer, row0, rows, bytes: padded(rows * wide), scales, scale_bytes, at: 0 });
    }
    placed.set(name, { shape, fmt, pieces });
  }
  return stack(placed, config.L, mostBytes);
}
