/**
 * A model on the device: weights uploaded once, prompts run into traces, tokens generated against a KV cache.
 *
 *     const model = await Model.load(await requestDevice(), { config, source })
 *     const trace = await model.run(ids, { onProgress, signal })            // see trace.js
 *     for await (const { id, logprob } of model.generate(ids, { maxTokens: 20 })) ...
 *
 * Mirrors webgpu/runtime.py; errors carry the same `code`. Needs no DOM.
 * @module
 */
import { Buffers } from "./buffers.js";
import { parseConfig } from "./config.js";
import { DEFAULT_LIMITS } from "./device.js";
import { generate } from "./generate.js";
import { Kernels } from "./kernels.js";
import { place } from "./layout.js";
import { CHUNK_TOKENS, RECORD, TRACE, mergeBuffers, prefill } from "./plan.js";
import { Pace } from "./pace.js";
import { tables } from "./rope.js";
import { Trace } from "./trace.js";
import { formatsOf, uploadAll } from "./upload.js";
import { firstChoice } from "./variants.js";
import { laterPlans, picturePlans, plainChoice, warm, warmSlowly } from "./warm.js";

/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./device.js").Device} Device */
/** @typedef {import("./kernels.js").Lookup} Lookup */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./plan.js").Forward} Forward */
/** @typedef {import("./replay.js").Replay} Replay */
/**
 * Blocks have their scales beside them (lib/blocks.js).
 * @typedef {{dtype: string, shape: number[], bytes: Uint8Array, scales?: {bytes: Uint8Array}}} Tensor
 */
/**
 * Tensors by name, a Map will do. One that describes its tensors has checked that their numbers are finite, and may hand them
 * out before their hash is known: `verified` then rejects if it is wrong.
 * @typedef {{keys(): Iterable<string>, get(name: string): Tensor | undefined | Promise<Tensor | undefined>,
 *   describe?: (name: string) => {dtype: string, shape: number[]} | undefined, verified?: () => Promise<unknown>}} Source
 */
/** @typedef {(part: number) => void} OnProgress called with 0 .. 1 */
/** @typedef {{onProgress?: OnProgress, signal?: AbortSignal}} Watch */

/** A prompt that cannot be run; `code` names the rule: prompt-empty, prompt-too-long, token-unknown, device-memory. */
export class RunError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "RunError";
    this.code = code;
  }
}

/** Weights on a device and what runs on them. Make one with `Model.load`; `destroy` frees the weights. */
export class Model {
  /** @param {Device} device @param {Kernels} kernels @param {Config} config @param {Layout} placed */
  constructor(device, kernels, config, placed) {
    this.device = device;
    this.kernels = kernels;
    this.config = config;
    this.placed = placed;
    this.pace = new Pace();
    /** The variants to run; the first where it says nothing. @type {import("./variants.js").Choice} */
    this.choice = firstChoice(device.features, device.software);
    this.warming = this.warmed = false;
    const pieces = [...placed.values()].flatMap((tensor) => tensor.pieces);
    /** @type {[string, number][]} */
    const sizes = pieces.map(({ buffer, bytes }) => [buffer, bytes]);
    for (const { scales, scale_bytes } of pieces) if (scale_bytes) sizes.push([scales, scale_bytes]);
    this.weights = new Buffers(kernels, sizes, false);
  }

  /**
   * Upload a checkpoint, tensor by tensor. config: the parsed config.json. source: its tensors by name.
   * Throws UnsupportedConfig, WeightsMismatch, RunError("device-memory"), NoWebGPU("lost"), or the signal's reason.
   * tokens: about how many a first prompt has, which is then compiled for before the rest; `warmAll` is up to the caller.
   * @param {Device} device @param {{config: unknown, source: Source}} checkpoint @param {Watch & {tokens?: number}} watch
   */
  static async load(device, { config: raw, source }, { onProgress, signal, tokens } = {}) {
    const config = parseConfig(raw);
    const dtypes = await formatsOf(config, source);
    const kernels = await Kernels.of(device);
    const placed = place(config, dtypes);
    const model = new Model(device, kernels, config, placed);
    await withinMemory(model.weights, "this model's weights");
    if (tokens) void model.warmPicture(tokens);
    try {
      await uploadAll(model, source, { onProgress, signal });
      return model;
    } catch (error) {
      model.destroy();
      throw error;
    }
  }

