/**
 * Named GPU buffers that are made and freed together. Mirrors webgpu/buffers.py.
 * @module
 */

/** @typedef {import("./kernels.js").Kernels} Kernels */

/** Buffers by name. `Buffers.live` counts those made and not freed yet, over all models: a test watches it. */
export class Buffers {
  static live = 0;

  /** @param {Kernels} kernels @param {Iterable<[string, number]>} sizes bytes by name */
  constructor(kernels, sizes) {
    this.kernels = kernels;
    /** @type {Map<string, GPUBuffer>} */
    this.byName = new Map();
    this.make(sizes);
  }

  /** Create those that are not there yet. @param {Iterable<[string, number]>} sizes bytes by name */
  make(sizes) {
    for (const [name, size] of sizes) {
      if (this.byName.has(name)) continue;
      this.byName.set(name, this.kernels.buffer(size, name));
      Buffers.live += 1;
    }
  }

  /** @param {string} name */
  get(name) {
    return this.byName.get(name);
  }

  /** Names of all buffers. */
  keys() {
    return [...this.byName.keys()];
  }

  /** Free some of them, or all. @param {Iterable<string>} names */
  destroy(names = this.keys()) {
    for (const name of names) {
      this.byName.get(name)?.destroy();
      if (this.byName.delete(name)) Buffers.live -= 1;
    }
  }
}
