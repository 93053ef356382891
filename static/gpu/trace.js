/**
 * What a finished pass can be asked: patterns, windows, logits, the logit lens, and any intermediate that was recorded.
 *
 * Nothing of size T x T or L x T x V is kept: each answer is computed from q, k, lse and the residual streams when
 * asked. Log-probabilities are natural. Mirrors webgpu/trace.py.
 * @module
 */
import { Buffers } from "./buffers.js"
import { TOP, lens, logits, rowsPerQuery, window as windowPlan } from "./queries.js"

/** @typedef {import("./runtime.js").Model} Model */
/** @typedef {import("./queries.js").Source} Source */
/**
 * @typedef {{layer: number, head0: number, heads: number, row0: number, rows: number, col0: number, cols: number,
 *   outRows: number, outCols: number, reduce?: "max" | "mean"}} Window
 */
/**
 * ids and logprobs [rows*10] best first; entropy (nats), lse, targetLogprob, targetRank [rows] (0 = best; without a target
 * NaN and -1).
 * @typedef {{ids: Uint32Array, logprobs: Float32Array, entropy: Float32Array, lse: Float32Array,
 *   targetLogprob: Float32Array, targetRank: Int32Array}} LensRows
 */

const NO_TARGET = 0xffffffff
const MAX_ANSWER_BYTES = 64 * 2 ** 20

/** A question outside this trace: a layer, head, window or name that it does not have. */
export class BadQuery extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = "BadQuery"
    this.code = "bad-query"
  }
}

/** One prompt after its prefill. `destroy` frees its buffers. */
export class Trace {
  /** @param {Model} model @param {number[]} ids @param {Buffers} buffers */
  constructor(model, ids, buffers) {
    this.model = model
    this.ids = ids
    this.buffers = buffers
    const { L, N, K, H, D, V } = model.config
    this.shape = { L, N, K, T: ids.length, H, D, V }
  }

  /** The weights of one head after softmax [T*T]. @param {number} layer @param {number} head @param {AbortSignal} [signal] */
  async pattern(layer, head, signal) {
    const { T } = this.shape
    return this.window({ layer, head0: head, heads: 1, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T }, signal)
  }

  /**
   * Part of the patterns of some heads, reduced to pixels [heads*outRows*outCols]. Pixel (i,j) is the largest ("max") or
   * the "mean" of the cells from row0 + floor(i*rows/outRows) up to the next pixel's (at least one), columns alike.
   * Throws BadQuery outside the pattern.
   * @param {Window} asked @param {AbortSignal} [signal]
   */
  async window({ layer, head0, heads, row0, rows, col0, cols, outRows, outCols, reduce = "max" }, signal) {
    const { L, N, T } = this.shape
    this.within("layer", layer, 1, L)
    this.within("head", head0, heads, N)
    this.within("row", row0, rows, T)
    this.within("column", col0, cols, T)
    this.within("outRows", 0, outRows, 2 ** 20)
    this.within("outCols", 0, outCols, 2 ** 20)
    if (reduce !== "max" && reduce !== "mean") throw new BadQuery(`reduce is "${reduce}": allowed are "max" and "mean".`)
    const answer = new Float32Array(heads * outRows * outCols)
    const cells = rows === outRows && cols === outCols // every pixel one cell: rows can be had piece by piece
    const atOnce = cells ? Math.max(1, Math.floor(MAX_ANSWER_BYTES / (4 * heads * cols))) : rows
    for (let start = row0; start < row0 + rows; start += atOnce) {
      const count = Math.min(atOnce, row0 + rows - start)
      const pixels = cells ? count : outRows
      const place = { layer, T, head0, heads, row0: start, rows: count, col0, cols, out_rows: pixels, out_cols: outCols }
      const plan = windowPlan(this.model.config, this.model.placed, { ...place, reduce })
      const [bytes] = await this.ask(plan, [["window", heads * pixels * outCols]], {}, signal)
      const part = new Float32Array(bytes)
      for (let head = 0; head < heads; head++) {
        const from = part.subarray(head * pixels * outCols, (head + 1) * pixels * outCols)
        answer.set(from, (head * outRows + (start - row0)) * outCols)
      }
    }
    return answer
  }

