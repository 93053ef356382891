/**
 * The next token as dispatches: the best logits of a row in lists, and the likeliest of them chosen on the device.
 *
 * Mirrors webgpu/next_token.py.
 * @module
 */
import { ceil, fold } from "./dispatch.js";

/** @typedef {import("./dispatch.js").Dispatch} Dispatch */

export const LISTS = 256;
export const LIST_WORDS = 20;
export const TOKEN_WORDS = 4;

/**
 * logits [V] -> best [LISTS, LIST_WORDS]; sums of weights are for this temperature (0: for 1).
 * @param {{logits: string, best: string, V: number, temperature: number}} given @returns {Dispatch}
 */
export function candidates({ logits, best, V, temperature }) {
  const params = { V, heat: temperature ? 1 / temperature : 1 };
  return { kernel: "candidates", overrides: {}, params, grid: fold(ceil(LISTS, 16)), bindings: { logits, best } };
}

/**
 * The likeliest token of the lists -> ids [1], token [TOKEN_WORDS].
 * @param {{best: string, ids: string, token: string}} bindings @returns {Dispatch}
 */
export function choose(bindings) {
  return { kernel: "choose", overrides: {}, params: { lists: LISTS }, grid: [1, 1, 1], bindings };
}

/**
 * Add to a plan the lists that a draw needs, in `best`; at temperature 0 also the likeliest token, in `ids` and `token`.
 * @param {import("./plan.js").Builder} plan @param {string} logits @param {number} temperature
 */
export function nextToken(plan, logits, temperature) {
  const { V } = plan.config;
  const best = plan.buffer("best", LISTS * LIST_WORDS);
  plan.emit(candidates({ logits, best, V, temperature }), 10 * V);
  if (temperature === 0) plan.emit(choose({ best, ids: plan.buffer("ids", 1), token: plan.buffer("token", TOKEN_WORDS) }), LISTS);
}
