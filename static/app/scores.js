// The scores of heads in words, and where each comes from: measured beforehand (the model's report, which says on what), or
// computed here from the patterns of the prompt at hand.
import { PROMPT_SCORES } from "../lib/head_scores.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").ModelEntry} ModelEntry */

/** Name of each score of python_ref/heads.py, and what it is the mean weight on. */
export const SCORES = /** @type {Record<string, {name: string, about: string}>} */ ({
  previous_token: { name: "previous-token", about: "weight on the token just before" },
  induction: { name: "induction", about: "weight on what followed the same token before" },
  duplicate_token: { name: "duplicate-token", about: "weight on the same token before" },
  first_token: { name: "first-token", about: "weight on token 0" },
  selectivity: { name: "pronoun", about: "from a pronoun, weight on its antecedent minus the best wrong one, at the worst place" },
  receiver_first: { name: "name (first)", about: "weight on who receives, named first, minus the best wrong name" },
  receiver_second: { name: "name (second)", about: "weight on who receives, named second, minus the best wrong name" },
  look_up: { name: "table look-up", about: "weight on the columns of the named table minus those of the best wrong one" },
});

/** A head is called after a score that is at least this much. */
export const NAMED = 0.5;

/**
 * A score with two decimals, halves away from 0 as in the model's card, a true minus sign, never a lone -0.
 * @param {number} value
 */
export const figure = (value) => (Math.abs(value) < 0.005 ? "0.00" : value.toFixed(2).replace("-", "−"));

/**
 * What was measured of one head.
 * @param {ModelEntry | null} entry
 * @param {number} layer
 * @param {number} head
 */
export const measuredOf = (entry, layer, head) => entry?.report?.heads[layer * (entry.shape.N ?? 0) + head];

/**
 * What a score was measured on, in words: "measured on random tokens".
 * @param {ModelEntry | null} entry
 * @param {string} score
 * @returns {string} "" where the report does not say
 */
export function measuredOn(entry, score) {
  const on = entry?.report?.measured_on[score];
  return on ? `measured on ${on}` : "";
}

/**
 * What a head is known for: its scores of at least NAMED, best first, "previous-token 0.86".
 * @param {ModelEntry | null} entry
 * @param {number} layer
 * @param {number} head
 * @returns {string[]} [] when it is known for nothing
 */
export function knownFor(entry, layer, head) {
  const found = measuredOf(entry, layer, head);
  if (!found || !entry) return [];
  const high = entry.report.scores.filter((score) => found[score] >= NAMED).sort((a, b) => found[b] - found[a]);
  return high.length > 0 ? high.map((score) => `${SCORES[score].name} ${figure(found[score])}`) : found.called;
}

/**
 * The orders that the wall can take: "measured.<score>" or "prompt.<score>".
 * @param {ModelEntry | null} entry
 */
export function ordersOf(entry) {
  return [...(entry?.report?.scores ?? []).map((score) => `measured.${score}`), ...PROMPT_SCORES.map((score) => `prompt.${score}`)];
}

/**
 * @param {string} order
 * @returns {{from: "measured" | "prompt", score: string}}
 */
export function partsOf(order) {
  const [from, score] = order.split(".");
  return { from: from === "prompt" ? "prompt" : "measured", score };
}
