/**
 * SmolLM2 on onnxruntime-web: prefill of a prompt and greedy decoding against the cache it gives back.
 * @module
 */
import { median } from "/static/bench/ceilings.js";
import { openOrt } from "./ort.js";

const [L, K, H] = [30, 3, 64];

/** @type {Promise<any> | undefined} */
let opened;

/** @param {Float32Array} logits */
function best(logits) {
  let top = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[top]) top = i;
  return top;
}

/**
 * Time one model after a first, uncounted prefill.
 * @param {{kind: string, model: string, ids: number[], tokens: number}} asked
 * @returns {Promise<{prefill_ms: number, decode_ms: number, generated: number[], logits: number[]}>} logits after the prompt
 */
export async function measureModel({ kind, model, ids, tokens }) {
  const ort = await (opened ??= openOrt(kind));
  const session = await ort.session(model);
  await step(ort, session, ids, 0, null); // compiles
  const start = performance.now();
  let state = await step(ort, session, ids, 0, null);
  const prefill_ms = performance.now() - start;
  const logits = [...state.logits];
  const generated = [best(state.logits)];
  /** @type {number[]} */
  const each = [];
  for (let i = 0; i < tokens; i++) {
    const from = performance.now();
    const next = await step(ort, session, [generated[i]], ids.length + i, state.caches);
    each.push(performance.now() - from);
    generated.push(best(next.logits));
    state = next;
  }
  return { prefill_ms, decode_ms: median(each.slice(1)), generated, logits };
}

/** One forward; the caches it is given are freed. @param {any} ort @param {any} session @param {number[]} ids @param {number} past @param {Record<string, any> | null} caches */
async function step(ort, session, ids, past, caches) {
  const total = past + ids.length;
  /** @type {Record<string, any>} */
  const feeds = {
    ids: new ort.ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
    seqlens: ort.whole(total - 1, [1]),
    total: ort.whole(total, []),
  };
  for (let layer = 0; layer < L; layer++)
    for (const name of ["key", "value"])
      feeds[`past.${layer}.${name}`] =
        caches?.[`present.${layer}.${name}`] ?? new ort.ort.Tensor("float32", new Float32Array(0), [1, K, 0, H]);
  const { logits, ...presents } = await session.run(feeds);
  const found = Float32Array.from(await logits.getData());
  logits.dispose();
  for (const cache of Object.values(caches ?? {})) cache.dispose();
  return { logits: found, caches: presents };
}
