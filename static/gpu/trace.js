/**
 * What a finished pass can be asked: patterns, windows, logits, the logit lens, and any intermediate that was recorded.
 *
 * Nothing of size T x T or L x T x V is kept: each answer is computed from q, k, lse and the residual streams when
 * asked. Log-probabilities are natural. Mirrors webgpu/trace.py.
 * @module
 */
import { attentionKernel, attentionOperation } from "./attention.js";
import { Buffers } from "./buffers.js";
import { BadQuery, batches, lensOf } from "./lens.js";
import { LENS_ROWS, countRows, layersPerQuery, logits, rowsPerQuery, thumbnailWords } from "./queries.js";
import { thumbnails as thumbnailsPlan, window as windowPlan } from "./queries.js";

export { BadQuery };

/** @typedef {import("./runtime.js").Model} Model */
/** @typedef {import("./queries.js").Source} Source */
/**
 * @typedef {{layer: number, head0: number, heads: number, row0: number, rows: number, col0: number, cols: number,
 *   outRows: number, outCols: number, reduce?: "max" | "mean"}} Window
 */
/** @typedef {import("./lens.js").LensRows} LensRows */

/** A question of the lens: less than half a second, which a newer prompt waits for at most; a GPU's is 256 rows. */
const [QUESTION_SUBMITS, MOST_EIGHTS] = [4, 32];
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/** One prompt after its prefill. `destroy` frees its buffers. */
export class Trace {
  /**
   * @param {Model} model @param {number[]} ids @param {Buffers} buffers
   * @param {import("./variants.js").Choice} choice what the pass ran on
   */
  constructor(model, ids, buffers, choice) {
    this.model = model;
    this.choice = choice;
    this.ids = ids;
    this.buffers = buffers;
    const { L, N, K, H, D, V } = model.config;
    this.shape = { L, N, K, T: ids.length, H, D, V };
  }

  /** The kernel that attended in this pass. */
  get attentionKernel() {
    const { T, N, H } = this.shape;
    return attentionKernel({ T, S: T, N, H }, this.choice[attentionOperation(T)]);
  }

  /**
   * The weights of one head after softmax [T*T].
   * @param {number} layer @param {number} head @param {AbortSignal} [signal]
   */
  async pattern(layer, head, signal) {
    const { T } = this.shape;
    return this.window({ layer, head0: head, heads: 1, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T }, signal);
  }

  /**
   * Part of the patterns of some heads, reduced to pixels [heads*outRows*outCols]. Pixel (i,j) is the largest ("max") or
   * the "mean" of the cells from row0 + floor(i*rows/outRows) up to the next pixel's (at least one), columns alike.
   * Throws BadQuery outside the pattern.
   * @param {Window} asked @param {AbortSignal} [signal]
   */
  async window({ layer, head0, heads, row0, rows, col0, cols, outRows, outCols, reduce = "max" }, signal) {
    const { L, N, T } = this.shape;
    this.within("layer", layer, 1, L);
    this.within("head", head0, heads, N);
    this.within("row", row0, rows, T);
    this.within("column", col0, cols, T);
    this.within("outRows", 0, outRows, 2 ** 20);
    this.within("outCols", 0, outCols, 2 ** 20);
    checkReduce(reduce);
    const answer = new Float32Array(heads * outRows * outCols);
    const cells = rows === outRows && cols === outCols; // every pixel one cell: rows can be had piece by piece
    const atOnce = cells ? Math.max(1, Math.floor(MAX_ANSWER_BYTES / (4 * heads * cols))) : rows;
    for (let start = row0; start < row0 + rows; start += atOnce) {
      const count = Math.min(atOnce, row0 + rows - start);
      const pixels = cells ? count : outRows;
      const place = { layer, T, head0, heads, row0: start, rows: count, col0, cols, out_rows: pixels, out_cols: outCols };
      const plan = windowPlan(this.model.config, this.model.placed, { ...place, reduce, choice: this.choice, ...this.model.budget });
      const [bytes] = await this.ask(plan, [["window", heads * pixels * outCols]], {}, signal);
      const part = new Float32Array(bytes);
      for (let head = 0; head < heads; head++) {
        const from = part.subarray(head * pixels * outCols, (head + 1) * pixels * outCols);
        answer.set(from, (head * outRows + (start - row0)) * outCols);
      }
    }
    return answer;
  }

