// How far this device may be from the oracle, and why that far. The kernels compute in float32 with the checkpoint's own
// weights; the oracle in float64 with the same weights. A wrong formula is off by whole per cents; rounding is not.

/** Kernel that writes each named intermediate, in the order the data flows. */
export const WRITTEN_BY = {
  embed: "embedding",
  resid_pre: "matmul",
  attn_norm: "rmsnorm",
  q_proj: "matmul",
  k_proj: "matmul",
  v: "rope",
  q_normed: "rmsnorm",
  k_normed: "rmsnorm",
  q: "rope",
  k: "rope",
  lse: "attention_fa2",
  z: "attention_fa2",
  pattern: "attention_probs",
  attn_out: "matmul",
  resid_mid: "matmul",
  mlp_norm: "rmsnorm",
  gate: "matmul",
  up: "matmul",
  act: "swiglu",
  mlp_out: "matmul",
  resid_post: "matmul",
  final_norm: "rmsnorm",
  logits: "lens",
  lens_logprobs: "lens",
};

/**
 * Hidden states, relative to the largest magnitude of the oracle's tensor: sums of up to a few thousand float32 products
 * err by about 1e-6 each layer, and errors of a layer are carried on by the next (3e-7 measured after SmolLM2's thirty
 * layers); GPUs may round exponentials and reciprocals more coarsely than the CPU drivers this was measured on.
 */
const HIDDEN = 1e-4;
/** Attention weights, absolute: they lie in 0..1, and an error of their scores shows as is (2e-6 measured). */
export const WEIGHTS = 1e-4;
/** Log-probabilities and log-sum-exps, absolute, in nats: 1e-3 changes a probability by 0.1 %; early depths of the lens have
 * logits of several hundred (1e-4 measured). */
const LOGS = 1e-3;

/**
 * @param {string} name a named intermediate
 * @returns {{limit: number, relative: boolean}}
 */
export function toleranceOf(name) {
  if (name === "pattern") return { limit: WEIGHTS, relative: false };
  if (name === "lse" || name === "lens_logprobs") return { limit: LOGS, relative: false };
  return { limit: HIDDEN, relative: true };
}

/**
 * Largest error of a tensor: absolute, or relative to the largest magnitude of the true one. NaN counts as infinite.
 * @param {ArrayLike<number>} ours
 * @param {ArrayLike<number>} truth
 * @param {boolean} relative
 */
export function largestError(ours, truth, relative) {
  if (ours.length !== truth.length) return Infinity;
  let [error, size] = [0, 0];
  for (let i = 0; i < truth.length; i += 1) {
    const off = Math.abs(ours[i] - truth[i]);
    if (!(off <= error)) error = Number.isNaN(off) ? Infinity : off;
    size = Math.max(size, Math.abs(truth[i]));
  }
  return relative ? error / Math.max(size, 1e-30) : error;
}
