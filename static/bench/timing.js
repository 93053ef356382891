/**
 * Time on the wall, beside ceilings, and the verdict that comes before both. Mirrors bench/timing.py, which says what each
 * figure means, and of bench/turns.py the rounds of one operation that is measured alone.
 * @module
 */
import { Buffers } from "../gpu/buffers.js";
import { UnsupportedShape } from "../gpu/ops.js";
import { chosen } from "../gpu/trial.js";
import { UnknownVariant } from "../gpu/variants.js";
import { read } from "./arguments.js";
import { CASES, letters, tolerance, tried, usedVariant, varied } from "./cases.js";
import { Ceilings, median, timed } from "./ceilings.js";
import { BenchError } from "./errors.js";

/** @typedef {import("../gpu/kernels.js").Kernels} Kernels */
/** @typedef {import("./cases.js").Case} Case */
/** @typedef {{ms: number, wait_ms: number}} Reading */
/** @typedef {Reading & {fma_gflops: number, read_gbs: number}} Limited with the ceilings around it */
/** @typedef {(count: number) => Promise<unknown>} Run so many runs in one pass, waited for */

const [BATCH_MS, MOST_RUNS] = [100, 100];
/** @type {Record<string, number>} */
const LEAST_RUNS = { decode: 3 };
/** A turn of fewer seconds than this: so many rounds. */
const ROUNDS = [[2, 5], [10, 3]];
const [FEWEST, DIFFER, REPEATS, LINE_S] = [2, 1.5, 2, 30];

/** The least R of an operation. @param {string} op */
export const leastRuns = (op) => LEAST_RUNS[op] ?? 1;

/** R of a warm operation: as many as fill BATCH_MS. @param {Run} run @param {number} least */
export async function runsInARow(run, least = 1) {
  const each = [await timed(() => run(1))];
  if (each[0] < 2 * BATCH_MS) for (let i = 0; i < 2; i++) each.push(await timed(() => run(1)));
  return Math.floor(Math.max(least, Math.min(MOST_RUNS, BATCH_MS / Math.max(median(each), 1e-3))));
}

/** One batch and one run alone. @param {Run} run @param {number} runs @returns {Promise<Reading>} */
export async function reading(run, runs) {
  const ms = (await timed(() => run(runs))) / runs;
  return { ms, wait_ms: runs > 1 ? await timed(() => run(1)) : ms };
}

/** Medians, and the least and most. @param {Reading[]} readings */
export function summary(readings) {
  const each = readings.map(({ ms }) => ms);
  const wait_ms = median(readings.map((one) => one.wait_ms));
  return { ms: median(each), min_ms: Math.min(...each), max_ms: Math.max(...each), wait_ms };
}

/**
 * The turns of one that is measured alone: its rounds, and again, twice at most, where those just run differ by more than half.
 * @param {() => Promise<Reading>} turn @param {() => number} now milliseconds
 */
export async function everyTurn(turn, now = () => performance.now()) {
  for (let run = 0; run <= REPEATS; run++) {
    /** @type {number[]} */
    const each = [];
    let rounds = 1;
    let seconds = 0;
    while (each.length < rounds) {
      const start = now();
      each.push((await turn()).ms);
      seconds = (now() - start) / 1000;
      rounds = ROUNDS.find(([limit]) => seconds < limit)?.[1] ?? FEWEST;
    }
    if (Math.max(...each) <= DIFFER * Math.min(...each) || rounds * seconds > LINE_S) return;
  }
}

/** One operation, right and warm: turns are taken, then comes its report; free() in any case. */
export class Measurement {
  /**
   * Without a variant the product's trial chooses, as it does for a model.
   * Throws BenchError, KernelError or NoWebGPU("lost").
   * @param {Kernels} kernels @param {unknown} given
   */
  static async begin(kernels, given) {
    const asked = read(given);
    if (!Object.hasOwn(CASES, asked.op)) throw new BenchError("bad-arguments", `${asked.op} needs a model that is loaded.`);
    asked.variant ??= await chosen(kernels, varied(asked), letters(asked));
    const made = new Measurement(kernels, asked, prepared(asked));
    try {
      await made.run(1);
      await judged(kernels.device, asked, made.found, made.buffers);
      made.runs = await runsInARow((count) => made.run(count), leastRuns(asked.op));
      made.ceilings = await Ceilings.of(kernels);
      return made;
    } catch (error) {
      made.free();
      throw error;
    }
  }

  /** @param {Kernels} kernels @param {import("./arguments.js").Asked} asked @param {Case} found */
  constructor(kernels, asked, found) {
    this.kernels = kernels;
    this.asked = asked;
    this.found = found;
    this.buffers = upload(kernels, found);
    this.runs = 1;
    /** @type {Ceilings | null} */
    this.ceilings = null;
    /** @type {Limited[]} */
    this.readings = [];
  }