  /**
   * Every head's whole pattern as out x out pixels (see `window`), some layers at a time: each part is one readback,
   * [layers*N*out*out]. Throws BadQuery, or the signal's reason.
   * @param {{out: number, reduce?: "max" | "mean"}} asked @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<{layer0: number, layers: number, data: Float32Array}>}
   */
  async *thumbnails({ out, reduce = "max" }, signal) {
    const { L, N, T } = this.shape;
    const { config, placed } = this.model;
    const { choice } = this; // what a pass ran on serves its pictures too: it depends on the length
    this.within("out", 0, out, T);
    checkReduce(reduce);
    const atOnce = layersPerQuery(config, T, out);
    const [words, used] = [thumbnailWords(config, out), N * out * out];
    for (let layer0 = 0; layer0 < L; layer0 += atOnce) {
      const layers = Math.min(atOnce, L - layer0);
      const plan = thumbnailsPlan(config, placed, { layer0, layers, T, out, reduce, choice, ...this.model.budget });
      const [bytes] = await this.ask(plan, [["thumbnails", layers * words]], {}, signal);
      const data = new Float32Array(layers * used);
      for (let i = 0; i < layers; i++) data.set(new Float32Array(bytes, 4 * i * words, used), i * used);
      yield { layer0, layers, data };
    }
  }

  /** The next-token logits at one position [V]. @param {number} position @param {AbortSignal} [signal] */
  async logits(position, signal) {
    this.within("position", position, 1, this.shape.T);
    return this.outputRows("logits", position, 1, signal);
  }

  /**
   * Logit lens of the residual stream entering `layer` (L: leaving the last one), positions row0 ...
   * @param {{layer: number, row0: number, rows: number, target?: number | null}} asked @param {AbortSignal} [signal]
   * @returns {Promise<LensRows>}
   */
  async lensRows({ layer, row0, rows, target = null }, signal) {
    return this.lensAt([[layer, row0, rows]], { target, signal });
  }

  /**
   * The same of rows of several layers, one after the other: a few layers of one position cost what so many positions do.
   * @param {Source[]} sources @param {{target?: number | null, signal?: AbortSignal}} [options] @returns {Promise<LensRows>}
   */
  async lensAt(sources, { target = null, signal } = {}) {
    for (const [layer, row0, rows] of sources) {
      this.within("layer", layer, 1, this.shape.L + 1);
      this.within("position", row0, rows, this.shape.T);
    }
    return lensOf(this, sources, target, signal);
  }

  /** How many rows to ask for at once while a picture of the lens fills: a few submits' work, in what the kernels take together. */
  get lensAtOnce() {
    const { D, V } = this.shape;
    const rows = (QUESTION_SUBMITS * this.model.pace.flops) / (2 * D * V * LENS_ROWS);
    return Math.max(1, Math.min(Math.floor(rows), MOST_EIGHTS)) * LENS_ROWS;
  }

  /** The whole logit lens: ids and logprobs [(L+1)*T*10]. @param {AbortSignal} [signal] */
  async lens(signal) {
    const { L, T } = this.shape;
    const sources = Array.from({ length: L + 1 }, (_, layer) => /** @type {Source} */ ([layer, 0, T]));
    const { ids, logprobs } = await lensOf(this, sources, null, signal);
    return { ids, logprobs };
  }

  /**
   * Rank of a token through depth at one position [L+1]; 0 = most likely. turn: asks LENS_ROWS layers when it is their turn;
   * without it all are asked together.
   * @param {number} position @param {number} target @param {<T>(ask: () => Promise<T>) => Promise<T>} [turn]
   */
  async ranks(position, target, turn) {
    this.within("position", position, 1, this.shape.T);
    const sources = Array.from({ length: this.shape.L + 1 }, (_, layer) => /** @type {Source} */ ([layer, position, 1]));
    /** @type {number[]} */
    const ranks = [];
    for (const part of turn ? batches(sources, LENS_ROWS) : [sources]) {
      const ask = () => lensOf(this, part, target);
      ranks.push(...(await (turn ? turn(ask) : ask())).targetRank);
    }
    return Uint32Array.from(ranks);
  }

  /**
   * A named intermediate: of one layer, or of the whole model when `layer` is left out.
   * Always there: token_ids, embed, final_norm, logits, and per layer q, k, v, lse, pattern, resid_pre, resid_post. The
   * others (z, resid_mid, ...) need `record: true`. Throws BadQuery for what is not there.
   * @param {string} name @param {number | null} layer @param {AbortSignal} [signal]
   * @returns {Promise<Float32Array | Int32Array>}
   */
  async read(name, layer = null, signal) {
    const { L, N, T, D } = this.shape;
    if (layer === null) {
      if (name === "token_ids") return Int32Array.from(this.ids);
      if (name === "embed") return this.kept("resid.0", T * D);
      if (name === "final_norm" || name === "logits") return this.outputRows(name, 0, T, signal);
      throw new BadQuery(`There is no model-wide "${name}": allowed are token_ids, embed, final_norm, logits.`);
    }
    this.within("layer", layer, 1, L);
    if (name === "pattern") {
      return this.window({ layer, head0: 0, heads: N, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T }, signal);
    }
    if (name === "resid_pre") return this.kept(`resid.${layer}`, T * D);
    if (name === "resid_post") return this.kept(`resid.${layer + 1}`, T * D);
    const [buffer, width, column] = this.partOf(name);
    if (buffer === name) return this.kept(`${name}.${layer}`, this.count(name));
    const rows = await this.kept(`${buffer}.${layer}`, T * width, name);
    const part = new Float32Array(this.count(name));
    const own = part.length / T;
    for (let t = 0; t < T; t++) part.set(rows.subarray(t * width + column, t * width + column + own), t * own);
    return part;
  }

