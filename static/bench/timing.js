/**
 * Time on the wall, ceilings, and the verdict that comes before both. Mirrors bench/timing.py, which says what each
 * figure means.
 * @module
 */
import { UnsupportedShape } from "../gpu/ops.js";
import { chosen } from "../gpu/trial.js";
import { UnknownVariant } from "../gpu/variants.js";
import { read } from "./arguments.js";
import { CASES, letters, tolerance, tried, usedVariant, varied } from "./cases.js";
import { BenchError } from "./errors.js";

/** @typedef {import("../gpu/kernels.js").Kernels} Kernels */
/** @typedef {import("../gpu/ops.js").Dispatch} Dispatch */
/** @typedef {import("./cases.js").Case} Case */
/** @typedef {{ms: number, min_ms: number, wait_ms: number, runs: number}} Times */

const [BATCHES, BATCH_MS, MOST_RUNS, SLOW_MS, BATCHES_SLOW] = [5, 100, 100, 2000, 3];
const [FMA_TURNS, FMA_GROUPS, READ_BYTES, MAX_GROUPS] = [512, 64, 64 * 2 ** 20, 65_535];

/** Milliseconds of one call. @param {() => Promise<unknown>} once */
export async function timed(once) {
  const start = performance.now();
  await once();
  return performance.now() - start;
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Times of a warm operation. run(R): R runs in one pass, and wait. slow: batches of an operation over
 * SLOW_MS; 0 takes the one run that told so.
 * @param {(count: number) => Promise<unknown>} run @param {number} slow @returns {Promise<Times>}
 */
export async function times(run, slow = BATCHES_SLOW) {
  const first = await timed(() => run(1));
  const runs = Math.floor(Math.max(1, Math.min(MOST_RUNS, BATCH_MS / Math.max(first, 1e-3))));
  /** @type {number[]} */
  const each = first < SLOW_MS || slow ? [] : [first];
  const batches = first < SLOW_MS ? BATCHES : slow;
  for (let i = 0; i < batches; i++) each.push((await timed(() => run(runs))) / runs);
  /** @type {number[]} */
  const waits = [];
  for (let i = 0; runs > 1 && i < BATCHES; i++) waits.push(await timed(() => run(1)));
  return { ms: median(each), min_ms: Math.min(...each), wait_ms: median(runs > 1 ? waits : each), runs };
}

/** Fastest of five warm runs. @param {Kernels} kernels @param {Dispatch} dispatch @param {Map<string, GPUBuffer>} buffers */
async function bestMs(kernels, dispatch, buffers) {
  const once = async () => {
    await kernels.run([], [dispatch], buffers);
    await kernels.fence();
  };
  await once();
  let best = Infinity;
  for (let i = 0; i < 5; i++) best = Math.min(best, await timed(once));
  return best;
}

/** Arithmetic ceiling: as many invocations of ceiling_fma as fill 30 ms. @param {Kernels} kernels */
async function fmaGflops(kernels) {
  for (let groups = FMA_GROUPS; ; groups *= 4) {
    const out = kernels.buffer(4 * 64 * groups, "out");
    const params = { turns: FMA_TURNS, a: 0.5, b: 0.25 };
    /** @type {Dispatch} */
    const dispatch = { kernel: "ceiling_fma", overrides: {}, params, grid: [groups, 1, 1], bindings: { out: "out" } };
    const best = await bestMs(kernels, dispatch, new Map([["out", out]]));
    out.destroy();
    if (best >= 30 || groups * 4 > MAX_GROUPS) return (groups * 64 * 384 * FMA_TURNS) / best / 1e6;
  }
}

/** Memory ceiling: 64 MiB read once in order. @param {Kernels} kernels */
async function readGbs(kernels) {
  const groups = READ_BYTES / 16 / 4096;
  const buffers = new Map([["x", kernels.buffer(READ_BYTES, "x")], ["out", kernels.buffer(4 * 64 * groups, "out")]]);
  /** @type {Dispatch} */
  const dispatch = {
    kernel: "ceiling_read", overrides: {}, params: { count: READ_BYTES / 16 }, grid: [groups, 1, 1],
    bindings: { x: "x", out: "out" },
  };
  const best = await bestMs(kernels, dispatch, buffers);
  for (const buffer of buffers.values()) buffer.destroy();
  return READ_BYTES / best / 1e6;
}

/** Both ceilings of this device, measured now. @param {Kernels} kernels */
export async function ceilings(kernels) {
  return { fma_gflops: await fmaGflops(kernels), read_gbs: await readGbs(kernels) };
}

/**
 * Check one operation against float64, time it, and set it beside the device's ceilings. Without a variant the product's
 * trial chooses, as it does for a model.
 * Throws BenchError, KernelError or NoWebGPU("lost").
 * @param {Kernels} kernels @param {unknown} given
 */
export async function measure(kernels, given) {
  const asked = read(given);
  if (!Object.hasOwn(CASES, asked.op)) throw new BenchError("bad-arguments", `${asked.op} needs a model that is loaded.`);
  asked.variant ??= await chosen(kernels, varied(asked), letters(asked));
  const found = prepared(asked);
  const buffers = upload(kernels, found);
  try {
    const run = async (/** @type {number} */ count) => {
      await kernels.run([], Array.from({ length: count }, () => found.dispatches).flat(), buffers);
      await kernels.fence();
    };
    await run(1);
    await judged(kernels, asked, found, buffers);
    const took = await times(run);
    const error = await judged(kernels, asked, found, buffers); // again: a race need not show on the first run
    const here = { tried: tried(asked, kernels.device), adapter: kernels.device.words };
    return { ...report(asked, found, took, error, await ceilings(kernels)), ...here };
  } finally {
    for (const buffer of buffers.values()) buffer.destroy();
  }
}

/** @param {import("./arguments.js").Asked} asked */
function prepared(asked) {
  try {
    const variant = (asked.variant = usedVariant(asked));
    return CASES[asked.op]({ ...asked, variant });
  } catch (error) {
    if (!(error instanceof UnsupportedShape || error instanceof UnknownVariant)) throw error;
    throw new BenchError("bad-arguments", error.message);
  }
}

/** @param {Kernels} kernels @param {Case} found @returns {Map<string, GPUBuffer>} */
function upload(kernels, { inputs, outputs, scratch, zeroed }) {
  const buffers = new Map();
  for (const [name, array] of Object.entries(inputs)) {
    buffers.set(name, kernels.buffer(array.byteLength, name));
    kernels.write(buffers.get(name), array);
  }
  for (const [name, bytes] of Object.entries(scratch)) buffers.set(name, kernels.buffer(bytes, name));
  for (const [name, words] of Object.entries(outputs)) {
    buffers.set(name, kernels.buffer(4 * words, name));
    if (!zeroed) kernels.write(buffers.get(name), new Uint32Array(words).fill(0xffffffff)); // no number: no result
  }
  return buffers;
}

/**
 * The result's error; throws beyond what the variant is held to.
 * @param {Kernels} kernels @param {import("./arguments.js").Asked} asked @param {Case} found
 * @param {Map<string, GPUBuffer>} buffers
 */
async function judged(kernels, asked, { words, outputs, judge }, buffers) {
  const names = Object.keys(outputs);
  const read = await kernels.read(names.map((name) => [kernels.find(buffers, name), 4 * outputs[name]]));
  const error = judge(Object.fromEntries(names.map((name, i) => [name, new Float32Array(read[i])])));
  const allowed = tolerance(asked);
  if (error <= allowed) return error;
  throw new BenchError(
    "wrong-result",
    `${asked.op} (${words}) is wrong on ${kernels.device.words}: error ${error.toExponential(1)}, allowed ` +
      `${allowed.toExponential(0)}; a wrong kernel has no speed.`,
  );
}

/**
 * @param {import("./arguments.js").Asked} asked @param {Case} found @param {Times} took @param {number} error
 * @param {{fma_gflops: number, read_gbs: number}} limits
 */
function report(asked, found, took, error, limits) {
  const read = found.read_bytes ?? Object.values(found.inputs).reduce((sum, array) => sum + array.byteLength, 0);
  const written = Object.values(found.outputs).reduce((sum, words) => sum + 4 * words, 0);
  const [gflops, gbs] = [found.flops / took.ms / 1e6, (read + written) / took.ms / 1e6];
  const { op, variant } = asked;
  return {
    op, shape: found.words, variant, kernels: [...new Set(found.dispatches.map(({ kernel }) => kernel))], ...took,
    gflops, gbs, max_error: error, tolerance: tolerance(asked), checked: found.checked, ceilings: limits,
    of_fma: gflops / limits.fma_gflops, of_read: gbs / limits.read_gbs,
  };
}
