/**
 * What the device can do at most, read between the batches of a kernel. Mirrors bench/ceilings.py, which says how.
 * @module
 */
import { Buffers } from "../gpu/buffers.js";

/** @typedef {import("../gpu/kernels.js").Kernels} Kernels */
/** @typedef {import("../gpu/ops.js").Dispatch} Dispatch */

const [FMA_TURNS, FMA_GROUPS, READ_BYTES, CEILING_MS, MAX_GROUPS, READINGS] = [512, 64, 64 * 2 ** 20, 30, 65_535, 5];

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

/** Both ceilings of a device, compiled and warm; free() when no more is read. */
export class Ceilings {
  /** @param {Kernels} kernels */
  static async of(kernels) {
    const made = new Ceilings(kernels);
    await made.#run(made.reading);
    await made.#fill();
    return made;
  }

  /** @param {Kernels} kernels */
  constructor(kernels) {
    const groups = READ_BYTES / 16 / 4096;
    this.kernels = kernels;
    this.groups = FMA_GROUPS;
    this.buffers = new Buffers(kernels, [["x", READ_BYTES], ["sums", 4 * 64 * groups]], false);
    /** @type {Dispatch} */
    this.reading = {
      kernel: "ceiling_read", overrides: {}, params: { count: READ_BYTES / 16 }, grid: [groups, 1, 1],
      bindings: { x: "x", out: "sums" },
    };
    this.chains = this.reading;
  }

  /** Let the chains fill CEILING_MS. */
  async #fill() {
    for (; ; this.groups *= 4) {
      this.buffers.make([["out", 4 * 64 * this.groups]]);
      const params = { turns: FMA_TURNS, a: 0.5, b: 0.25 };
      /** @type {[number, number, number]} */
      const grid = [this.groups, 1, 1];
      this.chains = { kernel: "ceiling_fma", overrides: {}, params, grid, bindings: { out: "out" } };
      await this.#run(this.chains);
      const ms = await timed(() => this.#run(this.chains));
      if (ms >= CEILING_MS || this.groups * 4 > MAX_GROUPS) return;
      this.buffers.destroy(["out"]);
    }
  }

  /** @param {Dispatch} dispatch */
  async #run(dispatch) {
    await this.kernels.run([], [dispatch], this.buffers);
    await this.kernels.fence(this.buffers.scope);
  }

  /** One reading of the arithmetic ceiling. */
  async fmaGflops() {
    return (this.groups * 64 * 384 * FMA_TURNS) / (await timed(() => this.#run(this.chains))) / 1e6;
  }

  /** One reading of the memory ceiling. */
  async readGbs() {
    return READ_BYTES / (await timed(() => this.#run(this.reading))) / 1e6;
  }

  free() {
    this.buffers.destroy();
  }
}

/** Both, measured now: medians of a few readings. @param {Kernels} kernels */
export async function ceilings(kernels) {
  const both = await Ceilings.of(kernels);
  try {
    /** @type {number[][]} */
    const [fma, read] = [[], []];
    for (let i = 0; i < READINGS; i++) fma.push(await both.fmaGflops());
    for (let i = 0; i < READINGS; i++) read.push(await both.readGbs());
    return { fma_gflops: median(fma), read_gbs: median(read) };
  } finally {
    both.free();
  }
}
