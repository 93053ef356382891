/**
 * What a measurement can be asked: operations, their sizes with defaults and limits, and one sentence for the rest.
 * Mirrors bench/arguments.py; a test compares them.
 * @module
 */
import { BenchError } from "./errors.js";

/** @typedef {{op: string, variant: string | null, [name: string]: any}} Asked */
/** @typedef {[number | null, number, number] | string[]} Allowed default, least, most; or words, the default first */

/** @type {Record<string, Allowed>} */
const HEADS = { N: [9, 1, 128], K: [3, 1, 128], H: [64, 4, 256] };
const FORMATS = ["f16", "f32", "bf16", "q4_1", "q8_0"];
/** @type {Record<string, Record<string, Allowed>>} */
export const OPERATIONS = {
  attention: { T: [512, 2, 8192], ...HEADS },
  decode: { T: [2048, 1, 8192], ...HEADS },
  heatmap: { T: [2048, 2, 8192], ...HEADS, window: [null, 1, 8192], pixels: [null, 1, 8192] },
  matmul: { T: [64, 1, 8192], d_in: [576, 8, 16384], d_out: [1536, 1, 65536], format: FORMATS },
  lens: { T: [4, 1, 512], D: [576, 8, 8192], V: [49152, 16, 200000], format: FORMATS },
  model: { T: [64, 2, 2048], tokens: [8, 2, 512] },
};
/** The words of the table mean the same operations. @type {Record<string, string>} */
export const ALSO = {
  "prefill": "attention", "attention prefill": "attention", "attention decode": "decode",
  "heatmap window": "heatmap", "window": "heatmap", "matrix product": "matmul", "product": "matmul",
  "whole model": "model",
};
const MOST_BYTES = 128 * 2 ** 20;

/** @param {string} message */
const refuse = (message) => new BenchError("bad-arguments", message);

/** A given value in a sentence, as JSON writes it. @param {unknown} value */
function shown(value) {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return typeof value;
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return typeof value;
  }
}

/**
 * The arguments of one measurement with every size filled in. Throws BenchError("bad-arguments").
 * @param {unknown} given @returns {Asked}
 */
export function read(given) {
  if (given === null || typeof given !== "object" || Array.isArray(given))
    throw refuse(`bench takes an object such as {op: "attention", T: 512}; given was ${shown(given)}.`);
  const asked = /** @type {Record<string, unknown>} */ (given);
  const named = asked.op ?? "attention";
  const op = typeof named === "string" && Object.hasOwn(ALSO, named) ? ALSO[named] : named;
  if (typeof op !== "string" || !Object.hasOwn(OPERATIONS, op))
    throw refuse(`op is ${shown(op)}; allowed are ${Object.keys(OPERATIONS).join(", ")}.`);
  const table = OPERATIONS[op];
  for (const name of Object.keys(asked))
    if (!["op", "variant"].includes(name) && !Object.hasOwn(table, name))
      throw refuse(`${op} takes no ${name}; it takes ${[...Object.keys(table), "variant"].join(", ")}.`);
  const variant = asked.variant ?? null;
  if (variant !== null && typeof variant !== "string")
    throw refuse("variant is no text; it is the name of a variant, or left out.");
  /** @type {Asked} */
  const found = { op, variant };
  for (const [name, allowed] of Object.entries(table)) found[name] = one(op, name, asked[name] ?? null, allowed);
  return together(found);
}

/** @param {string} op @param {string} name @param {unknown} value @param {Allowed} allowed */
function one(op, name, value, allowed) {
  if (value === null) return allowed[0];
  if (typeof allowed[0] === "string") {
    if (/** @type {unknown[]} */ (allowed).includes(value)) return value;
    throw refuse(`${name} is ${shown(value)}; ${op} takes ${allowed.join(", ")}.`);
  }
  const [, least, most] = /** @type {[number | null, number, number]} */ (allowed);
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw refuse(`${name} is ${shown(value)}; ${op} takes whole numbers from ${least} to ${most}.`);
}

/** Rules between sizes, and defaults that depend on them. @param {Asked} found */
function together(found) {
  const { op, T, N = 0, K, H = 0, d_in = 0, D = 0 } = found;
  if (K && N % K) throw refuse(`N is ${N} and K is ${K}; N must be a multiple of K.`);
  if (H % 4) throw refuse(`H is ${H}; the kernels take multiples of 4.`);
  if (op === "heatmap") {
    found.window ??= T;
    if (found.window > T)
      throw refuse(`window is ${found.window}; a pattern of ${T} tokens has no more rows.`);
    found.pixels ??= found.window;
    if (found.pixels > found.window)
      throw refuse(`pixels is ${found.pixels}; a window of ${found.window} rows has no more pixels.`);
  }
  for (const [name, width] of Object.entries({ d_in, D })) {
    if (width % 8) throw refuse(`${name} is ${width}; the kernels take multiples of 8.`);
    if (found.format?.startsWith("q") && width % 32)
      throw refuse(`${name} is ${width}; ${found.format} keeps blocks of 32.`);
  }
  const needed = largest(found);
  if (needed > MOST_BYTES)
    throw refuse(`these sizes need a buffer of ${needed} bytes; a device binds ${MOST_BYTES}, so take less.`);
  return found;
}

/**
 * Bytes of the largest buffer that can pass the limit, a matrix counted as the float32 that its check keeps. Others
 * (log-sum-exp, decode's and the lens's scratch, lists of tokens) stay below it at every size allowed above.
 * @param {Asked} found
 */
function largest({ op, T, N = 0, K = 0, H = 0, d_in = 0, d_out = 0, D = 0, V = 0, pixels = 0 }) {
  const heads = op === "decode" ? K : N; // a decode has one query, and T keys
  return 4 * Math.max(T * heads * H, T * d_in, T * d_out, d_out * d_in, T * D, V * D, pixels ** 2);
}
