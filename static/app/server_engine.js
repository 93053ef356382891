// The same model, computed by the server's oracle, for browsers without WebGPU. Same methods as the engine on the GPU, so
// that every view is the same. Slower, and limited to the prompts that the oracle takes.
import { parseConfig } from "../gpu/config.js";
import { openSafetensors } from "../lib/safetensors.js";
import { sample, seeded } from "../lib/sampler.js";
import { entropy, logSumExp, topTokens } from "../lib/maths.js";
import { patternWindow } from "../lib/windows.js";
import { oracleTrace } from "./api.js";
import { loadConfig, stopIds } from "./models.js";
import { pause } from "./thumbnails.js";

/** Largest answer asked for at once; layers are fetched in groups that stay below it. */
const ANSWER_BYTES = 16 * 1024 * 1024;

/** @typedef {import("./state.js").ModelEntry} ModelEntry */

/**
 * The tensors of an answer as arrays of numbers.
 * @param {Uint8Array<ArrayBuffer>} file
 * @returns {Record<string, {shape: number[], data: Float32Array}>}
 */
export function tensors(file) {
  return Object.fromEntries(
    Array.from(openSafetensors(file), ([name, { dtype, shape, bytes }]) => {
      const aligned = bytes.slice().buffer;
      return [name, { shape, data: dtype === "I32" ? Float32Array.from(new Int32Array(aligned)) : new Float32Array(aligned) }];
    }),
  );
}

export class ServerEngine {
  /** @param {ModelEntry} entry @param {any} raw parsed config.json */
  constructor(entry, raw) {
    this.kind = /** @type {const} */ ("server");
    this.entry = entry;
    this.config = parseConfig(raw);
    this.stopIds = stopIds(raw);
  }

  /** @param {ModelEntry} entry */
  static async load(entry) {
    return new ServerEngine(entry, await loadConfig(entry));
  }

  /** @param {number} layer */
  visible(layer) {
    return { window: this.config.windows[layer] ?? 0, sinks: 0 };
  }

  /**
   * @param {ArrayLike<number>} ids
   * @param {string[]} include
   * @param {{layers?: number[], positions?: number[], signal?: AbortSignal}} [options]
   */
  async ask(ids, include, { layers = [], positions = [], signal } = {}) {
    return tensors(await oracleTrace({ model: this.entry.id, ids, include, layers, positions }, signal));
  }

  /**
   * @param {number[]} ids
   * @param {{onProgress?: (part: number) => void, signal?: AbortSignal}} [options]
   */
  async run(ids, { onProgress, signal } = {}) {
    const last = ids.length - 1;
    const { logits } = await this.ask(ids, ["logits"], { positions: [last], signal });
    onProgress?.(1);
    return new ServerTrace(this, ids, logits.data);
  }

  /**
   * @param {number[]} ids
   * @param {import("./state.js").Sampling} sampling
   */
  async *generate(ids, { maxTokens, stopIds = [], signal, seed, ...sampling }) {
    const random = seeded(seed);
    const all = [...ids];
    for (let step = 0; step < maxTokens; step += 1) {
      const { logits } = await this.ask(all, ["logits"], { positions: [all.length - 1], signal });
      const chosen = sample(logits.data, sampling, random);
      yield chosen;
      if (stopIds.includes(chosen.id)) return;
      all.push(chosen.id);
    }
  }

  destroy() {}
}

class ServerTrace {
  /** @param {ServerEngine} engine @param {number[]} ids @param {Float32Array} logits of the last position */
  constructor(engine, ids, logits) {
    this.engine = engine;
    this.ids = ids;
    this.shape = { ...engine.entry.shape, T: ids.length };
    this.stopping = new AbortController();
    /** @type {Map<number, Promise<import("../lib/windows.js").Layer>>} */
    this.layers = new Map();
    /** @type {Map<number, Promise<Float32Array>>} position -> [V] */
    this.rows = new Map([[ids.length - 1, Promise.resolve(logits)]]);
    /** @type {Map<number, Promise<Float32Array>>} position -> [(L+1) * V] */
    this.columns = new Map();
    /** @type {Map<number, Promise<{best: {id: number, logprob: number}[], entropy: number, lse: number}[]>>} */
    this.summaries = new Map();
    /** The oracle answers by position, so the lens is best filled column by column. */
    this.lensOrder = /** @type {const} */ ("columns");
    this.lensAtOnce = this.shape.L + 1;
  }

