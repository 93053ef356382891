/**
 * Rotary position embedding (Su et al. 2021), half-split as in Hugging Face checkpoints: which angles, and their tables.
 *
 *     angle[p, i] = p * frequency[i]     frequency[i] = theta^(-2i/H), i < H/2, then stretched by the scaling in use
 *     cos, sin [positions, H/2] f32      times the attention factor, which only YaRN sets
 * Angles in double precision, rounded to f32 once. Mirrors webgpu/rope.py, where the scalings are described.
 * @module
 */
import { SPANS, UnsupportedConfig, flag, get, number, refuseUnless, whole } from "./config_fields.js";

/** @typedef {import("./config_fields.js").Raw} Raw */
/**
 * `type` and its numbers. positions: max_position_embeddings; original: the length before scaling; in tokens.
 * @typedef {{type: string, theta: number, positions: number, factor: number, low: number, high: number, original: number,
 *   attention_factor: number, beta_fast: number, beta_slow: number, truncate: boolean}} Rope
 */

const YARN_KEYS = ["attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"];
/** @type {Map<string, string[]>} */
const ROPE_KEYS = new Map([
  ["default", []],
  ["linear", ["factor"]],
  ["dynamic", ["factor"]],
  ["llama3", ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]],
  ["yarn", ["factor", "original_max_position_embeddings", ...YARN_KEYS]],
]);

/** Whether a value is more than null, false, 0, "" or an empty container. @param {unknown} value */
function filled(value) {
  return value !== null && typeof value === "object" ? Object.keys(value).length > 0 : Boolean(value);
}

/**
 * RoPE of a config: the nested fields win over `rope_theta` at the top level, as transformers reads them.
 * @param {Raw} raw @param {string} family @returns {Rope}
 */
export function parseRope(raw, family) {
  const name = filled(get(raw, "rope_scaling")) ? "rope_scaling" : "rope_parameters";
  const value = get(raw, name) ?? {};
  if (typeof value !== "object" || Array.isArray(value)) throw new UnsupportedConfig(name, value, "an object");
  const given = /** @type {Raw} */ (value);
  const kind = get(given, "rope_type") ?? get(given, "type") ?? "default";
  const own = typeof kind === "string" ? ROPE_KEYS.get(kind) : undefined;
  if (own === undefined) throw new UnsupportedConfig(`${name}.rope_type`, kind, [...ROPE_KEYS.keys()].join(", "));
  refuseUnless(given, "partial_rotary_factor", [1], `${name}.`);
  refuseStrangers(given, name, /** @type {string} */ (kind), own);
  const positions = whole(raw, "max_position_embeddings", 2 ** 24);
  const theta = number(raw, "rope_theta", SPANS.BASE, family === "smollm3" ? 2_000_000 : 10_000);
  const plain = { factor: 1, low: 1, high: 1, original: 0, attention_factor: 1, beta_fast: 32, beta_slow: 1, truncate: true };
  const type = /** @type {string} */ (kind);
  const rope = { type, theta: number(given, "rope_theta", SPANS.BASE, theta, `${name}.`), positions, ...plain };
  if (type === "linear" || type === "dynamic") rope.factor = number(given, "factor", SPANS.FACTOR, null, `${name}.`);
  if (type === "llama3" || type === "yarn") {
    const inner = whole(given, "original_max_position_embeddings", 2 ** 24, positions, `${name}.`);
    rope.original = whole(raw, "original_max_position_embeddings", 2 ** 24, inner);
    rope.factor = number(given, "factor", SPANS.FACTOR, type === "yarn" ? positions / rope.original : null, `${name}.`);
  }
  if (type === "llama3") {
    rope.low = number(given, "low_freq_factor", SPANS.FACTOR, null, `${name}.`);
    rope.high = number(given, "high_freq_factor", SPANS.FACTOR, null, `${name}.`);
    if (rope.high <= rope.low) {
      throw new UnsupportedConfig(`${name}.high_freq_factor`, rope.high, "a number above low_freq_factor");
    }
  }
  return type === "yarn" ? { ...rope, ...yarnFields(given, rope.factor, `${name}.`) } : rope;
}

/**
 * Refuse a nested field that this rope_type does not have.
 * @param {Raw} given @param {string} name @param {string} kind @param {string[]} own
 */