  /** The next-token logits at one position [V]. @param {number} position @param {AbortSignal} [signal] */
  async logits(position, signal) {
    this.within("position", position, 1, this.shape.T)
    return this.outputRows("logits", position, 1, signal)
  }

  /**
   * Logit lens of the residual stream entering `layer` (L: leaving the last one), positions row0 ...
   * @param {{layer: number, row0: number, rows: number, target?: number | null}} asked @param {AbortSignal} [signal]
   * @returns {Promise<LensRows>}
   */
  async lensRows({ layer, row0, rows, target = null }, signal) {
    this.within("layer", layer, 1, this.shape.L + 1)
    this.within("position", row0, rows, this.shape.T)
    return this.lensOf([[layer, row0, rows]], target, signal)
  }

  /** The whole logit lens: ids and logprobs [(L+1)*T*10]. @param {AbortSignal} [signal] */
  async lens(signal) {
    const { L, T } = this.shape
    const sources = Array.from({ length: L + 1 }, (_, layer) => /** @type {Source} */ ([layer, 0, T]))
    const { ids, logprobs } = await this.lensOf(sources, null, signal)
    return { ids, logprobs }
  }

  /** Rank of a token through depth at one position [L+1]; 0 = most likely. @param {number} position @param {number} target @param {AbortSignal} [signal] */
  async ranks(position, target, signal) {
    this.within("position", position, 1, this.shape.T)
    const sources = Array.from({ length: this.shape.L + 1 }, (_, layer) => /** @type {Source} */ ([layer, position, 1]))
    const { targetRank } = await this.lensOf(sources, target, signal)
    return Uint32Array.from(targetRank)
  }

  /**
   * A named intermediate: of one layer, or of the whole model when `layer` is left out.
   * Always there: token_ids, embed, final_norm, logits, and per layer q, k, v, lse, pattern, resid_pre, resid_post. The
   * others (z, resid_mid, ...) need `record: true`. Throws BadQuery for what is not there.
   * @param {string} name @param {number | null} layer @param {AbortSignal} [signal]
   * @returns {Promise<Float32Array | Int32Array>}
   */
  async read(name, layer = null, signal) {
    const { L, N, T, D } = this.shape
    if (layer === null) {
      if (name === "token_ids") return Int32Array.from(this.ids)
      if (name === "embed") return this.kept("resid.0", T * D)
      if (name === "final_norm" || name === "logits") return this.outputRows(name, 0, T, signal)
      throw new BadQuery(`There is no model-wide "${name}": allowed are token_ids, embed, final_norm, logits.`)
    }
    this.within("layer", layer, 1, L)
    if (name === "pattern") {
      return this.window({ layer, head0: 0, heads: N, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T }, signal)
    }
    if (name === "resid_pre" || name === "resid_post") return this.kept(`resid.${layer + (name === "resid_post" ? 1 : 0)}`, T * D)
    return this.kept(`${name}.${layer}`, this.count(name))
  }

  /** Numbers in a per-layer intermediate that lies in a buffer of its own, 0 for other names. @param {string} name */
  count(name) {
    const { N, K, T, H, D } = this.shape
    if (name === "lse") return N * T
    if (["q", "q_proj", "q_normed", "z"].includes(name)) return T * N * H
    if (["k", "k_proj", "k_normed", "v"].includes(name)) return T * K * H
    if (["gate", "up", "act"].includes(name)) return T * this.model.config.F
    return ["attn_norm", "attn_out", "resid_mid", "mlp_norm", "mlp_out"].includes(name) ? T * D : 0
  }

  /** Free this trace's buffers. */
  destroy() {
    this.buffers.destroy()
  }

  // How answers are made

  /** @param {string} name @param {number} count */
  async kept(name, count) {
    const buffer = this.buffers.get(name)
    if (!buffer || !count) {
      throw new BadQuery(`This trace has no "${name.split(".")[0]}": run the prompt with record: true for all names.`)
    }
    const [bytes] = await this.model.kernels.read([[buffer, 4 * count]])
    return new Float32Array(bytes)
  }

  /** @param {string} what @param {number} start @param {number} count @param {number} end */
  within(what, start, count, end) {
    const whole = Number.isInteger(start) && Number.isInteger(count)
    if (whole && start >= 0 && count >= 1 && start + count <= end) return
    throw new BadQuery(`${what} ${start} + ${count} is outside this trace: allowed are 0 to ${end - 1}.`)
  }