  /** @param {string[]} include @param {{layers?: number[], positions?: number[]}} [options] */
  #ask(include, options) {
    return this.engine.ask(this.ids, include, { ...options, signal: this.stopping.signal });
  }

  /** q, k and lse of a layer; its neighbours come along while the answer stays small. @param {number} layer */
  #layer(layer) {
    const { T, N, K, H, L } = this.shape;
    const known = this.layers.get(layer);
    if (known) return known;
    const group = Math.max(1, Math.floor(ANSWER_BYTES / (4 * T * ((N + K) * H + N))));
    const layers = [];
    for (let l = layer; l < L && layers.length < group && !this.layers.has(l); l += 1) layers.push(l);
    const answer = this.#ask(["q", "k", "lse"], { layers });
    layers.forEach((l, i) => {
      const part = answer.then(({ q, k, lse }) => ({
        q: q.data.subarray(i * T * N * H, (i + 1) * T * N * H),
        k: k.data.subarray(i * T * K * H, (i + 1) * T * K * H),
        lse: lse.data.subarray(i * N * T, (i + 1) * N * T),
      }));
      part.catch(() => this.layers.delete(l));
      this.layers.set(l, part);
    });
    return /** @type {Promise<import("../lib/windows.js").Layer>} */ (this.layers.get(layer));
  }

  /** @param {import("./state.js").WindowRequest} request */
  async window({ layer, ...request }) {
    return patternWindow(await this.#layer(layer), this.shape, this.engine.visible(layer), request);
  }

  /**
   * Head by head with a pause in between, since this thread does the work.
   * @param {{out: number, reduce?: "max" | "mean"}} asked
   * @param {AbortSignal} [signal]
   */
  async *thumbnails({ out, reduce = "max" }, signal) {
    const { L, N, T } = this.shape;
    const whole = { heads: 1, row0: 0, rows: T, col0: 0, cols: T, outRows: out, outCols: out, reduce };
    for (let layer0 = 0; layer0 < L; layer0 += 1) {
      const data = new Float32Array(N * out * out);
      for (let head0 = 0; head0 < N; head0 += 1) {
        signal?.throwIfAborted();
        data.set(await this.window({ layer: layer0, head0, ...whole }), head0 * out * out);
        await pause();
      }
      yield { layer0, layers: 1, data };
    }
  }

  /** @param {number} layer @param {number} head */
  pattern(layer, head) {
    const { T } = this.shape;
    return this.window({ layer, head0: head, heads: 1, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T, reduce: "max" });
  }

  /** @param {number} position */
  logits(position) {
    if (!this.rows.has(position)) {
      const answer = this.#ask(["logits"], { positions: [position] }).then(({ logits }) => logits.data);
      answer.catch(() => this.rows.delete(position)); // a busy server may answer the next time
      this.rows.set(position, answer);
    }
    return /** @type {Promise<Float32Array>} */ (this.rows.get(position));
  }

  async lens() {
    const { lens_ids, lens_logprobs } = await this.#ask(["lens_ids", "lens_logprobs"]);
    return { ids: Int32Array.from(lens_ids.data), logprobs: lens_logprobs.data };
  }

  /** Logits at every depth of one position, [(L+1) * V]; the last few are kept. @param {number} position */
  #column(position) {
    if (!this.columns.has(position)) {
      if (this.columns.size >= 4) this.columns.delete(/** @type {number} */ (this.columns.keys().next().value));
      const answer = this.#ask(["lens_logits"], { positions: [position] }).then(({ lens_logits }) => lens_logits.data);
      answer.catch(() => this.columns.delete(position));
      this.columns.set(position, answer);
    }
    return /** @type {Promise<Float32Array>} */ (this.columns.get(position));
  }

  /** @param {number} position @param {number} layer 0..L */
  async #depth(position, layer) {
    const { V } = this.shape;
    return (await this.#column(position)).subarray(layer * V, (layer + 1) * V);
  }

  /** What the lens shows of one column; small, so it is kept for good. @param {number} position */
  #summary(position) {
    const known = this.summaries.get(position);
    if (known) return known;
    const layers = Array.from({ length: this.shape.L + 1 }, async (_, layer) => {
      const logits = await this.#depth(position, layer);
      return { best: topTokens(logits, 10), entropy: entropy(logits), lse: logSumExp(logits) };
    });
    const summary = Promise.all(layers);
    summary.catch(() => this.summaries.delete(position));
    this.summaries.set(position, summary);
    return summary;
  }

  /**
   * @param {number} position
   * @param {number} target
   * @param {import("./state.js").Turn} turn
   */
  async ranks(position, target, turn = (ask) => ask()) {
    return turn(() => this.#ranks(position, target));
  }

  /** @param {number} position @param {number} target */
  #ranks(position, target) {
    return Promise.all(Array.from({ length: this.shape.L + 1 }, async (_, layer) => rankOf(await this.#depth(position, layer), target)));
  }

  /**
   * A question on its way is not ended by the signal: its column is kept for the next.
   * @param {[layer: number, row0: number, rows: number][]} sources @param {{target?: number}} [options]
   */
  async lensAt(sources, { target } = {}) {
    const places = sources.flatMap(([layer, row0, rows]) => Array.from({ length: rows }, (_, i) => [layer, row0 + i]));
    const found = await Promise.all(places.map(async ([layer, position]) => (await this.#summary(position))[layer]));
    const targets = target === undefined ? [] : await Promise.all(places.map(([layer, position]) => this.#depth(position, layer)));
    return {
      ids: found.flatMap(({ best }) => best.map(({ id }) => id)),
      logprobs: found.flatMap(({ best }) => best.map(({ logprob }) => logprob)),
      entropy: found.map((row) => row.entropy),
      lse: found.map(({ lse }) => lse),
      targetLogprob: targets.map((logits, i) => logits[target ?? 0] - found[i].lse),
      targetRank: targets.map((logits) => rankOf(logits, target ?? 0)),
    };
  }

  /** @param {string} name @param {number} [layer] */
  async read(name, layer) {
    const positions = Array.from(this.ids, (_, position) => position); // logits come by position; asked for none, none come
    return (await this.#ask([name], { layers: layer === undefined ? [] : [layer], positions }))[name].data;
  }

  destroy() {
    this.stopping.abort(new Error("This trace was destroyed; run the prompt again for another."));
  }
}

/**
 * @param {Float32Array} logits [V]
 * @param {number} target
 * @returns {number} 0 is first; among equals the lower id is
 */
function rankOf(logits, target) {
  let rank = 0;
  for (let id = 0; id < logits.length; id += 1)
    if (logits[id] > logits[target] || (logits[id] === logits[target] && id < target)) rank += 1;
  return rank;
}
