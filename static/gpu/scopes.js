/**
 * Who is told what the device refuses. WebGPU answers a wrong call with an error scope, or else with an event that names
 * nobody: the submit is left out, and whatever is read after it must not pass for an answer, nor may a run beside it on the
 * same device fail for it. So each piece of work (a prompt, a question, a text, an upload) has a scope of its own, which
 * its buffers carry.
 *
 * The device says whether it takes calls long before they have run, so that who waits for those waits for nothing more.
 * Has no counterpart in webgpu/: wgpu-py raises at the call, and a refused submit ends the process there.
 * @module
 */
import { orLost } from "./device.js";

/** @typedef {import("./device.js").Device} Device */

/**
 * What a scope hears of. Each filter costs about 30 us of the browser's processes, so that only the making of buffers asks for
 * the first one: what has no memory is invalid in every call that takes it. @type {GPUErrorFilter[]}
 */
const VALIDATION = ["validation"];
/** The better reason first. @type {GPUErrorFilter[]} */
export const MEMORY = ["out-of-memory", "validation"];

/** A dispatch cannot run; the message names the kernel, or the call that the device refused (`cause`: its GPUError). */
export class KernelError extends Error {
  /** @param {string} message @param {ErrorOptions} [options] */
  constructor(message, options) {
    super(message, options);
    this.name = "KernelError";
    this.code = "kernel";
  }
}

/** The calls of one piece of work. */
export class Scope {
  /** @param {Device} device */
  constructor(device) {
    this.device = device;
    /** The first call that was refused, as far as the device has said. @type {GPUError | null} */
    this.refused = null;
    /** Of how many calls it has not said so yet. */
    this.open = 0;
    /** Resolves when it has said so of all calls so far. @type {Promise<void>} */
    this.judged = Promise.resolve();
  }

  /**
   * Make calls of this piece of work, all before `make` returns: what waits in between would be other work's.
   * @template T @param {() => T} make @param {GPUErrorFilter[]} filters @returns {T}
   */
  calls(make, filters = VALIDATION) {
    const { gpu } = this.device;
    for (const filter of filters) gpu.pushErrorScope(filter);
    try {
      return make();
    } finally {
      const said = filters.map(() => gpu.popErrorScope()).reverse(); // the last one pushed is the first one out
      this.open += 1;
      this.judged = Promise.all([this.judged, ...said]).then(([, ...errors]) => {
        this.refused ??= errors.find((error) => error !== null) ?? null;
        this.open -= 1;
      });
      this.judged.catch(() => {}); // the device is lost, which who waits is told
    }
  }

  /** Resolves when the device has taken all calls so far. Rejects with KernelError or NoWebGPU("lost"). */
  taken() {
    return this.outcome(Promise.resolve());
  }

  /**
   * What the device's work gives, if the device has taken all calls so far. Rejects as `taken` does.
   * @template T @param {Promise<T>} work @returns {Promise<T>}
   */
  async outcome(work) {
    work.catch(() => {}); // where a call was refused, that is the reason
    const checked = this.judged.then(() => {
      if (this.refused) throw new KernelError(`The device refused a call: ${this.refused.message}`, { cause: this.refused });
      return work;
    });
    return orLost(this.device, checked);
  }
}
