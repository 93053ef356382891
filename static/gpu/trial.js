/**
 * Which variant is fastest here: each is compiled, run once, and timed for about 50 ms; the answer is remembered.
 *
 * A model begins on `firstChoice`, or on what is remembered; the rest is tried when the first prompt is drawn, and later
 * prompts take the answer. What is remembered is bound to the device's name, the sizes, the weights' format and the text of
 * the kernels, so that a new kernel is tried again. A wrong kernel has no speed: a variant whose numbers are not those of the
 * first one is out. Mirrors webgpu/trial.py. Left out on purpose: variants of windows, norms and the lens.
 * @module
 */
import { Buffers } from "./buffers.js";
import { attention, attentionScratch } from "./attention.js";
import { NONE } from "./dispatch.js";
import { matmul } from "./ops.js";
import { padded, rowBytes } from "./pieces.js";
import { fetchText, textsVersion } from "./texts.js";
import { firstChoice, pick, toTry } from "./variants.js";

/** @typedef {import("./kernels.js").Kernels} Kernels */
/** @typedef {import("./dispatch.js").Dispatch} Dispatch */
/** @typedef {{N: number, K: number, H: number, D: number, F: number, fmt: number}} Sizes */
/** @typedef {{getItem(key: string): string | null, setItem(key: string, value: string): void}} Memory localStorage will do */
/**
 * What is timed: bytes by buffer, those that are written, and what a variant runs.
 * @typedef {{sizes: Map<string, number>, answers: string[], dispatches: (variant: string) => Dispatch[]}} Work
 */

export const TRIAL_MS = 50;
/**
 * Tokens, cached tokens and how often in one submit: the wait for a submit is longer than one short dispatch on a GPU.
 * @type {Record<string, [number, number, number]>}
 */
const ATTENTION = { attention: [256, 0, 1], decode: [1, 1023, 8] };
/**
 * Tokens and how often in one submit. A prompt of many tokens and one of few run on the same choice.
 * @type {Record<string, [number, number][]>}
 */
const PRODUCTS = { matmul: [[64, 2], [8, 4]], matvec: [[1, 32]] };
const MOST_WEIGHT_BYTES = 2 ** 23;
/** Share of the largest number: f16 storage rounds to 0.0005 of it, a wrong kernel is off by its own numbers. */
const DISAGREE = 0.004;

/**
 * What a trial has to know of a model: heads, widths, and the storage format of its products.
 * @param {import("./config.js").Config} config @param {import("./layout.js").Layout} placed @returns {Sizes}
 */
export function sizesOf({ N, K, H, D, F }, placed) {
  return { N, K, H, D, F, fmt: placed.get("model.layers.0.mlp.gate_proj.weight")?.fmt ?? 0 };
}

/**
 * The fastest variants on this device by operation, those that are remembered and those that are tried now.
 * @param {Kernels} kernels @param {Sizes} sizes @param {Memory} memory
 * @param {() => number} now milliseconds @returns {Promise<import("./variants.js").Choice>}
 */
export async function tryVariants(kernels, sizes, memory, now = () => performance.now()) {
  const choice = await recallVariants(kernels, sizes, memory);
  for (const operation of operations(sizes)) {
    if (choice[operation]) continue;
    const names = namesOf(kernels, operation, sizes);
    const name = names.length > 1 ? await fastest(kernels, work(operation, sizes), names, now) : names[0];
    if (name === null) continue; // none ran: the device is lost, or the next visit may do better
    choice[operation] = name;
    const key = await keyOf(kernels, operation, sizes, names);
    try {
      memory.setItem(key, name);
    } catch {
      // full or forbidden: the next visit tries again
    }
  }
  return choice;
}

/**
 * The variants that are remembered, by operation.
 * @param {Kernels} kernels @param {Sizes} sizes @param {Memory} memory @returns {Promise<import("./variants.js").Choice>}
 */
export async function recallVariants(kernels, sizes, memory) {
  /** @type {import("./variants.js").Choice} */
  const choice = {};
  for (const operation of operations(sizes)) {
    const names = namesOf(kernels, operation, sizes);
    const key = await keyOf(kernels, operation, sizes, names);
    const known = recall(memory, key);
    if (known !== null && names.includes(known)) choice[operation] = known;
  }
  return choice;
}

