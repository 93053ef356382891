/**
 * The forward pass as data: which buffers exist and which kernels run on them, in order. Nothing here touches a device.
 *
 * Mirrors webgpu/plan.py, where the names are explained; a test holds the two equal, dispatch by dispatch.
 * A binding is a buffer's name, or `name@start+bytes` for a part of it (start a multiple of 256).
 * @module
 */
import { EMBED, HEAD, NORM } from "./layout.js";
import { nextToken } from "./next_token.js";
import * as ops from "./ops.js";
import { STACKS, padded, runs } from "./pieces.js";
import { chunks } from "./slices.js";

/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./pieces.js").Layout} Layout */
/** @typedef {import("./pieces.js").Placed} Placed */
/** @typedef {import("./ops.js").Dispatch} Dispatch */
/** @typedef {{source: string, source_start: number, target: string, target_start: number, bytes: number}} Copy */
/** @typedef {import("./variants.js").Choice} Choice */
/** @typedef {{copies: Copy[], dispatches: Dispatch[], flops: number}} Step what goes to the device in one submit */

// A multiple of 64, so that every chunk's rows start on a multiple of 256 bytes whatever their width.
export const CHUNK_TOKENS = 256;
// Work of one submit: well under 100 ms on a slow GPU, about 100 ms on a CPU that stands in for one.
export const SUBMIT_FLOPS = 500_000_000;

/** What a Copy reads to clear a buffer. */
export const ZERO = "zero";

/** What a pass keeps for generating, for a trace, and for a trace with every intermediate. */
export const CACHE = new Set(["k", "v"]);
export const TRACE = new Set(["q", "k", "v", "lse", "resid"]);
const OTHERS = ["attn_norm", "qkv", "qk_normed", "z", "attn_out", "resid_mid", "mlp_norm", "gate_up", "act", "mlp_out"];
export const RECORD = new Set([...TRACE, ...OTHERS]);

/** Collects buffers and steps; a step ends when its work passes `submitFlops`. */
export class Builder {
  /** @param {Config} config @param {Layout} placed @param {number} submitFlops @param {Choice} choice */
  constructor(config, placed, submitFlops = SUBMIT_FLOPS, choice = {}) {
    this.config = config;
    this.choice = choice;
    this.placed = placed;
    this.submitFlops = submitFlops;
    /** @type {Map<string, number>} bytes by name */
    this.buffers = new Map();
    /** @type {Step[]} */
    this.steps = [{ copies: [], dispatches: [], flops: 0 }];
  }

  /** The step being filled. */
  get step() {
    return this.steps[this.steps.length - 1];
  }

  /** Ask for a buffer of at least `count` 4-byte words. @param {string} name @param {number} count */
  buffer(name, count) {
    this.buffers.set(name, Math.max(this.buffers.get(name) ?? 0, padded(4 * count)));
    return name;
  }

  /** Copy bytes before the dispatches that follow. @param {Copy} copy */
  copy(copy) {
    if (this.step.dispatches.length) this.steps.push({ copies: [], dispatches: [], flops: 0 });
    this.step.copies.push(copy);
  }

  /** Fill a whole buffer with zeros before the dispatches that follow. @param {string} name */
  clear(name) {
    const bytes = /** @type {number} */ (this.buffers.get(name));
    this.copy({ source: ZERO, source_start: 0, target: name, target_start: 0, bytes });
  }

  /**
   * Append dispatches that together do about `flops` operations. before: what has to run earlier in the same submit.
   * @param {Dispatch | Dispatch[]} dispatches @param {number} flops @param {Dispatch[]} before
   */
  emit(dispatches, flops, before = []) {
    if (this.step.dispatches.length && this.step.flops + flops > this.submitFlops) {
      this.steps.push({ copies: [], dispatches: [], flops: 0 });
    }
    const first = before.filter((each) => !this.step.dispatches.includes(each));
    this.step.dispatches.push(...first, ...[dispatches].flat());
    this.step.flops += flops;
  }

