/**
 * Named GPU buffers that are made and freed together, from the device's pool of free ones and back into it. Mirrors
 * webgpu/buffers.py.
 * @module
 */
import { padded } from "./pieces.js";
import { MEMORY, Scope } from "./scopes.js";

/** @typedef {import("./kernels.js").Kernels} Kernels */

/**
 * Buffers by name, and the scope of the work that they are for; a new one holds whatever was left in it. `Buffers.live` and
 * `Buffers.liveBytes` count those made and not freed yet, over all models: a test watches them.
 */
export class Buffers {
  static live = 0;
  static liveBytes = 0;

  /**
   * @param {Kernels} kernels @param {Iterable<[string, number]>} sizes bytes by name
   * @param {boolean} pooled false for weights, which are made once and too large to keep
   */
  constructor(kernels, sizes, pooled = true) {
    this.kernels = kernels;
    this.pooled = pooled;
    /** @type {Map<string, GPUBuffer>} */
    this.byName = new Map();
    this.scope = new Scope(kernels.device);
    this.make(sizes);
  }

  /** Create those that are not there yet. @param {Iterable<[string, number]>} sizes bytes by name */
  make(sizes) {
    const missing = new Map([...sizes].filter(([name]) => !this.byName.has(name)));
    if (missing.size === 0) return;
    this.scope.calls(() => {
      for (const [name, size] of missing) {
        const free = this.pooled ? this.kernels.pool.take(padded(size)) : undefined;
        const buffer = free ?? this.kernels.buffer(size, name);
        buffer.label = name;
        this.byName.set(name, buffer);
        Buffers.live += 1;
        Buffers.liveBytes += buffer.size;
      }
    }, MEMORY);
  }

  /**
   * Copy numbers into some of them. @param {Record<string, ArrayBufferView<ArrayBuffer>>} arrays by name
   * @param {number} start bytes into each
   */
  write(arrays, start = 0) {
    this.scope.calls(() => {
      for (const [name, array] of Object.entries(arrays)) this.kernels.write(this.kernels.find(this, name), array, start);
    });
  }

  /** The first words (4 bytes each) of some of them. @param {[string, number][]} wanted name and words */
  read(wanted) {
    return this.kernels.read(wanted.map(([name, words]) => [this.kernels.find(this, name), 4 * words]), this.scope);
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
      const buffer = this.byName.get(name);
      if (!buffer) continue;
      this.byName.delete(name);
      Buffers.live -= 1;
      Buffers.liveBytes -= buffer.size;
      if (this.pooled) this.#giveBack(buffer);
      else buffer.destroy();
    }
  }

  /**
   * Back into the pool, unless the device made none: one without memory would fail who takes it. Work that is given up may free
   * its buffers before the device has said so.
   * @param {GPUBuffer} buffer
   */
  #giveBack(buffer) {
    const { scope, kernels } = this;
    const settle = () => (scope.refused ? buffer.destroy() : kernels.pool.give(buffer));
    if (scope.open) scope.judged.then(settle, () => buffer.destroy());
    else settle();
  }
}