/** Rows that are not multiples of 8 have one product only. @param {Sizes} sizes */
function operations({ D }) {
  return [...Object.keys(ATTENTION), ...(D % 8 ? [] : Object.keys(PRODUCTS))];
}

/** @param {Kernels} kernels @param {string} operation @param {Sizes} sizes */
function namesOf({ device }, operation, sizes) {
  return toTry(operation, device.features, device.software, sizes);
}

/** @typedef {{features: Set<string>, software: boolean}} Able what of a device a choice depends on */

/**
 * Whether a model tries variants on this device. Where a CPU stands in for a GPU the first choice is the measured one, and a
 * trial would take the time of the first prompt.
 * @param {Able} device
 */
export const tries = ({ software }) => !software;

/**
 * The variants among which a model chooses on this device, in order; sizes: letters of variants.js. Where nothing is tried, or
 * of an operation that no trial times, it is the one that a model begins with.
 * @param {string} operation @param {Able} device @param {Record<string, number>} sizes
 */
export function candidates(operation, device, sizes) {
  const { features, software } = device;
  if (tries(device) && (operation in ATTENTION || operation in PRODUCTS)) return toTry(operation, features, software, sizes);
  return [pick(operation, firstChoice(features, software)[operation], sizes)];
}

/**
 * The one that a model takes: the fastest of its candidates, timed now if there are several; null if none runs.
 * @param {Kernels} kernels @param {string} operation @param {Sizes} sizes
 * @param {() => number} now milliseconds @returns {Promise<string | null>}
 */
export async function chosen(kernels, operation, sizes, now = () => performance.now()) {
  const names = candidates(operation, kernels.device, sizes);
  return names.length > 1 ? fastest(kernels, work(operation, sizes), names, now) : names[0];
}

