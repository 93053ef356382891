/**
 * Runs dispatches: pipelines made from the manifest, one compute pass a run, buffers in and out.
 *
 * Pipelines are compiled asynchronously and cached by kernel and overrides. Parameters of a run share one uniform
 * buffer of 256-byte slices. Mirrors webgpu/kernels.py.
 * @module
 */
import { orLost } from "./device.js";
import { padded } from "./pieces.js";
import { IMAGE_LAYOUTS, Images } from "./images.js";
import { NONE } from "./ops.js";
import { ZERO } from "./plan.js";
import { Pool } from "./pool.js";
import { KernelError, Scope } from "./scopes.js";
import { fetchText } from "./texts.js";

/** @typedef {import("./device.js").Device} Device */
/** @typedef {import("./ops.js").Dispatch} Dispatch */
/**
 * @typedef {{file: string, entry: string, overrides: Record<string, number | boolean>,
 *   params: [string, "u32" | "f32"][], bindings: [string, Access][], needs?: string[], enable?: string[]}} Entry
 */
/** @typedef {"read" | "read_write" | "texels" | "write_texels" | "nearest"} Access */
/** @typedef {{get(name: string): GPUBuffer | undefined, scope: Scope}} Lookup buffers by name, and whose work they are for */

/**
 * What goes before a text that needs a feature. Quad operations in a loop whose end the quad has agreed on are uniform
 * where they must be, but a compiler cannot see that: its complaint is turned off.
 * @type {Record<string, string>}
 */
const DIRECTIVES = { subgroups: "enable subgroups; diagnostic(off, subgroup_uniformity); ", f16: "enable f16; " };
const UNIFORM_ALIGNMENT_BYTES = 256;
/** How a binding is declared in a bind group's layout, by the manifest's word for it. @type {Record<string, object>} */
const LAYOUTS = {
  read: { buffer: { type: "read-only-storage" } },
  read_write: { buffer: { type: "storage" } },
  ...IMAGE_LAYOUTS,
};

/** @type {WeakMap<Device, Promise<Kernels>>} */
const kernelsOf = new WeakMap();

/** The kernels on one device. Make one with `Kernels.load`. */
export class Kernels {
  /**
   * @param {Device} device
   * @param {Record<string, Entry>} manifest @param {(file: string) => Promise<string>} text
   */
  constructor(device, manifest, text) {
    this.device = device;
    this.gpu = device.gpu;
    this.manifest = manifest;
    this.text = text;
    /** @type {Map<string, Promise<GPUShaderModule>>} */
    this.modules = new Map();
    /** @type {Map<string, GPUBindGroupLayout>} */
    this.layouts = new Map();
    /** @type {Map<string, Promise<GPUComputePipeline>>} */
    this.pipelines = new Map();
    this.images = new Images(device.gpu);
    this.pool = new Pool();
    /** Compiling takes cores from a device that a CPU stands in for: whoever times it looks here (`calm`). */
    this.compiles = { begun: 0, running: 0 };
    this.none = this.buffer(16, NONE);
  }

  /**
   * Fetch the manifest and be ready to fetch kernels. text: how to get a file of the kernels' folder.
   * @param {Device} device @param {(file: string) => Promise<string>} text
   */
  static async load(device, text = fetchText) {
    const { kernels } = JSON.parse(await text("manifest.json"));
    return new Kernels(device, kernels, text);
  }

  /**
   * Those of a device, which serve every model on it.
   * @param {Device} device @returns {Promise<Kernels>}
   */
  static of(device) {
    const known = kernelsOf.get(device);
    if (known) return known;
    const made = Kernels.load(device);
    kernelsOf.set(device, made);
    made.catch(() => kernelsOf.delete(device)); // a failed fetch may succeed next time
    return made;
  }

  /**
   * Make a zeroed storage buffer, its size rounded up to 16.
   * @param {number} sizeBytes @param {string} label
   */
  buffer(sizeBytes, label) {
    const usage = 0x80 | 0x4 | 0x8; // STORAGE | COPY_SRC | COPY_DST (GPUBufferUsage is not there in Node)
    return this.gpu.createBuffer({ label, size: padded(sizeBytes), usage });
  }

  /**
   * Copy bytes into a buffer; a last odd half-word is filled up with zeros.
   * @param {GPUBuffer} target @param {ArrayBufferView<ArrayBuffer>} view @param {number} start bytes into the buffer
   */
  write(target, view, start = 0) {
    const whole = view.byteLength - (view.byteLength % 4);
    this.gpu.queue.writeBuffer(target, start, view.buffer, view.byteOffset, whole);
    if (whole === view.byteLength) return;
    const rest = new Uint8Array(4);
    rest.set(new Uint8Array(view.buffer, view.byteOffset + whole, view.byteLength - whole));
    this.gpu.queue.writeBuffer(target, start + whole, rest);
  }