  /** The variants for a prompt of T tokens now: plain ones while those that are chosen have not been compiled. @param {number} T */
  choiceFor(T) {
    return this.warmed ? this.choice : plainChoice(this.config, T, this.choice);
  }

  /** What a submit may take on this device, as plans are given it. */
  get budget() {
    return { submit_flops: this.pace.flops };
  }

  /** Begin to compile what a first prompt of about T tokens needs. @param {number} T */
  async warmPicture(T) {
    const plan = () => picturePlans(this.config, this.placed, this.choiceFor(T), T);
    await warm(this.kernels, plan);
  }

  /**
   * Compile all that prompts, the lens and generating need; from then on every prompt runs on the chosen variants.
   * @param {() => Promise<void>} [idle] waited for before each kernel, so that a prompt that comes meanwhile has the device
   */
  async warmAll(idle) {
    if (this.warming) return;
    this.warming = true;
    await warmSlowly(this.kernels, () => laterPlans(this.config, this.placed, this.choice), idle);
    this.warmed = true;
  }

  /**
   * Run a prompt. record: keep every named intermediate; chunk: tokens per forward, a multiple of 64.
   * Throws RunError, NoWebGPU("lost"), or the signal's reason.
   * @param {ArrayLike<number>} ids @param {Watch & {record?: boolean, chunk?: number}} options
   */
  async run(ids, { onProgress, signal, record = false, chunk = CHUNK_TOKENS } = {}) {
    this.check(ids);
    const T = ids.length;
    const keep = record ? RECORD : TRACE;
    const choice = this.choiceFor(T);
    const plans = prefill(this.config, this.placed, { T, capacity: T, keep, chunk, choice, ...this.budget });
    const buffers = await this.allocate(plans, T);
    try {
      await this.runForwards(plans, ids, buffers, T, { onProgress, signal, pace: this.pace });
      this.pace.settle();
    } catch (error) {
      buffers.destroy();
      throw error;
    }
    buffers.destroy(buffers.keys().filter((name) => !name.includes("."))); // kept ones are name.layer, the rest scratch
    return new Trace(this, Array.from(ids), buffers, choice);
  }

  /**
   * Continue a prompt against a KV cache. Temperature 0 is greedy; a stop id is given out and ends it.
   * @param {ArrayLike<number>} ids
   * @param {import("./generate.js").Wanted} wanted @returns {AsyncGenerator<import("./generate.js").Token>}
   */
  async *generate(ids, wanted) {
    this.check(ids, wanted.maxTokens);
    yield* generate(this, ids, wanted);
  }

  /**
   * Refuse a prompt that is empty, has unknown ids, or with `more` tokens passes the model's limit.
   * @param {ArrayLike<number>} ids @param {number} more
   */
  check(ids, more = 0) {
    if (ids.length === 0) throw new RunError("prompt-empty", "The prompt has no tokens: type at least one character.");
    const { V, rope, max_tokens } = this.config;
    for (const id of Array.from(ids)) {
      if (Number.isInteger(id) && id >= 0 && id < V) continue;
      throw new RunError("token-unknown", `Token id ${id} is outside this model's vocabulary: allowed are 0 to ${V - 1}.`);
    }
    // A cache keeps keys as they were rotated, so dynamic scaling cannot grow while generating.
    const limit = more ? rope.positions : max_tokens;
    if (ids.length + more <= limit) return;
    const what = `${ids.length} tokens` + (more ? ` and ${more} to generate` : "");
    throw new RunError("prompt-too-long", `${what} are more than this model's limit of ${limit} tokens: shorten the prompt.`);
  }

  /**
   * Make the buffers of plans, after checking them against the device's limit.
   * @param {Forward[]} plans @param {number} T
   */
  async allocate(plans, T) {
    const sizes = mergeBuffers(plans);
    const most = DEFAULT_LIMITS.maxStorageBufferBindingSize;
    const [name, size] = [...sizes].reduce((a, b) => (b[1] > a[1] ? b : a));
    if (size > most) {
      const fits = Math.floor((T * most) / size);
      const why = `${T} tokens need a buffer of ${size} bytes (${name}) and this device binds ${most} at most`;
      throw new RunError("prompt-too-long", `${why}: shorten the prompt to ${fits} tokens.`);
    }
    const buffers = new Buffers(this.kernels, sizes);
    await withinMemory(buffers, `${T} tokens`);
    return buffers;
  }