  /** @param {string} tensor @returns {Placed} */
  tensor(tensor) {
    return /** @type {Placed} */ (this.placed.get(tensor));
  }

  /**
   * RMSNorm of `rows` rows; heads: those of QK-norm, see ops.rmsnorm.
   * @param {string} x @param {string} weight @param {string} out @param {number} rows @param {number} width
   * @param {{heads: number, N: number, stride: number}} [heads]
   */
  norm(x, weight, out, rows, width, heads) {
    const how = { eps: this.config.eps, variant: this.choice.norm, ...heads };
    this.emit(ops.rmsnorm({ x, weight, out, rows, width, ...how }), 4 * rows * width);
    return out;
  }

  /**
   * x [T,d_in] times weight matrices, whose columns lie side by side in rows of out, with their biases; plus residual, which
   * lies as out does; large ones in slices.
   * @param {string} x @param {string[]} tensors @param {string} out @param {number} T @param {string} residual
   */
  product(x, tensors, out, T, residual = ops.NONE) {
    const weights = tensors.map((name) => this.tensor(name));
    const biases = tensors.map(biasOf).filter((name) => this.placed.has(name)).map((name) => this.tensor(name));
    const d_in = weights[0].shape[1];
    const out_stride = weights.reduce((sum, { shape }) => sum + shape[0], 0);
    const mostRows = Math.max(Math.floor(this.submitFlops / (2 * T * d_in)), 1);
    const variant = this.choice[ops.productOperation(T)];
    const added = runs(biases, mostRows);
    let out_col0 = 0;
    runs(weights, mostRows).forEach(({ weight, scales, rows, fmt }, i) => {
      const place = { scales, out_col0, out_stride, residual, variant };
      const bias = added[i]?.weight ?? null;
      this.emit(ops.matmul({ x, weight, bias, out, T, d_in, d_out: rows, fmt, ...place }), 2 * T * d_in * rows);
      out_col0 += rows;
    });
    return out;
  }

  /** The tensor that turns the last residual stream into logits. */
  head() {
    return this.config.tied ? EMBED : HEAD;
  }

  /**
   * Final norm and unembedding of `rows` rows of residual stream: logits [rows,V].
   * @param {string} x @param {number} rows
   */
  logits(x, rows) {
    const { D, V } = this.config;
    const normed = this.norm(x, NORM, this.buffer("final_norm", rows * D), rows, D);
    return this.product(normed, [this.head()], this.buffer("logits", rows * V), rows);
  }
}

/** One forward of T tokens at `offset`, with caches of `capacity` rows. */
export class Forward extends Builder {
  /**
   * @param {Config} config
   * @param {Layout} placed @param {number} T @param {number} offset @param {number} capacity
   * @param {Set<string>} keep @param {Choice} [choice] @param {number} [submitFlops]
   */
  constructor(config, placed, T, offset, capacity, keep, choice, submitFlops = SUBMIT_FLOPS) {
    super(config, placed, T === 1 ? Infinity : submitFlops, choice);
    this.T = T;
    this.offset = offset;
    this.capacity = capacity;
    this.keep = keep;
  }

  /**
   * The binding for this forward's rows [T,width] of an intermediate, kept or scratch.
   * @param {string} name @param {number} layer @param {number} width
   */
  rows(name, layer, width) {
    if (!this.keep.has(name)) return this.buffer(name, this.T * width);
    const buffer = this.buffer(`${name}.${layer}`, this.capacity * width);
    const start = 4 * width * this.offset;
    return start === 0 ? buffer : `${buffer}@${start}+${padded(4 * width * this.T)}`;
  }

