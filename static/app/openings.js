// The prompts that a model is opened and tried with. A model that was measured brings its own, each with the head to look at
// and a line that says why; every other model gets the same few.
import { EXAMPLE, OPENING } from "../lib/permalink.js";
import { byId } from "./dom.js";
import { store } from "./state.js";

/** @typedef {import("../lib/permalink.js").Opening} Opening */
/** @typedef {import("./state.js").ModelEntry} ModelEntry */
/** @typedef {Opening & {title: string, says: string | null}} Example */

/** @type {Example[]} Each shows something that heads are known for. */
const GENERIC = [
  ["Who gets the drink", EXAMPLE],
  ["Capital", "The capital of France is"],
  ["Repetition", "jump red seven lamp jump red seven"],
  ["Code", "def add(a, b):\n    return a +"],
  ["Scripts", "Tokyo is 東京, Moscow is Москва 👍🏽"],
].map(([title, prompt]) => ({ ...OPENING, title, prompt, says: null }));

/** What heads of SmolLM2-135M do, each claim held by tests/page/test_smollm2.py. @type {Example[]} */
const SMOLLM2 = [
  {
    ...OPENING, // its head is the page's own choice for this model
    title: "Who gets the drink",
    says: "Layer 24, head 4: from the last “to” this head reads “Mary”, the one who has given nothing, and “Mary” comes next.",
  },
  {
    ...{ title: "Capital", prompt: "The capital of France is", layer: 23, head: 4, token: 4, key: 3 },
    says: "Layer 23, head 4: from “is” this head reads “France”, and “Paris” comes next.",
  },
  {
    ...{ title: "Repetition", prompt: "red apple stone map rope red apple stone", layer: 18, head: 6, token: 7, key: 3 },
    says: "Layer 18, head 6: from the second “stone” this head reads what followed the first one, “map”, and that comes next; by induction on this prompt it is the first of all heads.",
  },
  {
    ...{ title: "Code", prompt: "def area(width, height):\n    return width *", layer: 23, head: 7, token: 10, key: 5 },
    says: "Layer 23, head 7: from “*” this head reads “height”, the argument that is not used yet, and that comes next.",
  },
  {
    ...{ title: "Scripts", prompt: "Tokyo is 東京, Moscow is Москва 👍🏽", layer: 4, head: 3, token: 22, key: 21 },
    says: "Layer 4, head 3: one character may be several tokens; from the last piece of “👍🏽” this head reads the piece before it.",
  },
];

/**
 * @param {ModelEntry | null | undefined} entry
 * @returns {Example[]} at least one; the first is what the model opens on
 */
export function examplesOf(entry) {
  const prompts = entry?.report?.prompts ?? [];
  if (prompts.length === 0) return entry?.id === "smollm2-135m" ? SMOLLM2 : GENERIC;
  return prompts.map(({ title, text, layer, head, query, keys, says }) => {
    const key = keys.length === 1 ? keys[0] : null; // a claim about several keys is about none of them alone
    return { title, prompt: text, layer, head, token: query, key, says };
  });
}

/**
 * What a link that names this model and nothing else shows.
 * @param {ModelEntry | null | undefined} entry
 * @returns {Opening}
 */
export function openingOf(entry) {
  const { prompt, layer, head, token, key } = examplesOf(entry)[0];
  return { prompt, layer, head, token, key };
}

/**
 * The opening of a link's model. Before the list of models is here, what the server wrote into the page stands in.
 * @param {string | null} id null: the default
 * @returns {Opening}
 */
export function openingFor(id) {
  const { models, defaultModel } = store.state;
  const find = (/** @type {string | null} */ wanted) => models.find((model) => model.files && model.id === wanted);
  if (models.length > 0) return openingOf(find(id) ?? find(defaultModel));
  const settings = JSON.parse(byId("settings").textContent ?? "{}");
  return id === null || id === settings.defaultModel ? (settings.opening ?? OPENING) : OPENING;
}