/** @param {Memory} memory @param {string} key */
function recall(memory, key) {
  try {
    return memory.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} operation @param {Sizes} sizes @returns {Work} */
function work(operation, sizes) {
  return operation in ATTENTION ? attentionWork(operation, sizes) : productWork(operation, sizes);
}

/** @param {string} operation @param {Sizes} heads @returns {Work} */
function attentionWork(operation, { N, K, H }) {
  const [T, offset, times] = ATTENTION[operation];
  const S = offset + T;
  const sizes = new Map([
    ["q", 4 * T * N * H], ["k", 4 * S * K * H], ["v", 4 * S * K * H], ["o", 4 * T * N * H], ["lse", 4 * N * T],
    ["part", attentionScratch({ T, S, N, H })],
  ]);
  const given = { q: "q", k: "k", v: "v", o: "o", lse: "lse", scratch: "part", T, S, N, K, H, offset, window: 0, sinks: 0, scale: 0.25 };
  return { sizes, answers: ["o", "lse"], dispatches: (variant) => repeated(attention({ ...given, variant }), times) };
}

/**
 * From the model's width to that of its MLP, or fewer columns where that would be a very large matrix.
 * @param {string} operation @param {Sizes} model @returns {Work}
 */
function productWork(operation, { D: d_in, F, fmt }) {
  const [wide, scalesWide] = rowBytes(fmt, d_in);
  const d_out = Math.min(F, Math.floor(MOST_WEIGHT_BYTES / wide));
  const sizes = new Map([["w", wide * d_out], ["scales", scalesWide * d_out]]);
  for (const [T] of PRODUCTS[operation]) sizes.set(`x${T}`, 4 * T * d_in).set(`out${T}`, 4 * T * d_out);
  const given = { weight: "w", bias: null, scales: scalesWide ? "scales" : NONE, d_in, d_out, fmt };
  return {
    sizes,
    answers: PRODUCTS[operation].map(([T]) => `out${T}`),
    dispatches: (variant) =>
      PRODUCTS[operation].flatMap(([T, times]) => repeated([matmul({ ...given, x: `x${T}`, out: `out${T}`, T, variant })].flat(), times)),
  };
}

/** @param {Dispatch[]} dispatches @param {number} times */
const repeated = (dispatches, times) => Array.from({ length: times }, () => dispatches).flat();

/**
 * The quickest of the variants that compile, run and agree with the first; null if there is none.
 * @param {Kernels} kernels @param {Work} work @param {string[]} names @param {() => number} now
 */
async function fastest(kernels, { sizes, answers, dispatches }, names, now) {
  const buffers = new Buffers(kernels, sizes, false);
  /** @type {{name: string | null, ms: number}} */
  let best = { name: null, ms: Infinity };
  /** @type {Float32Array[] | null} */
  let right = null;
  try {
    for (const [name, bytes] of sizes) buffers.write({ [name]: numbers(bytes) });
    for (const name of names) {
      const given = await ran(kernels, dispatches(name), buffers, answers, sizes).catch(() => null);
      right ??= given;
      if (!given || !right || !given.every((each, i) => agree(each, /** @type {Float32Array[]} */ (right)[i]))) continue;
      const ms = await timed(kernels, dispatches(name), buffers, now).catch(() => Infinity);
      if (ms < best.ms) best = { name, ms };
    }
  } finally {
    buffers.destroy();
  }
  return best.name;
}

/**
 * Words that are numbers in every format: halves of 1 to 2, singles of 1/128 to 2, of both signs.
 * @param {number} bytes
 */
function numbers(bytes) {
  const words = new Uint32Array(padded(bytes) / 4);
  let state = 1;
  for (let i = 0; i < words.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = ((state ^ (state >>> 15)) & 0x83ff83ff) | 0x3c003c00;
  }
  return words;
}

/** @param {Float32Array} given @param {Float32Array} right */
function agree(given, right) {
  let [error, largest] = [0, 0];
  for (let i = 0; i < right.length; i++) {
    largest = Math.max(largest, Math.abs(right[i]));
    error = Math.max(error, Math.abs(given[i] - right[i])); // NaN stays
  }
  return error <= DISAGREE * largest;
}

/**
 * Runs once, which compiles and warms up, and gives what was written.
 * @param {Kernels} kernels @param {Dispatch[]} dispatches @param {Buffers} buffers @param {string[]} answers
 * @param {Map<string, number>} sizes
 */
async function ran(kernels, dispatches, buffers, answers, sizes) {
  await kernels.run([], dispatches, buffers);
  const read = await buffers.read(answers.map((name) => [name, /** @type {number} */ (sizes.get(name)) / 4]));
  return read.map((bytes) => new Float32Array(bytes));
}

/**
 * Milliseconds of the quickest of the runs that fit into TRIAL_MS.
 * @param {Kernels} kernels @param {Dispatch[]} dispatches @param {Buffers} buffers @param {() => number} now
 */
async function timed(kernels, dispatches, buffers, now) {
  let quickest = Infinity;
  for (let spent = 0; spent < TRIAL_MS; ) {
    const start = now();
    await kernels.run([], dispatches, buffers);
    await kernels.fence(buffers.scope);
    const ms = now() - start;
    quickest = Math.min(quickest, ms);
    spent += Math.max(ms, 1); // a coarse clock may say 0
  }
  return quickest;
}

/**
 * What an answer is remembered under: all that it depends on.
 * @param {Kernels} kernels @param {string} operation @param {Sizes} sizes @param {string[]} names
 */
async function keyOf(kernels, operation, { N, K, H, D, F, fmt }, names) {
  const attends = operation in ATTENTION;
  const prefix = attends ? "attention" : operation;
  const files = [...new Set(Object.entries(kernels.manifest).filter(([name]) => name.startsWith(prefix)).map(([, { file }]) => file))];
  // The address of all texts changes with any of them, so that none need be fetched for a key.
  const hash = (kernels.text === fetchText && textsVersion()) || (await hashOf(await Promise.all(files.sort().map(kernels.text))));
  return ["variant", operation, kernels.device.words, ...(attends ? [N, K, H] : [D, F, fmt]), names.join("+"), hash].join("/");
}

/** @param {string[]} texts */
async function hashOf(texts) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(texts.join("\n")));
  return Array.from(new Uint8Array(digest).slice(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