  /** Token ids to resid.0. */
  embed() {
    const { T, config } = this;
    const ids = this.buffer("ids", T);
    const out = this.rows("resid", 0, config.D);
    const { pieces, fmt } = this.tensor(EMBED);
    for (const { buffer, row0, rows, scales } of pieces) {
      this.emit(ops.embedding({ ids, table: buffer, scales, out, T, D: config.D, v0: row0, v_count: rows, fmt }), T * config.D);
    }
  }

  /** One block: resid.l to resid.l+1. @param {number} layer */
  layer(layer) {
    const { T } = this;
    const { D, F } = this.config;
    const at = `model.layers.${layer}.`;
    const x = this.rows("resid", layer, D);
    const normed = this.norm(x, at + "input_layernorm.weight", this.rows("attn_norm", layer, D), T, D);
    const z = this.attention(layer, normed);
    const mid = this.addProduct(layer, "attn_out", at + "self_attn.o_proj", z, x, this.rows("resid_mid", layer, D));
    const norm = this.norm(mid, at + "post_attention_layernorm.weight", this.rows("mlp_norm", layer, D), T, D);
    const gate_up = this.product(norm, stacked(at, "mlp.gate_up_proj"), this.rows("gate_up", layer, 2 * F), T);
    const act = this.rows("act", layer, F);
    this.emit(ops.swiglu({ gate_up, out: act, T, F }), 8 * T * F);
    this.addProduct(layer, "mlp_out", at + "mlp.down_proj", act, mid, this.rows("resid", layer + 1, D));
  }

  /**
   * The residual stream plus a product. If the product itself is to be kept, it is made once more by itself.
   * @param {number} layer @param {string} name @param {string} tensor
   * @param {string} x @param {string} residual @param {string} out
   */
  addProduct(layer, name, tensor, x, residual, out) {
    const weight = [tensor + ".weight"];
    if (this.keep.has(name)) this.product(x, weight, this.rows(name, layer, this.config.D), this.T);
    return this.product(x, weight, out, this.T, residual);
  }

  /**
   * Normed residual stream to z: projections, QK-norm, rotation, caches, attention.
   * @param {number} layer @param {string} x
   */
  attention(layer, x) {
    const { T, capacity, offset } = this;
    const { N, K, H, qk_norm, rotates } = this.config;
    const at = `model.layers.${layer}.`;
    const [heads, wide] = [N + K, (N + 2 * K) * H];
    const qkv = this.product(x, stacked(at, "self_attn.qkv_proj"), this.rows("qkv", layer, wide), T);
    let [qk, stride] = [qkv, wide];
    if (qk_norm) {
      [qk, stride] = [this.rows("qk_normed", layer, heads * H), heads * H];
      this.norm(qkv, at + "self_attn.qk_norm.weight", qk, T * heads, H, { heads, N, stride: wide });
    }
    const q = this.rows("q", layer, N * H);
    const k = this.buffer(`k.${layer}`, capacity * K * H);
    const v = this.buffer(`v.${layer}`, capacity * K * H);
    const half = (T * H) / 2;
    const tables = { cos: this.buffer("cos", half), sin: this.buffer("sin", half) };
    const how = { T, N, K, H, stride, out_row0: offset, rotate: rotates[layer] };
    this.emit(ops.rope({ x: qk, qkv, ...tables, q, k, v, ...how }), 6 * half * heads);
    return this.attend(layer, q, k, v);
  }