  /** The variant that runs, and those among which the product chooses here. */
  get which() {
    return { variant: this.asked.variant, tried: tried(this.asked, this.kernels.device) };
  }

  /** `count` runs in one pass, waited for. @param {number} count */
  async run(count) {
    await this.kernels.run([], Array.from({ length: count }, () => this.found.dispatches).flat(), this.buffers);
    await this.kernels.fence(this.buffers.scope);
  }

  /** One reading, with the ceilings around it. */
  async turn() {
    const limits = /** @type {Ceilings} */ (this.ceilings);
    const before = await limits.fmaGflops();
    const found = await reading((count) => this.run(count), this.runs);
    const fma_gflops = (before + (await limits.fmaGflops())) / 2;
    const one = { ...found, fma_gflops, read_gbs: await limits.readGbs() };
    this.readings.push(one);
    return one;
  }

  /** The fields of a report; judged again, since a race need not show on the first run. */
  async report() {
    const error = await judged(this.kernels.device, this.asked, this.found, this.buffers);
    const here = { ...this.which, runs: this.runs, adapter: this.kernels.device.words };
    return { ...report(this.asked, this.found, this.readings, error), ...here };
  }

  free() {
    this.buffers.destroy();
    this.ceilings?.free();
  }
}

/**
 * One operation alone, in as many rounds as it takes to be steady. Throws as Measurement.begin does.
 * @param {Kernels} kernels @param {unknown} given
 */
export async function measure(kernels, given) {
  const found = await Measurement.begin(kernels, given);
  try {
    await everyTurn(() => found.turn());
    return await found.report();
  } finally {
    found.free();
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

/** @param {Kernels} kernels @param {Case} found @returns {Buffers} */
function upload(kernels, { inputs, outputs, scratch, zeroed }) {
  const [given, results] = [Object.entries(inputs), Object.entries(outputs)];
  /** @type {[string, number][]} */
  const sizes = [
    ...given.map(([name, array]) => /** @type {[string, number]} */ ([name, array.byteLength])),
    ...Object.entries(scratch),
    ...results.map(([name, words]) => /** @type {[string, number]} */ ([name, 4 * words])),
  ];
  const buffers = new Buffers(kernels, sizes, false);
  buffers.write(inputs);
  // no number: no result
  if (!zeroed) for (const [name, words] of results) buffers.write({ [name]: new Uint32Array(words).fill(0xffffffff) });
  return buffers;
}

/**
 * The result's error; throws beyond what the variant is held to.
 * @param {import("../gpu/device.js").Device} device @param {import("./arguments.js").Asked} asked @param {Case} found
 * @param {Buffers} buffers
 */
async function judged(device, asked, { words, outputs, judge }, buffers) {
  const names = Object.keys(outputs);
  const read = await buffers.read(names.map((name) => [name, outputs[name]]));
  const error = judge(Object.fromEntries(names.map((name, i) => [name, new Float32Array(read[i])])));
  const allowed = tolerance(asked);
  if (error <= allowed) return error;
  throw new BenchError(
    "wrong-result",
    `${asked.op} (${words}) is wrong on ${device.words}: error ${error.toExponential(1)}, allowed ` +
      `${allowed.toExponential(0)}; a wrong kernel has no speed.`,
  );
}

/**
 * @param {import("./arguments.js").Asked} asked @param {Case} found @param {Limited[]} readings @param {number} error
 */
function report(asked, found, readings, error) {
  const needed = found.read_bytes ?? Object.values(found.inputs).reduce((sum, array) => sum + array.byteLength, 0);
  const written = Object.values(found.outputs).reduce((sum, words) => sum + 4 * words, 0);
  const [flops, bytes] = [found.flops / 1e6, (needed + written) / 1e6]; // per ms
  const took = summary(readings);
  const middle = (/** @type {(one: Limited) => number} */ of) => median(readings.map(of));
  const { op, variant } = asked;
  return {
    op, shape: found.words, variant, kernels: [...new Set(found.dispatches.map(({ kernel }) => kernel))], ...took,
    gflops: flops / took.ms, gbs: bytes / took.ms,
    max_error: error, tolerance: tolerance(asked), checked: found.checked,
    ceilings: { fma_gflops: middle((one) => one.fma_gflops), read_gbs: middle((one) => one.read_gbs) },
    of_fma: middle((one) => flops / one.ms / one.fma_gflops), of_read: middle((one) => bytes / one.ms / one.read_gbs), readings,
  };
}
