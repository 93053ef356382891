/**
 * What a checkpoint's config.json asks for, as the sizes and switches the kernels run with.
 *
 * Families: llama, qwen2, qwen3, mistral, smollm3, with the defaults of Hugging Face transformers for absent fields. A
 * model is run exactly or refused with one sentence that names the field. Mirrors webgpu/config.py: same verdict, same words.
 * @module
 */
import { SPANS, UnsupportedConfig, flag, get, isWhole, number, optionalWhole, refuseUnless, whole } from "./config_fields.js";
import { parseRope } from "./rope.js";

/** @typedef {import("./config_fields.js").Raw} Raw */
/**
 * Sizes by the notation of the house, switches, and per layer: window (0 = none) and whether q and k are rotated.
 * @typedef {{family: string, V: number, D: number, F: number, L: number, N: number, K: number, H: number, eps: number,
 *   tied: boolean, max_tokens: number, qk_norm: boolean, qkv_bias: boolean, o_bias: boolean, mlp_bias: boolean,
 *   windows: number[], rotates: boolean[], rope: import("./rope.js").Rope, scale: number}} Config
 */

export const FAMILIES = new Map([
  ["llama", "LlamaForCausalLM"],
  ["qwen2", "Qwen2ForCausalLM"],
  ["qwen3", "Qwen3ForCausalLM"],
  ["mistral", "MistralForCausalLM"],
  ["smollm3", "SmolLM3ForCausalLM"],
]);

/**
 * Fields that would change the numbers, with the values that leave them alone (null and absent always do).
 * @type {[string, unknown[]][]}
 */
const NEUTRAL = [
  ["hidden_act", ["silu"]],
  ["quantization_config", []],
  ["partial_rotary_factor", [1]],
  ["rotary_pct", [1]],
  ["rope_interleaved", [false]],
  ["num_experts", [0]],
  ["num_local_experts", [0]],
  ["n_routed_experts", [0]],
  ["attn_logit_softcapping", []],
  ["final_logit_softcapping", []],
  ["query_pre_attn_scalar", []],
  ["attention_multiplier", []],
  ["embedding_multiplier", [1]],
  ["residual_multiplier", [1]],
  ["logits_scaling", [1]],
  ["logit_scale", [1]],
  ["clip_qkv", []],
  ["use_qk_norm", [false]],
  ["attention_chunk_size", []],
  ["is_causal", [true]],
  ["use_bidirectional_attention", [false]],
  ["is_encoder_decoder", [false]],
  ["add_cross_attention", [false]],
];

/**
 * Read a parsed config.json. Throws UnsupportedConfig naming the first field that is not run exactly.
 * @param {unknown} given @returns {Config}
 */
export function parseConfig(given) {
  if (given === null || typeof given !== "object" || Array.isArray(given)) {
    throw new UnsupportedConfig("object", given, "one JSON object");
  }
  const raw = /** @type {Raw} */ (given);
  const family = checkFamily(raw);
  for (const [field, neutral] of NEUTRAL) refuseUnless(raw, field, neutral);
  const D = whole(raw, "hidden_size", 65536);
  const N = whole(raw, "num_attention_heads", 1024);
  const K = kvHeads(raw, family, N);
  const H = headDim(raw, family, D, N);
  const L = whole(raw, "num_hidden_layers", 512);
  const rotates = ropeLayers(raw, family, L);
  const rope = parseRope(raw, family);
  const bias = biases(raw, family);
  const stretch = rope.type === "dynamic" ? Math.max(rope.factor, 1) : 1;
  return {
    family,
    V: whole(raw, "vocab_size", 2 ** 20),
    D,
    F: whole(raw, "intermediate_size", 2 ** 20),
    L,
    N,
    K,
    H,
    eps: number(raw, "rms_norm_eps", SPANS.EPSILON, 1e-6),
    tied: flag(raw, "tie_word_embeddings", family === "smollm3"),
    max_tokens: Math.floor(rope.positions * stretch),
    qk_norm: family === "qwen3",
    ...bias,
    windows: layerWindows(raw, family, L, rotates),
    rotates,
    rope,
    scale: 1 / Math.sqrt(H),
  };
}

/**
 * The model_type, once it and `architectures` (where present) name a causal language model of a known family.
 * @param {Raw} raw
 */
function checkFamily(raw) {
  const family = get(raw, "model_type");
  const name = typeof family === "string" ? FAMILIES.get(family) : undefined;
  if (name === undefined) throw new UnsupportedConfig("model_type", family, [...FAMILIES.keys()].join(", "));
  const architectures = get(raw, "architectures");
  if (architectures != null && !(Array.isArray(architectures) && architectures.length === 1 && architectures[0] === name)) {
    const first = Array.isArray(architectures) && architectures.length ? architectures[0] : architectures;
    throw new UnsupportedConfig("architectures", first, name);
  }
  return /** @type {string} */ (family);
}