  /**
   * FlashAttention of T queries over the offset + T keys that exist by now.
   * @param {number} layer @param {string} q @param {string} k @param {string} v
   */
  attend(layer, q, k, v) {
    const { T, offset, capacity } = this;
    const { N, K, H, windows, scale } = this.config;
    const S = offset + T;
    const o = this.rows("z", layer, N * H);
    const whole = this.keep.has("lse") && T === capacity;
    const lse = this.buffer(whole ? `lse.${layer}` : "lse", N * T);
    const scratchBytes = ops.attentionScratch({ T, S: capacity, N, H });
    const scratch = scratchBytes ? this.buffer("attention_part", scratchBytes / 4) : ops.NONE;
    const sizes = { T, S, N, K, H, offset, window: windows[layer], sinks: 0, scale };
    const variant = this.choice[ops.attentionOperation(T)];
    const most_flops = T > 1 ? this.submitFlops : null;
    const dispatches = ops.attention({ q, k, v, o, lse, scratch, variant, most_flops, ...sizes });
    const [flops, parts] = [4 * T * S * N * H, dispatches.filter(({ params }) => "group0" in params)];
    if (!parts.length) this.emit(dispatches, flops); // one token's merge goes with what it merges
    const images = dispatches.slice(0, -parts.length); // if any: they serve whoever attends last
    for (const part of parts) this.emit(part, Math.floor(flops / parts.length), images);
    if (this.keep.has("lse") && !whole) {
      // lse is [N,T]: a chunk's rows go to N places of the kept buffer
      const target = this.buffer(`lse.${layer}`, N * capacity);
      for (let n = 0; n < N; n++) {
        this.copy({ source: lse, source_start: 4 * n * T, target, target_start: 4 * (n * capacity + offset), bytes: 4 * T });
      }
    }
    return o;
  }
}

/**
 * Names of the weights of a layer (`at`) that STACKS puts together.
 * @param {string} at @param {string} together
 */
const stacked = (at, together) => STACKS[together].map((part) => `${at}${part}.weight`);

/** The name of a weight's bias. @param {string} tensor */
const biasOf = (tensor) => tensor.replace(/\.weight$/, ".bias");

/**
 * Plan T tokens at positions offset .. offset+T-1. logits: also those of the last token, in `logits` [1,V]; temperature:
 * what nextToken prepares of those, nothing if null.
 * @param {Config} config @param {Layout} placed
 * @param {{T: number, offset: number, capacity: number, keep: Set<string>, logits?: boolean, temperature?: number | null,
 *   choice?: Choice, submit_flops?: number}} options
 */
export function forward(config, placed, { T, offset, capacity, keep, logits = false, temperature = null, choice, submit_flops }) {
  const plan = new Forward(config, placed, T, offset, capacity, keep, choice, submit_flops);
  plan.embed();
  for (let layer = 0; layer < config.L; layer++) plan.layer(layer);
  if (logits) {
    let x = plan.rows("resid", config.L, config.D);
    if (T > 1) {
      const [source, part] = x.split("@");
      const source_start = (part ? parseInt(part) : 0) + 4 * config.D * (T - 1);
      x = plan.buffer("last", config.D);
      plan.copy({ source, source_start, target: x, target_start: 0, bytes: 4 * config.D });
    }
    const row = plan.logits(x, 1);
    if (temperature !== null) nextToken(plan, row, temperature);
  }
  return plan;
}

/**
 * Plan a whole prompt as forwards of at most `chunk` tokens, fewer behind many; logits, temperature: of the last token.
 * @param {Config} config @param {Layout} placed
 * @param {{T: number, capacity: number, keep: Set<string>, logits?: boolean, temperature?: number | null, chunk?: number,
 *   choice?: Choice, submit_flops?: number}} options submit_flops: work of one submit
 */
export function prefill(config, placed, { T, capacity, keep, logits = false, chunk = CHUNK_TOKENS, ...how }) {
  return chunks(T, chunk, 4 * config.N * config.H, how.submit_flops ?? SUBMIT_FLOPS).map(([offset, count]) => {
    const last = offset + count === T;
    return forward(config, placed, { T: count, offset, capacity, keep, logits: logits && last, ...how });
  });
}

/**
 * The buffers of several plans that run one after the other: each name with its largest size in bytes.
 * @param {Builder[]} plans
 */
export function mergeBuffers(plans) {
  /** @type {Map<string, number>} */
  const merged = new Map();
  for (const plan of plans) {
    for (const [name, size] of plan.buffers) merged.set(name, Math.max(merged.get(name) ?? 0, size));
  }
  return merged;
}