  /**
   * Upload ids and rotation tables of each forward and run it. ids: those of all plans, in order.
   * @param {Forward[]} plans @param {ArrayLike<number>} ids @param {Buffers} buffers @param {number} total
   * @param {Watch & {pace?: Pace}} watch
   */
  async runForwards(plans, ids, buffers, total, { onProgress, signal, pace }) {
    const work = plans.reduce((sum, plan) => sum + plan.steps.reduce((flops, step) => flops + step.flops, 0), 0);
    const list = Array.from(ids);
    let [done, at] = [0, 0];
    for (const plan of plans) {
      this.give(plan, buffers, total, list.slice(at, at + plan.T));
      at += plan.T;
      const onDone = (/** @type {number} */ flops, /** @type {number} */ ms, /** @type {boolean} */ calm) => {
        if (calm) pace?.note(flops, ms);
        onProgress?.((done += flops) / work);
      };
      await this.runSteps(plan, buffers, signal, onDone);
    }
  }

  /**
   * Upload a forward's rotation tables and its ids, unless those are on the device.
   * @param {Forward} plan @param {Buffers} buffers @param {number} total @param {number[] | null} ids
   */
  give(plan, buffers, total, ids) {
    const { cos, sin } = tables(this.config.rope, this.config.H, plan.offset, plan.T, total);
    buffers.write({ ...(ids ? { ids: Uint32Array.from(ids) } : {}), cos, sin });
  }

  /**
   * Submit a plan's steps; does not wait. replay: for plans of one step.
   * @param {import("./plan.js").Builder} plan @param {Lookup} buffers @param {Replay} replay
   */
  async submit(plan, buffers, replay) {
    for (const { copies, dispatches } of plan.steps) await this.kernels.run(copies, dispatches, this.every(buffers), replay);
  }

  /** Buffers and weights by name. @param {Lookup} buffers @returns {Lookup} */
  every(buffers) {
    return { get: (name) => buffers.get(name) ?? this.weights.get(name), scope: buffers.scope };
  }

  /**
   * Run a plan's steps; `onDone` gets the work and ms of each step that has run, and whether nothing was compiled meanwhile.
   * @param {import("./plan.js").Builder} plan @param {Lookup} buffers @param {AbortSignal} [signal]
   * @param {(flops: number, ms: number, calm: boolean) => void} [onDone]
   */
  async runSteps(plan, buffers, signal, onDone) {
    await Promise.all(await this.submitSteps(plan, buffers, signal, onDone));
    signal?.throwIfAborted();
  }

  /**
   * The same up to the last submit: one step runs and one is ready, so that the device never waits and who comes next waits for
   * two at most. Gives what each step resolves with when it has run.
   * @param {import("./plan.js").Builder} plan @param {Lookup} buffers @param {AbortSignal} [signal]
   * @param {(flops: number, ms: number, calm: boolean) => void} [onDone]
   */
  async submitSteps(plan, buffers, signal, onDone) {
    const every = this.every(buffers);
    /** @type {Promise<void>[]} */
    const running = [];
    let last = 0;
    for (const { copies, dispatches, flops } of plan.steps) {
      signal?.throwIfAborted();
      await this.kernels.run(copies, dispatches, every);
      const [start, calm] = [performance.now(), this.kernels.calm()];
      const finished = this.kernels.fence(buffers.scope).then(() => {
        const now = performance.now();
        onDone?.(flops, now - Math.max(start, last), calm());
        last = now;
      });
      finished.catch(() => {}); // awaited below, or after an earlier failure that says the same
      running.push(finished);
      if (running.length > 1) await running[running.length - 2];
    }
    return running;
  }

  /** Free the weights. Traces of this model answer no more queries afterwards. */
  destroy() {
    this.weights.destroy();
  }
}

/**
 * Wait until the device has made buffers; frees them and throws RunError("device-memory") when it has no room for them.
 * @param {Buffers} buffers @param {string} what
 */
async function withinMemory(buffers, what) {
  try {
    await buffers.scope.taken();
  } catch (error) {
    buffers.destroy();
    if (!(/** @type {Error} */ (error).cause instanceof GPUOutOfMemoryError)) throw error;
    throw new RunError("device-memory", `The device has no memory left for ${what}: close other tabs, or take less.`);
  }
}