/**
 * K: null means N for every family, an absent field only for llama (the others have fixed defaults: refused).
 * @param {Raw} raw @param {string} family @param {number} N
 */
function kvHeads(raw, family, N) {
  const every = family === "llama" || Object.hasOwn(raw, "num_key_value_heads");
  const K = whole(raw, "num_key_value_heads", N, every ? N : null);
  if (N % K) throw new UnsupportedConfig("num_key_value_heads", K, `a divisor of num_attention_heads = ${N}`);
  return K;
}

/**
 * H: given, or D / N. Qwen3 alone has a fixed default (128).
 * @param {Raw} raw @param {string} family @param {number} D @param {number} N
 */
function headDim(raw, family, D, N) {
  const fixed = family === "qwen3" && !Object.hasOwn(raw, "head_dim");
  const H = get(raw, "head_dim") ?? (fixed ? 128 : D / N);
  if (!isWhole(H) || H < 4 || H > 256 || H % 4) {
    throw new UnsupportedConfig("head_dim", H, "multiples of 4 from 4 to 256");
  }
  return H;
}

/**
 * Per layer, whether q and k are rotated. Only SmolLM3 leaves layers out (no_rope_layers: 1 = rotates).
 * @param {Raw} raw @param {string} family @param {number} L @returns {boolean[]}
 */
function ropeLayers(raw, family, L) {
  const listed = get(raw, "no_rope_layers");
  if (family !== "smollm3") {
    refuseUnless(raw, "no_rope_layers", []);
    return Array(L).fill(true);
  }
  if (listed == null) {
    const interval = whole(raw, "no_rope_layer_interval", 2 ** 20, 4);
    return Array.from({ length: L }, (_, layer) => (layer + 1) % interval !== 0);
  }
  if (!Array.isArray(listed) || listed.length < L || listed.some((x) => x !== 0 && x !== 1)) {
    throw new UnsupportedConfig("no_rope_layers", listed, `a list of at least ${L} zeros and ones`);
  }
  return listed.slice(0, L).map((x) => x === 1);
}

/**
 * Per layer, how many keys a query sees counting itself; 0 = all before it.
 * @param {Raw} raw @param {string} family @param {number} L @param {boolean[]} rotates
 */
function layerWindows(raw, family, L, rotates) {
  /** @type {number | null} */
  let window = null;
  let slides = Array(L).fill(false);
  if (family === "mistral") {
    window = optionalWhole(raw, "sliding_window", 4096);
    slides = Array(L).fill(true);
  } else if (family === "llama") {
    refuseUnless(raw, "sliding_window", []);
  } else {
    if (flag(raw, "use_sliding_window", false)) {
      window = optionalWhole(raw, "sliding_window", family === "smollm3" ? null : 4096);
    }
    slides = rotates.map((rotate, i) => (family === "smollm3" ? !rotate : i >= firstWindowLayer(raw)));
  }
  slides = slides.map((slide) => slide && window !== null);
  const types = get(raw, "layer_types");
  if (types != null) {
    const names = window === null ? ["full_attention"] : ["full_attention", "sliding_attention"];
    if (!Array.isArray(types) || types.length !== L || types.some((type) => !names.includes(type))) {
      throw new UnsupportedConfig("layer_types", types, `a list of ${L} entries, each ${names.join(" or ")},`);
    }
    const listed = types.map((type) => type === "sliding_attention");
    if (family === "mistral" && listed.some((slide, i) => slide !== slides[i])) {
      throw new UnsupportedConfig("layer_types", types, "the one window of sliding_window in every layer");
    }
    slides = listed;
  }
  return slides.map((slide) => (slide && window !== null ? window : 0));
}

/** Qwen: layers below max_window_layers see everything. @param {Raw} raw */
function firstWindowLayer(raw) {
  return get(raw, "max_window_layers") === 0 ? 0 : whole(raw, "max_window_layers", 2 ** 20, 28);
}

/**
 * Which products add a bias: q, k and v; o; the feed-forward three.
 * @param {Raw} raw @param {string} family
 */
function biases(raw, family) {
  if (family === "qwen2") {
    refuseUnless(raw, "attention_bias", [true]);
    refuseUnless(raw, "mlp_bias", [false]);
    return { qkv_bias: true, o_bias: false, mlp_bias: false };
  }
  if (family === "mistral") refuseUnless(raw, "attention_bias", [false]);
  const attention = flag(raw, "attention_bias", false);
  if (family === "qwen3" || family === "mistral") refuseUnless(raw, "mlp_bias", [false]);
  return { qkv_bias: attention, o_bias: attention, mlp_bias: flag(raw, "mlp_bias", false) };
}