  /** @param {string} name @param {number} row0 @param {number} rows @param {AbortSignal} [signal] */
  async outputRows(name, row0, rows, signal) {
    const { D, V } = this.shape
    const width = name === "final_norm" ? D : V
    const answer = new Float32Array(rows * width)
    const most = rowsPerQuery(this.model.config)
    for (let start = row0; start < row0 + rows; start += most) {
      const count = Math.min(most, row0 + rows - start)
      const plan = logits(this.model.config, this.model.placed, { row0: start, rows: count })
      const [bytes] = await this.ask(plan, [[name, count * width]], {}, signal)
      answer.set(new Float32Array(bytes), (start - row0) * width)
    }
    return answer
  }

  /**
   * Lens of any rows of any layers, in batches that keep a submit short.
   * @param {Source[]} sources @param {number | null} target @param {AbortSignal} [signal] @returns {Promise<LensRows>}
   */
  async lensOf(sources, target, signal) {
    const { V } = this.shape
    if (target !== null && !(Number.isInteger(target) && target >= 0 && target < V)) {
      throw new BadQuery(`Target ${target} is outside the vocabulary: allowed are 0 to ${V - 1}.`)
    }
    const total = sources.reduce((sum, [, , rows]) => sum + rows, 0)
    const ids = new Uint32Array(total * TOP)
    const logprobs = new Float32Array(total * TOP)
    const [entropy, lse, targetLogprob] = [new Float32Array(total), new Float32Array(total), new Float32Array(total)]
    const targetRank = new Int32Array(total)
    let at = 0
    for (const batch of batches(sources, rowsPerQuery(this.model.config))) {
      const rows = batch.reduce((sum, [, , count]) => sum + count, 0)
      const plan = lens(this.model.config, this.model.placed, { sources: batch })
      const targets = new Uint32Array(rows).fill(target ?? NO_TARGET)
      /** @type {[string, number][]} */
      const wanted = [["lens_ids", rows * TOP], ["lens_logits", rows * TOP], ["lens_stats", rows * 4]]
      const [idBytes, logitBytes, statBytes] = await this.ask(plan, wanted, { targets }, signal)
      ids.set(new Uint32Array(idBytes), at * TOP)
      const best = new Float32Array(logitBytes)
      const stats = new Float32Array(statBytes)
      for (let row = 0; row < rows; row++, at++) {
        lse[at] = stats[4 * row]
        entropy[at] = stats[4 * row + 1]
        targetLogprob[at] = target === null ? NaN : stats[4 * row + 2] - lse[at]
        targetRank[at] = stats[4 * row + 3]
        for (let i = 0; i < TOP; i++) logprobs[at * TOP + i] = best[row * TOP + i] - lse[at]
      }
    }
    return { ids, logprobs, entropy, lse, targetLogprob, targetRank }
  }

  /**
   * Run a query on buffers of its own and read the wanted ones back (4-byte words each).
   * @param {import("./plan.js").Builder} plan @param {[string, number][]} wanted @param {Record<string, Uint32Array<ArrayBuffer>>} given
   * @param {AbortSignal} [signal]
   */
  async ask(plan, wanted, given, signal) {
    const { kernels } = this.model
    const scratch = new Buffers(kernels, plan.buffers)
    try {
      for (const [name, values] of Object.entries(given)) kernels.write(kernels.find(scratch, name), values)
      const both = { get: (/** @type {string} */ name) => scratch.get(name) ?? this.buffers.get(name) }
      await this.model.runSteps(plan, both, signal)
      return await kernels.read(wanted.map(([name, words]) => [kernels.find(scratch, name), 4 * words]))
    } finally {
      scratch.destroy()
    }
  }
}

/**
 * Regroup [layer, row0, rows] so that each batch has at most `most` rows, in the same order.
 * @param {Source[]} sources @param {number} most
 */
export function batches(sources, most) {
  /** @type {Source[][]} */
  const all = []
  let room = 0
  for (const [layer, row0, rows] of sources) {
    for (let start = row0; start < row0 + rows; ) {
      if (room === 0) {
        all.push([])
        room = most
      }
      const take = Math.min(row0 + rows - start, room)
      all[all.length - 1].push([layer, start, take])
      start += take
      room -= take
    }
  }
  return all
}
