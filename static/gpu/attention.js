/**
 * Attention as dispatches: many queries stream the keys, one query splits them. Mirrors webgpu/attention.py.
 *
 * `variant` names one of variants.js; without it the first, which runs everywhere.
 * @module
 */
import { MAX_IMAGE, MAX_TURNS, NEAREST, NONE, UnsupportedShape, ceil, checkGroups, fold, headDim } from "./dispatch.js";
import { pick } from "./variants.js";

/** @typedef {import("./dispatch.js").Dispatch} Dispatch */
/** @typedef {{T: number, S: number, N: number, K: number, offset: number, window: number, sinks: number, scale: number}} Common */

const HEAD_SLICE = 32;
const PACKED_ROWS = 64;
const DECODE_SPAN = 64;

/** Which operation of variants.js attends with T queries. @param {number} T */
export function attentionOperation(T) {
  return T === 1 ? "decode" : "attention";
}

/**
 * The name of the variant that will attend; what does not fit into an image leaves texels to the first.
 * @param {{T: number, S: number, N: number, H: number}} sizes @param {string} [variant]
 */
function attentionVariant({ T, S, N, H }, variant) {
  const picked = pick(attentionOperation(T), variant, { H, S });
  const fits = Math.max(T, S, Math.floor((N * H) / 4)) <= MAX_IMAGE;
  return fits || picked !== "texels" ? picked : pick(attentionOperation(T), null, {});
}

/**
 * The kernel that attends with T queries over S keys.
 * @param {{T: number, S: number, N: number, H: number}} sizes @param {string} [variant]
 */
export function attentionKernel({ T, S, N, H }, variant) {
  const name = attentionVariant({ T, S, N, H }, variant);
  return { split: "attention_decode", once: "attention_split" }[name] ?? `attention_${name}`;
}

/** Loop turns of one invocation that streams S keys, the most of any variant. @param {number} S @param {number} H */
export function attentionTurns(S, H) {
  return Math.max(ceil(S, 4) * (1 + ceil(H, 16)) + 36, S + 16);
}

/**
 * Bytes of the `scratch` buffer that attention needs, whatever the variant (0 unless T = 1).
 * @param {{T: number, S: number, N: number, H: number}} sizes
 */
export function attentionScratch({ T, S, N, H }) {
  return attentionOperation(T) === "decode" ? T * N * ceil(S, DECODE_SPAN) * (H + 4) * 4 : 0;
}

/**
 * Attention of q [T,N,H] over k and v [S,K,H] -> o [T,N,H], lse [N,T] natural log. Query t stands at offset + t;
 * window 0 = all earlier keys; sinks = first keys always seen. T = 1 splits the keys and needs `scratch`.
 * @param {{q: string, k: string, v: string, o: string, lse: string, T: number, S: number, N: number, K: number,
 *   H: number, offset: number, window: number, sinks: number, scale: number, scratch?: string, variant?: string,
 *   most_flops?: number | null}} given most_flops: about what one dispatch does
 * @returns {Dispatch[]}
 */
export function attention({ q, k, v, o, lse, T, S, N, K, H, offset, window, sinks, scale, ...how }) {
  const { scratch = NONE, variant, most_flops = null } = how;
  checkGroups(N, K);
  headDim(H);
  const name = attentionVariant({ T, S, N, H }, variant);
  const common = { T, S, N, K, offset, window, sinks, scale };
  if (attentionOperation(T) === "decode" && name !== "plain") {
    return split(name, common, H, { q, k, v, part: scratch }, { part: scratch, o, lse });
  }
  const bindings = { q, k, v, o, lse };
  return name === "texels" ? texels(common, H, bindings, most_flops) : stream(name, common, H, bindings, most_flops);
}

/**
 * Queries, keys and values made into images, the same three for every layer, and attention that reads those.
 * @param {Common} common @param {number} H @param {Record<string, string>} bindings @param {number | null} mostFlops
 * @returns {Dispatch[]}
 */
function texels(common, H, bindings, mostFlops) {
  const { T, S, N, K } = common;
  const [q_width, width] = [N, K].map((heads) => Math.floor((heads * H) / 4));
  const q_image = `q_image:${q_width}*${T}`;
  const [k_image, v_image] = ["k", "v"].map((name) => `${name}_image:${width}*${S}`);
  const { q, k, v } = bindings;
  const made = {
    kernel: "attention_images",
    overrides: {},
    params: { T, q_width, S, width },
    grid: fold(Math.max(T, S)),
    bindings: { q, k, v, q_image, k_image, v_image },
  };
  const images = { q: q_image, k: k_image, v: v_image, [NEAREST]: NEAREST };
  return [made, ...stream("texels", common, H, { ...bindings, ...images }, mostFlops)];
}

/**
 * @param {string} name @param {Common} common @param {number} H @param {Record<string, string>} bindings
 * @param {number | null} mostFlops @returns {Dispatch[]}
 */
function stream(name, common, H, bindings, mostFlops) {
  const { T, S, N, K } = common;
  if (attentionTurns(S, H) >= MAX_TURNS) {
    throw new UnsupportedShape(`${S} keys of head dimension ${H} take over ${MAX_TURNS} loop turns; use a shorter text.`);
  }
  let groups = K * ceil(Math.floor((T * N) / K), PACKED_ROWS);
  if (name === "plain") groups = ceil(Math.floor((T * N * H) / 4), 16);
  if (name === "fa2") groups = ceil(ceil(T, 4) * ceil(H, HEAD_SLICE) * N, 16);
  // Whole workgroups, whose rows stay where they are: a row's sums depend on its place among those that attend together.
  const fit = mostFlops === null ? groups : Math.floor((mostFlops * groups) / (4 * T * S * N * H));
  const step = ceil(groups, ceil(groups, Math.max(1, Math.min(groups, fit))));
  return Array.from({ length: ceil(groups, step) }, (_, i) => {
    const params = { ...common, group0: i * step };
    return { kernel: `attention_${name}`, overrides: { H }, params, grid: fold(Math.min(step, groups - i * step)), bindings };
  });
}

/**
 * @param {string} name @param {Common} common @param {number} H
 * @param {Record<string, string>} bindings @param {Record<string, string>} mergeBindings @returns {Dispatch[]}
 */
function split(name, common, H, bindings, mergeBindings) {
  const { T, S, N, K } = common;
  const splits = ceil(S, DECODE_SPAN);
  const rows = K * ceil(Math.floor((T * N) / K), 4);
  const [kernel, groups] =
    name === "once"
      ? ["attention_split", ceil(rows * splits, 8)]
      : ["attention_decode", ceil(rows * ceil(H, HEAD_SLICE) * splits, 16)];
  const params = { ...common, span: DECODE_SPAN, splits };
  const mergeGrid = fold(ceil(Math.floor((T * N * H) / 4), 16));
  return [
    { kernel, overrides: { H }, params, grid: fold(groups), bindings },
    { kernel: "attention_merge", overrides: { H }, params: { T, N, splits }, grid: mergeGrid, bindings: mergeBindings },
  ];
}
