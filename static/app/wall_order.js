// Ordering and filtering the wall by a score: the two menus above it, and which heads stand in which order.
import { plural } from "../lib/numbers.js";
import { h } from "./dom.js";
import { SCORES, figure, knownFor, measuredOf, measuredOn, ordersOf, partsOf } from "./scores.js";
import { store } from "./state.js";

const LEAST = ["0.1", "0.3", "0.5", "0.7", "0.9"];

/** @typedef {import("./wall_layout.js").Heads} Heads */
/** @typedef {import("./wall_layout.js").Place} Place */
/** @typedef {import("./state.js").State} State */

/**
 * The order and filter that the model at hand has; others, from a link for another model, count as none.
 * @param {State} state
 * @returns {{order: string | null, only: string | null}}
 */
function chosenOrder({ entry, order, only }) {
  const known = order !== null && ordersOf(entry).includes(order) ? order : null;
  const named = only === "known" && (entry?.report?.heads.length ?? 0) > 0;
  return { order: known, only: named || (known !== null && only !== "known") ? only : null };
}

/**
 * The score that the wall is ordered by.
 * @param {State} state
 * @param {Place} place
 * @returns {number} NaN when it is not known, or not yet
 */
function orderScore(state, { layer, head }) {
  const { order } = chosenOrder(state);
  if (!order) return NaN;
  const { from, score } = partsOf(order);
  if (from === "measured") return measuredOf(state.entry, layer, head)?.[score] ?? NaN;
  const found = state.promptScores?.trace === state.trace ? state.promptScores : null;
  return found?.layers[layer]?.[/** @type {import("../lib/head_scores.js").PromptScore} */ (score)]?.[head] ?? NaN;
}

/**
 * The heads to list, or null: the wall shows every head, layer by layer.
 * @param {State} state
 * @param {Heads} heads
 * @returns {Place[] | null}
 */
export function orderedHeads(state, { L, N }) {
  const { order, only } = chosenOrder(state);
  if (!order && !only) return null;
  if (order && partsOf(order).from === "prompt" && !(state.promptScores?.trace === state.trace && state.promptScores?.done)) return null;
  const all = Array.from({ length: L * N }, (_, i) => ({ layer: Math.floor(i / N), head: i % N }));
  const kept = all.filter((place) => {
    if (only === null) return true;
    if (only === "known") return knownFor(state.entry, place.layer, place.head).length > 0;
    return orderScore(state, place) >= Number(only);
  });
  if (!order) return kept;
  const value = (/** @type {Place} */ place) => orderScore(state, place) || -Infinity;
  return kept.sort((a, b) => value(b) - value(a) || a.layer - b.layer || a.head - b.head);
}

/** Second line under a listed head. @param {State} state @param {Place} place */
export function captionOf(state, place) {
  const score = orderScore(state, place);
  return Number.isNaN(score) ? "" : figure(score);
}

/** The score that the wall is ordered by, in words; "" where it is not known. @param {State} state @param {Place} place */
export function scoreWords(state, place) {
  const found = captionOf(state, place);
  const { from, score } = partsOf(chosenOrder(state).order ?? "");
  return found && `${SCORES[score].name} ${found}${from === "prompt" ? " on this prompt" : `, ${measuredOn(state.entry, score) || "measured"}`}`;
}

/**
 * What stands over the wall while it waits for scores, and when a filter leaves nothing.
 * @param {State} state
 * @param {Place[] | null} listed
 * @param {Heads} heads
 */
export function orderWords(state, listed, { L, N }) {
  const { order, only } = chosenOrder(state);
  const { promptScores, trace } = state;
  if (!order && !only) return "";
  if (!listed) return promptScores && trace ? `scoring layer ${promptScores.layers.length + 1} of ${L}` : "waiting for the prompt";
  const score = order ? SCORES[partsOf(order).score] : null;
  const on = partsOf(order ?? "").from === "measured" ? measuredOn(state.entry, partsOf(order ?? "").score) : "";
  if (order && listed.every((place) => Number.isNaN(orderScore(state, place))) && listed.length === L * N)
    return `No query has ${/^[aeiou]/.test(score?.name ?? "") ? "an" : "a"} ${score?.name} score in this prompt: nothing in it repeats.`;
  const part = promptScores && partsOf(order ?? "").from === "prompt" && promptScores.tokens < (trace?.shape.T ?? 0);
  const whole = listed.length === L * N ? "" : `${plural(listed.length, "head")} of ${L * N}. `;
  return `${whole}${score ? `${score.name}: ${score.about}` : ""}${on ? `; ${on}` : ""}${part ? `, over the first ${promptScores.tokens} tokens` : ""}`;
}

/** @returns {HTMLElement} the two menus; they keep themselves up to date */
export function orderTools() {
  const order = h("select", { id: "wall-order", "aria-label": "Order of the heads" });
  const only = h("select", { id: "wall-only", "aria-label": "Which heads are shown" });
  order.addEventListener("change", () => store.set({ order: order.value || null, ...(order.value ? {} : dropLeast()) }));
  only.addEventListener("change", () => store.set({ only: only.value || null }));
  store.on(["entry", "order", "only"], (state) => {
    const chosen = chosenOrder(state);
    const orders = ordersOf(state.entry);
    const option = (/** @type {string} */ value) => {
      const { from, score } = partsOf(value); // a closed menu shows the option alone, without its group
      return h("option", { value, text: `${SCORES[score].name}, ${from === "prompt" ? "this prompt" : "measured"}` });
    };
    const group = (/** @type {string} */ from, /** @type {string} */ label) => {
      const found = orders.filter((value) => partsOf(value).from === from);
      return found.length > 0 && h("optgroup", { label }, ...found.map(option));
    };
    order.replaceChildren(
      h("option", { value: "", text: "By layer" }),
      .../** @type {HTMLElement[]} */ ([group("measured", "Measured beforehand"), group("prompt", "On this prompt")].filter(Boolean)),
    );
    order.value = chosen.order ?? "";
    const named = (state.entry?.report?.heads.length ?? 0) > 0 && h("option", { value: "known", text: "Known heads" });
    const least = chosen.order ? LEAST.map((value) => h("option", { value, text: `At least ${value}` })) : [];
    const free = named || least.length > 0;
    only.replaceChildren(h("option", { value: "", text: "All heads" }), ...(named ? [named] : []), ...least);
    only.value = chosen.only ?? "";
    only.disabled = !free;
    only.title = free ? "" : "To filter by a score, choose an order by that score first.";
  });
  return h("div", { class: "wall-tools" }, order, only);
}

/** By layer there is no score to compare with. */
const dropLeast = () => (store.state.only === "known" ? {} : { only: null });