  /**
   * Copy the first bytes of buffers back, after everything submitted before. Rejects with KernelError where the device refused
   * this or an earlier call of the scope, or NoWebGPU("lost").
   * @param {[GPUBuffer, number][]} sources buffer and bytes (a multiple of 4) @returns {Promise<ArrayBuffer[]>}
   */
  async read(sources, scope = new Scope(this.device)) {
    const size = sources.reduce((sum, [, bytes]) => sum + bytes, 0);
    const { staging, mapped } = scope.calls(() => {
      const staging = this.gpu.createBuffer({ label: "readback", size, usage: 0x1 | 0x8 }); // MAP_READ | COPY_DST
      const encoder = this.gpu.createCommandEncoder();
      let at = 0;
      for (const [source, bytes] of sources) {
        encoder.copyBufferToBuffer(source, 0, staging, at, bytes);
        at += bytes;
      }
      this.gpu.queue.submit([encoder.finish()]);
      return { staging, mapped: staging.mapAsync(0x1) };
    });
    try {
      await scope.outcome(mapped);
      const all = staging.getMappedRange().slice(0);
      let at = 0;
      return sources.map(([, bytes]) => all.slice(at, (at += bytes)));
    } finally {
      staging.destroy();
    }
  }

  /** Resolves when everything submitted has run. Rejects as `read` does. */
  async fence(scope = new Scope(this.device)) {
    await scope.outcome(this.gpu.queue.onSubmittedWorkDone());
  }

  /**
   * Encode copies and then dispatches in order, and submit; resolves once submitted, not once run: whether the device took it
   * is told by `fence` and `read` with the buffers' scope.
   * @param {import("./plan.js").Copy[]} copies @param {Dispatch[]} dispatches @param {Lookup} buffers
   * @param {import("./replay.js").Replay | null} replay keeps bind groups for the next run of nearly the same dispatches
   */
  async run(copies, dispatches, buffers, replay = null) {
    const pipelines = await orLost(this.device, Promise.all(dispatches.map((d) => this.pipeline(d.kernel, d.overrides))));
    buffers.scope.calls(() => {
      const encoder = this.gpu.createCommandEncoder();
      this.encodeCopies(encoder, copies, buffers);
      const packed = dispatches.length ? this.pack(dispatches) : null;
      const uniforms = packed && (replay ? replay.fill(packed) : this.uniforms(packed));
      if (uniforms) {
        const pass = encoder.beginComputePass();
        dispatches.forEach((dispatch, i) => {
          pass.setPipeline(pipelines[i]);
          const make = () => this.bindGroup(dispatch, buffers, uniforms, i * UNIFORM_ALIGNMENT_BYTES);
          pass.setBindGroup(0, replay ? replay.group(i, dispatch, make) : make());
          pass.dispatchWorkgroups(...dispatch.grid);
        });
        pass.end();
      }
      this.gpu.queue.submit([encoder.finish()]);
      if (!replay) uniforms?.destroy(); // freed once the submitted work has run
    });
  }

  /** @param {GPUCommandEncoder} encoder @param {import("./plan.js").Copy[]} copies @param {Lookup} buffers */
  encodeCopies(encoder, copies, buffers) {
    for (const { source, source_start, target, target_start, bytes } of copies) {
      const to = this.find(buffers, target);
      if (source === ZERO) encoder.clearBuffer(to, target_start, bytes);
      else encoder.copyBufferToBuffer(this.find(buffers, source), source_start, to, target_start, bytes);
    }
  }

  /**
   * The pipeline of a kernel with these overrides, compiled on first use.
   * @param {string} kernel @param {Record<string, number | boolean>} overrides
   */
  pipeline(kernel, overrides) {
    const key = JSON.stringify([kernel, Object.entries(overrides).sort()]);
    const cached = this.pipelines.get(key);
    if (cached) return cached;
    const made = this.compile(kernel, overrides);
    this.compiles.begun++;
    this.compiles.running++;
    this.pipelines.set(key, made);
    made.catch(() => {}).finally(() => void this.compiles.running--);
    made.catch(() => this.pipelines.delete(key)); // a failed fetch may succeed next time
    return made;
  }

  /** A watch on compiling: a function that says whether none went on since this call. */
  calm() {
    const { begun, running } = this.compiles;
    return () => running === 0 && this.compiles.begun === begun;
  }