function refuseStrangers(given, name, kind, own) {
  const known = ["rope_type", "type", "rope_theta", "partial_rotary_factor", ...own];
  for (const key of Object.keys(given).sort()) {
    if (known.includes(key) || given[key] === null) continue;
    const field = /^[A-Za-z_]\w{0,39}$/.test(key) ? key : "field with a strange name";
    throw new UnsupportedConfig(`${name}.${field}`, given[key], `no such field with rope_type ${kind}`);
  }
}

/**
 * The numbers only YaRN has. attention_factor: given, or 0.1 ln(factor) + 1 (Peng et al. 2023, equation 22).
 * @param {Raw} given @param {number} factor @param {string} prefix
 */
function yarnFields(given, factor, prefix) {
  const temperature = (/** @type {number} */ mscale) => (factor > 1 ? 0.1 * mscale * Math.log(factor) + 1 : 1);
  let inferred = temperature(1);
  if (get(given, "mscale") != null && get(given, "mscale_all_dim") != null) {
    inferred = temperature(number(given, "mscale", SPANS.MSCALE, null, prefix));
    inferred /= temperature(number(given, "mscale_all_dim", SPANS.MSCALE, null, prefix));
  }
  return {
    attention_factor: number(given, "attention_factor", SPANS.FACTOR, inferred, prefix),
    beta_fast: number(given, "beta_fast", SPANS.FACTOR, 32, prefix),
    beta_slow: number(given, "beta_slow", SPANS.FACTOR, 1, prefix),
    truncate: flag(given, "truncate", true, prefix),
  };
}

/**
 * Radians per position [H/2]. total: the whole length in tokens, which only dynamic scaling looks at.
 * @param {Rope} rope @param {number} H @param {number} total
 */
export function frequencies(rope, H, total) {
  let theta = rope.theta;
  if (rope.type === "dynamic" && total > rope.positions) {
    theta *= ((rope.factor * total) / rope.positions - (rope.factor - 1)) ** (H / (H - 2));
  }
  const plain = Float64Array.from({ length: H / 2 }, (_, i) => theta ** -((2 * i) / H));
  if (rope.type === "linear") return plain.map((f) => f / rope.factor);
  if (rope.type === "llama3") return plain.map((f) => llama3(rope, f));
  if (rope.type === "yarn") {
    const ramp = yarnRamp(rope, H);
    return plain.map((f, i) => (f / rope.factor) * ramp(i) + f * (1 - ramp(i)));
  }
  return plain;
}

/**
 * Divide frequencies that turn less than `low` times over the original length; ramp up to `high` turns.
 * @param {Rope} rope @param {number} frequency
 */
function llama3(rope, frequency) {
  const turns = (rope.original * frequency) / (2 * Math.PI);
  if (turns < rope.low) return frequency / rope.factor;
  if (turns > rope.high) return frequency;
  const smooth = (turns - rope.low) / (rope.high - rope.low);
  return ((1 - smooth) * frequency) / rope.factor + smooth * frequency;
}

/**
 * 0 where a frequency is kept, 1 where it is divided by the factor.
 * @param {Rope} rope @param {number} H @returns {(i: number) => number}
 */
function yarnRamp(rope, H) {
  const index = (/** @type {number} */ turns) =>
    (H * Math.log(rope.original / (turns * 2 * Math.PI))) / (2 * Math.log(rope.theta));
  let [low, high] = [index(rope.beta_fast), index(rope.beta_slow)];
  if (rope.truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
  low = Math.max(low, 0);
  high = Math.min(high, H - 1);
  if (low === high) high += 0.001;
  return (i) => Math.min(Math.max((i - low) / (high - low), 0), 1);
}

/**
 * cos and sin of positions start .. start+count-1, Float32Array [count * H/2] each.
 * @param {Rope} rope @param {number} H @param {number} start @param {number} count @param {number} total
 */
export function tables(rope, H, start, count, total) {
  const frequency = frequencies(rope, H, total);
  const cos = new Float32Array((count * H) / 2);
  const sin = new Float32Array((count * H) / 2);
  for (let p = 0, at = 0; p < count; p++) {
    for (const f of frequency) {
      cos[at] = Math.cos((start + p) * f) * rope.attention_factor;
      sin[at++] = Math.sin((start + p) * f) * rope.attention_factor;
    }
  }
  return { cos, sin };
}
