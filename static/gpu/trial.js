/**
 * Which variant is fastest here: each is compiled, run once, and timed for about 50 ms; the answer is remembered.
 *
 * A model begins on `firstChoice` and takes the answer when it is there: plans made before keep what they have. What is
 * remembered is bound to the device's name, the head dimension and the text of the kernels, so that a new kernel is tried
 * again. Mirrors webgpu/trial.py. Left out on purpose: variants of operations other than attention.
 * @module
 */
import { Buffers } from "./buffers.js";
import { attention, attentionScratch } from "./attention.js";
import { toTry } from "./variants.js";

/** @typedef {import("./kernels.js").Kernels} Kernels */
/** @typedef {{getItem(key: string): string | null, setItem(key: string, value: string): void}} Memory localStorage will do */

export const TRIAL_MS = 50;
/** What is tried: tokens and cached tokens, with the heads of the model. */
const SIZES = { attention: { T: 256, offset: 0 }, decode: { T: 1, offset: 1023 } };

/**
 * The fastest variant of each kind of attention on this device, by name. A variant that does not compile or fails is out.
 * @param {Kernels} kernels @param {{N: number, K: number, H: number}} heads @param {Memory} memory
 * @param {() => number} now milliseconds @returns {Promise<import("./variants.js").Choice>}
 */
export async function tryVariants(kernels, heads, memory, now = () => performance.now()) {
  /** @type {import("./variants.js").Choice} */
  const choice = {};
  for (const operation of /** @type {(keyof typeof SIZES)[]} */ (Object.keys(SIZES))) {
    const names = toTry(operation, kernels.device.features, kernels.device.software, heads.H);
    const key = await keyOf(kernels, operation, heads, names);
    const known = recall(memory, key);
    if (known !== null && names.includes(known)) choice[operation] = known;
    else choice[operation] = await fastest(kernels, operation, heads, names, now);
    try {
      memory.setItem(key, /** @type {string} */ (choice[operation]));
    } catch {
      // full or forbidden: the next visit tries again
    }
  }
  return choice;
}

/** @param {Memory} memory @param {string} key */
function recall(memory, key) {
  try {
    return memory.getItem(key);
  } catch {
    return null;
  }
}

/**
 * @param {Kernels} kernels @param {keyof typeof SIZES} operation @param {{N: number, K: number, H: number}} heads
 * @param {string[]} names @param {() => number} now
 */
async function fastest(kernels, operation, { N, K, H }, names, now) {
  const { T, offset } = SIZES[operation];
  const S = offset + T;
  const scratch = attentionScratch({ T, S, N, H });
  const buffers = new Buffers(kernels, [
    ["q", 4 * T * N * H], ["k", 4 * S * K * H], ["v", 4 * S * K * H], ["o", 4 * T * N * H], ["lse", 4 * N * T], ["part", scratch],
  ]);
  const given = { q: "q", k: "k", v: "v", o: "o", lse: "lse", scratch: "part", T, S, N, K, H, offset, window: 0, sinks: 0, scale: 1 };
  let best = { name: names[0], ms: Infinity };
  try {
    for (const name of names) {
      const dispatches = attention({ ...given, variant: name });
      const ms = await timed(kernels, dispatches, buffers, now).catch(() => Infinity);
      if (ms < best.ms) best = { name, ms };
    }
  } finally {
    buffers.destroy();
  }
  return best.name;
}

/**
 * Milliseconds of the quickest of the runs that fit into TRIAL_MS, after one that compiles and warms up.
 * @param {Kernels} kernels @param {import("./dispatch.js").Dispatch[]} dispatches @param {Buffers} buffers @param {() => number} now
 */
async function timed(kernels, dispatches, buffers, now) {
  let quickest = Infinity;
  await kernels.run([], dispatches, buffers);
  await kernels.fence();
  for (let spent = 0; spent < TRIAL_MS; ) {
    const start = now();
    await kernels.run([], dispatches, buffers);
    await kernels.fence();
    const ms = now() - start;
    quickest = Math.min(quickest, ms);
    spent += Math.max(ms, 1); // a coarse clock may say 0
  }
  return quickest;
}

/**
 * @param {Kernels} kernels @param {string} operation @param {{N: number, K: number, H: number}} heads @param {string[]} names
 */
async function keyOf(kernels, operation, { N, K, H }, names) {
  const files = [...new Set(Object.entries(kernels.manifest).filter(([name]) => name.startsWith("attention")).map(([, { file }]) => file))];
  const texts = await Promise.all(files.sort().map((file) => kernels.text(file)));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(texts.join("\n")));
  const hash = Array.from(new Uint8Array(digest).slice(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `variant/${operation}/${kernels.device.words}/${N}/${K}/${H}/${names.join("+")}/${hash}`;
}