  /** @param {string} kernel @param {Record<string, number | boolean>} overrides */
  async compile(kernel, overrides) {
    const entry = this.entry(kernel);
    sameNames(kernel, "overrides", overrides, Object.keys(entry.overrides));
    const lacking = (entry.needs ?? []).filter((name) => !this.device.features.has(name));
    if (lacking.length) {
      throw new KernelError(`Kernel ${kernel} needs ${lacking.join(", ")}, which ${this.device.words} lacks; choose another variant.`);
    }
    const module = await this.module(entry);
    const layout = this.gpu.createPipelineLayout({ bindGroupLayouts: [this.layout(kernel)] });
    const constants = Object.fromEntries(Object.entries(overrides).map(([name, value]) => [name, Number(value)]));
    const compute = { module, entryPoint: entry.entry, constants };
    return this.gpu.createComputePipelineAsync({ label: kernel, layout, compute }).catch((/** @type {Error} */ error) => {
      throw new KernelError(`Kernel ${kernel} (${entry.file}) did not compile: ${error.message}`);
    });
  }

  /** @param {Entry} entry */
  module({ file, enable = [] }) {
    const cached = this.modules.get(file);
    if (cached) return cached;
    const made = this.text(file).then((text) => {
      // The one text that a host adds: directives named by the manifest.
      const code = enable.map((name) => DIRECTIVES[name]).join("") + text;
      return this.gpu.createShaderModule({ label: file, code });
    });
    this.modules.set(file, made);
    made.catch(() => this.modules.delete(file));
    return made;
  }

  /** @param {string} kernel */
  entry(kernel) {
    if (!Object.hasOwn(this.manifest, kernel)) throw new KernelError(`There is no kernel "${kernel}" in the manifest.`);
    return this.manifest[kernel];
  }

  /** @param {string} kernel */
  layout(kernel) {
    let layout = this.layouts.get(kernel);
    if (!layout) {
      const every = [{ buffer: { type: "uniform" } }, ...this.entry(kernel).bindings.map(([, access]) => LAYOUTS[access])];
      const entries = every.map((how, binding) => ({ binding, visibility: 0x4, ...how })); // COMPUTE
      layout = this.gpu.createBindGroupLayout({ label: kernel, entries });
      this.layouts.set(kernel, layout);
    }
    return layout;
  }

  /** Parameters of dispatches, each in a slice of its own. @param {Dispatch[]} dispatches */
  pack(dispatches) {
    const view = new DataView(new ArrayBuffer(dispatches.length * UNIFORM_ALIGNMENT_BYTES));
    dispatches.forEach((dispatch, i) => {
      const { params } = this.entry(dispatch.kernel);
      sameNames(dispatch.kernel, "parameters", dispatch.params, params.map(([name]) => name));
      params.forEach(([name, kind], j) => {
        const at = i * UNIFORM_ALIGNMENT_BYTES + 4 * j;
        if (kind === "u32") view.setUint32(at, dispatch.params[name], true);
        else view.setFloat32(at, dispatch.params[name], true);
      });
    });
    return view.buffer;
  }

  /** @param {ArrayBuffer} packed */
  uniforms(packed) {
    const uniforms = this.gpu.createBuffer({ label: "params", size: packed.byteLength, usage: 0x40, mappedAtCreation: true }); // UNIFORM
    new Uint8Array(uniforms.getMappedRange()).set(new Uint8Array(packed));
    uniforms.unmap();
    return uniforms;
  }

  /** @param {Dispatch} dispatch @param {Lookup} buffers @param {GPUBuffer} uniforms @param {number} offset */
  bindGroup(dispatch, buffers, uniforms, offset) {
    const { params, bindings } = this.entry(dispatch.kernel);
    sameNames(dispatch.kernel, "bindings", dispatch.bindings, bindings.map(([name]) => name));
    const size = Math.ceil(params.length / 4) * 16;
    /** @type {GPUBindGroupEntry[]} */
    const entries = [{ binding: 0, resource: { buffer: uniforms, offset, size } }];
    bindings.forEach(([name, access], i) => {
      if (access in IMAGE_LAYOUTS) return entries.push({ binding: i + 1, resource: this.images.resource(dispatch.bindings[name]) });
      // "name", or "name@start+bytes" for a part of it, start a multiple of 256
      const [whole, part] = dispatch.bindings[name].split("@");
      const buffer = whole === NONE ? this.none : this.find(buffers, whole);
      const [start, bytes] = part ? part.split("+").map(Number) : [0, buffer.size];
      entries.push({ binding: i + 1, resource: { buffer, offset: start, size: bytes } });
    });
    return this.gpu.createBindGroup({ layout: this.layout(dispatch.kernel), entries });
  }

  /** @param {{get(name: string): GPUBuffer | undefined}} buffers @param {string} name */
  find(buffers, name) {
    const buffer = buffers.get(name);
    if (!buffer) throw new KernelError(`There is no buffer "${name}".`);
    return buffer;
  }
}

/** @param {string} kernel @param {string} what @param {object} given @param {string[]} declared */
function sameNames(kernel, what, given, declared) {
  const names = Object.keys(given);
  if (names.length === declared.length && declared.every((name) => names.includes(name))) return;
  throw new KernelError(`Kernel ${kernel}: ${what} are ${names.join(", ")}; the manifest declares ${declared.join(", ")}.`);
}
