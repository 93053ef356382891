/**
 * A whole model timed: prefill of a prompt, greedy decoding, thumbnails of every head. Its check is the caller's: what was
 * computed comes back with the times, and an oracle says whether it is right.
 * @module
 */
import { median, timed } from "./ceilings.js";
import { logSumExp } from "./reference.js";

const REPEATS = 3;

/** A prompt of T ids that depends on nothing but the vocabulary. @param {number} T @param {number} V */
export function someIds(T, V) {
  return Array.from({ length: T }, (_, i) => (i * 7919 + 31) % V);
}

/**
 * How far generated tokens are from an oracle's logits [R,V] at the positions they were taken from, in nats: the largest
 * difference of a log-probability, or how far a token was behind the oracle's best one.
 * @param {number[]} generated @param {number[]} logprobs @param {Float32Array} logits @param {number} V
 */
export function judgeTokens(generated, logprobs, logits, V) {
  let worst = 0;
  generated.forEach((id, i) => {
    const row = Float64Array.from(logits.subarray(i * V, (i + 1) * V));
    const lse = logSumExp(row);
    const top = row.reduce((most, value) => Math.max(most, value), -Infinity);
    const off = Math.max(Math.abs(row[id] - lse - logprobs[i]), top - row[id]);
    worst = off <= worst ? worst : Number.isNaN(off) ? Infinity : off;
  });
  return worst;
}

/**
 * Generate (this also compiles), then time prefill and decoding; a token's time is from one token to the next.
 * @param {{run(ids: number[]): Promise<any>,
 *   generate: (ids: number[], options: any) => AsyncIterable<{id: number, logprob: number}>}} model
 * @param {number[]} ids @param {number} tokens
 * @returns {Promise<{prefill_ms: number, prefill_tokens_s: number, decode_ms: number, decode_tokens_s: number,
 *   generated: number[], logprobs: number[], logits: Float32Array}>}
 */
export async function measureModel(model, ids, tokens) {
  /** @type {number[]} */
  const generated = [];
  /** @type {number[]} */
  const logprobs = [];
  for await (const { id, logprob } of model.generate(ids, { maxTokens: 2 })) {
    generated.push(id);
    logprobs.push(logprob);
  }
  const trace = await model.run(ids);
  const logits = await trace.logits(ids.length - 1);
  trace.destroy();
  /** @type {number[]} */
  const prefills = [];
  for (let i = 0; i < REPEATS; i++)
    prefills.push(await timed(async () => (await model.run(ids)).destroy()));
  /** @type {number[]} */
  const each = [];
  let last = 0;
  generated.length = logprobs.length = 0;
  for await (const { id, logprob } of model.generate(ids, { maxTokens: tokens + 1 })) {
    const now = performance.now();
    if (last) each.push(now - last);
    last = now;
    generated.push(id);
    logprobs.push(logprob);
  }
  const [prefill_ms, decode_ms] = [median(prefills), median(each)];
  const [prefill_tokens_s, decode_tokens_s] = [(1000 * ids.length) / prefill_ms, 1000 / decode_ms];
  return { prefill_ms, prefill_tokens_s, decode_ms, decode_tokens_s, generated, logprobs, logits };
}