  /**
   * Where an intermediate lies: in which buffer, how wide its rows are, and from which column on.
   * @param {string} name @returns {[buffer: string, width: number, column: number]}
   */
  partOf(name) {
    const { N, K, H } = this.shape;
    const { F } = this.model.config;
    if (name === "q_proj") return ["qkv", (N + 2 * K) * H, 0];
    if (name === "k_proj") return ["qkv", (N + 2 * K) * H, N * H];
    if (name === "q_normed") return ["qk_normed", (N + K) * H, 0];
    if (name === "k_normed") return ["qk_normed", (N + K) * H, N * H];
    if (name === "gate") return ["gate_up", 2 * F, 0];
    if (name === "up") return ["gate_up", 2 * F, F];
    return [name, 0, 0];
  }

  /** Numbers in a per-layer intermediate, 0 for other names. @param {string} name */
  count(name) {
    const { N, K, T, H, D } = this.shape;
    if (name === "lse") return N * T;
    if (["q", "q_proj", "q_normed", "z"].includes(name)) return T * N * H;
    if (["k", "k_proj", "k_normed", "v"].includes(name)) return T * K * H;
    if (["gate", "up", "act"].includes(name)) return T * this.model.config.F;
    return ["attn_norm", "attn_out", "resid_mid", "mlp_norm", "mlp_out"].includes(name) ? T * D : 0;
  }

  /** Free this trace's buffers. */
  destroy() {
    this.buffers.destroy();
  }

  // How answers are made

  /** @param {string} place @param {number} count @param {string} [name] */
  async kept(place, count, name = place.split(".")[0]) {
    const buffer = this.buffers.get(place);
    if (!buffer || !count) {
      throw new BadQuery(`This trace has no "${name}": run the prompt with record: true for all names.`);
    }
    const [bytes] = await this.model.kernels.read([[buffer, 4 * count]]);
    return new Float32Array(bytes);
  }

  /** @param {string} what @param {number} start @param {number} count @param {number} end */
  within(what, start, count, end) {
    const whole = Number.isInteger(start) && Number.isInteger(count);
    if (whole && start >= 0 && count >= 1 && start + count <= end) return;
    throw new BadQuery(`${what} ${start} + ${count} is outside this trace: allowed are 0 to ${end - 1}.`);
  }

  /**
   * `final_norm` or `logits` after the last layer.
   * @param {string} name @param {number} row0 @param {number} rows @param {AbortSignal} [signal]
   */
  async outputRows(name, row0, rows, signal) {
    const { L, D, V } = this.shape;
    const width = name === "final_norm" ? D : V;
    const answer = new Float32Array(rows * width);
    let at = 0;
    for (const sources of batches([[L, row0, rows]], rowsPerQuery(this.model.config))) {
      const plan = logits(this.model.config, this.model.placed, { sources, choice: this.model.choice, ...this.model.budget });
      const [bytes] = await this.ask(plan, [[name, countRows(sources) * width]], {}, signal);
      answer.set(new Float32Array(bytes), at);
      at += countRows(sources) * width;
    }
    return answer;
  }

  /**
   * Run a query on buffers of its own and read the wanted ones back (4-byte words each).
   * @param {import("./plan.js").Builder} plan @param {[string, number][]} wanted
   * @param {Record<string, Uint32Array<ArrayBuffer>>} given
   * @param {AbortSignal} [signal]
   */
  async ask(plan, wanted, given, signal) {
    const scratch = new Buffers(this.model.kernels, plan.buffers);
    try {
      scratch.write(given);
      const both = { get: (/** @type {string} */ name) => scratch.get(name) ?? this.buffers.get(name), scope: scratch.scope };
      const running = await this.model.submitSteps(plan, both, signal);
      // Reading waits for the steps itself; what they complain of comes with theirs.
      const answer = scratch.read(wanted);
      await Promise.all([answer, ...running]);
      signal?.throwIfAborted();
      return await answer;
    } finally {
      scratch.destroy();
    }
  }
}

/** Refuse what is neither the largest nor the mean of a pixel's cells. @param {string} reduce */
function checkReduce(reduce) {
  if (reduce !== "max" && reduce !== "mean") throw new BadQuery(`reduce is "${reduce}": allowed are "max" and "mean".`);
}
