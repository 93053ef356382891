/**
 * Writing on from a prompt against a KV cache, one pass a token.
 *
 * Greedy: the device chooses, and the next step reads the choice where it stands, so steps are submitted ahead and four words
 * come back for each. Drawn: the lists of the likeliest tokens come back (20 KB), and the row only where they cannot tell.
 * Either way the text is the one that whole rows of logits give. Mirrors webgpu/generate.py, which is greedy.
 * @module
 */
import { candidatesOf, sample, sampleFrom, seeded } from "../lib/sampler.js";
import { LISTS, LIST_WORDS, TOKEN_WORDS } from "./next_token.js";
import { CACHE, forward, prefill } from "./plan.js";
import { Replay } from "./replay.js";

/** @typedef {import("./buffers.js").Buffers} Buffers */
/** @typedef {import("./runtime.js").Model} Model */
/** @typedef {{id: number, logprob: number}} Token */
/**
 * @typedef {{maxTokens: number, temperature?: number, topK?: number, topP?: number, seed?: number,
 *   stopIds?: Iterable<number>, signal?: AbortSignal}} Wanted
 */

/** Steps are submitted ahead for about this long: a page learns late, by some ms, that one has run. */
const AHEAD_MS = 20;
const MOST_AHEAD = 4;

/** One text being written: its buffers and what is submitted. */
class Writing {
  /** @param {Model} model @param {ArrayLike<number>} ids @param {Wanted} wanted */
  constructor(model, ids, { maxTokens, temperature = 0, signal }) {
    this.model = model;
    this.ids = ids;
    this.signal = signal;
    this.capacity = ids.length + maxTokens;
    this.fixed = { capacity: this.capacity, keep: CACHE, logits: true, temperature, choice: model.choice };
    this.replay = new Replay(model.kernels);
  }

  /** The prompt; what `read` gives afterwards is about the token after it. */
  async begin() {
    const { config, placed } = this.model;
    const plans = prefill(config, placed, { T: this.ids.length, ...this.fixed, ...this.model.budget });
    this.buffers = await this.model.allocate(plans, this.capacity);
    await this.model.runForwards(plans, this.ids, this.buffers, this.ids.length, { signal: this.signal });
  }

  /**
   * Submit the step of one token; does not wait.
   * @param {number} position @param {number} [id] the token; what the device chose if left out
   */
  async step(position, id) {
    const { config, placed } = this.model;
    const plan = forward(config, placed, { T: 1, offset: position, ...this.fixed });
    const buffers = /** @type {Buffers} */ (this.buffers);
    buffers.make(plan.buffers);
    this.model.give(plan, buffers, position + 1, id === undefined ? null : [id]);
    await this.model.submit(plan, buffers, this.replay);
  }

  /** @param {string} name @param {number} words */
  async read(name, words) {
    const [bytes] = await /** @type {Buffers} */ (this.buffers).read([[name, words]]);
    return bytes;
  }

  destroy() {
    this.replay.destroy();
    this.buffers?.destroy();
  }
}

/**
 * Continue a prompt. Temperature 0 is greedy; a stop id is given out and ends it.
 * @param {Model} model @param {ArrayLike<number>} ids @param {Wanted} wanted @returns {AsyncGenerator<Token>}
 */
export async function* generate(model, ids, wanted) {
  const stops = new Set(wanted.stopIds ?? []);
  const writing = new Writing(model, ids, wanted);
  try {
    await writing.begin();
    for await (const token of wanted.temperature ? drawn(writing, wanted) : greedy(writing)) {
      wanted.signal?.throwIfAborted();
      yield token;
      if (stops.has(token.id)) return;
    }
  } finally {
    writing.destroy();
  }
}

/** Tokens that the device chooses. @param {Writing} writing @returns {AsyncGenerator<Token>} */
async function* greedy(writing) {
  const first = writing.ids.length;
  const told = () => {
    const token = writing.read("token", TOKEN_WORDS).then(tokenOf);
    token.catch(() => {}); // awaited below; a text that ends early does not ask
    return token;
  };
  const reads = [told()];
  let [next, ahead, last] = [first, 1, performance.now()];
  for (let position = first; position < writing.capacity; position++) {
    for (; next < Math.min(position + ahead, writing.capacity - 1); next++) {
      await writing.step(next);
      reads.push(told());
    }
    yield await /** @type {Promise<Token>} */ (reads.shift());
    const now = performance.now();
    ahead = Math.max(1, Math.min(MOST_AHEAD, Math.floor(AHEAD_MS / (now - last))));
    last = now;
  }
}

/** @param {ArrayBuffer} bytes as webgpu/choose.wgsl writes them @returns {Token} */
function tokenOf(bytes) {
  const [, logit, lse] = new Float32Array(bytes);
  return { id: new Uint32Array(bytes)[0], logprob: logit - lse };
}

/** Tokens drawn here. @param {Writing} writing @param {Wanted} wanted @returns {AsyncGenerator<Token>} */
async function* drawn(writing, { seed = 0, temperature = 1, ...more }) {
  const sampling = { temperature, ...more };
  const random = seeded(seed);
  for (let position = writing.ids.length; ; position++) {
    const candidates = candidatesOf(await writing.read("best", LISTS * LIST_WORDS), temperature);
    const point = random();
    const row = async () => new Float32Array(await writing.read("logits", writing.model.config.V));
    const token = sampleFrom(candidates, sampling, point) ?? sample(await row(), sampling, () => point);
    yield token;
    if (position + 1 === writing.capacity) return;
    await writing.step(position, token.id);
  }
}
