/**
 * The same dispatches again and again with other numbers, as when generating: bind groups are made once, and one uniform
 * buffer is written anew. That leaves about a third of the time that a token of the tiny model takes before the device begins.
 *
 * Serves one set of buffers: whoever replaces one of them makes a new Replay. Has no counterpart in webgpu/.
 * @module
 */

/** @typedef {import("./kernels.js").Kernels} Kernels */
/** @typedef {import("./ops.js").Dispatch} Dispatch */
/** @typedef {import("./kernels.js").Lookup} Lookup */

/** What one place in the list of dispatches was bound to. Make one for a session; `destroy` frees its buffer. */
export class Replay {
  /** @param {Kernels} kernels */
  constructor(kernels) {
    this.kernels = kernels;
    /** @type {{kernel: string, bindings: Record<string, string>, group: GPUBindGroup}[]} by place */
    this.known = [];
    /** @type {GPUBuffer | null} */
    this.uniforms = null;
  }

  /** Parameters of all dispatches, for the submit that follows. @param {ArrayBuffer} packed @returns {GPUBuffer} */
  fill(packed) {
    if (this.uniforms && this.uniforms.size < packed.byteLength) this.destroy();
    if (!this.uniforms) {
      const usage = 0x40 | 0x8; // UNIFORM | COPY_DST
      this.uniforms = this.kernels.gpu.createBuffer({ label: "params", size: packed.byteLength, usage });
    }
    this.kernels.gpu.queue.writeBuffer(this.uniforms, 0, packed);
    return this.uniforms;
  }

  /** The bind group of the dispatch at a place. @param {number} place @param {Dispatch} dispatch @param {() => GPUBindGroup} make */
  group(place, { kernel, bindings }, make) {
    const known = this.known[place];
    if (known?.kernel === kernel && sameWords(known.bindings, bindings)) return known.group;
    const group = make();
    this.known[place] = { kernel, bindings, group };
    return group;
  }

  /** Free the uniform buffer; what was submitted with it still runs. */
  destroy() {
    this.uniforms?.destroy();
    this.uniforms = null;
    this.known = [];
  }
}

/** @param {Record<string, string>} a @param {Record<string, string>} b */
function sameWords(a, b) {
  for (const name in b) if (a[name] !== b[name]) return false;
  return true;
}
