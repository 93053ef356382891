// The whole view as the part of the address after #, and back. Whatever a link holds, reading it gives a usable view:
// a field that cannot be read keeps its default and is named, so that the page can say so in a sentence.

import { PROMPT_SCORES } from "./head_scores.js";

/**
 * @typedef {object} View
 * @property {string | null} model catalogue id; null is the server's default
 * @property {string} prompt
 * @property {number | null} layer null: the page chooses
 * @property {number | null} head
 * @property {number | null} token selected position (query row, lens column); null is the last
 * @property {number | null} key selected key column
 * @property {"unit" | "row" | "sqrt"} scale
 * @property {boolean} noFirst
 * @property {boolean} lock the bars stay with the selected token
 * @property {"heatmap" | "arcs" | "table"} view
 * @property {[number, number, number, number] | null} zoom row0, rows, col0, cols; null is everything
 * @property {number | null} depth selected lens row, 0..L; null is the last
 * @property {string | null} order of the wall, "measured.<score>" or "prompt.<score>"; null is by layer
 * @property {string | null} only heads shown in the wall: "known", or those with at least this score; null is all
 * @property {number} temperature of generating, as are the next four
 * @property {number} topK 0 keeps all
 * @property {number} topP 1 keeps all
 * @property {number} seed
 * @property {number} maxTokens
 * @property {number | null} target token id whose rank is followed; null is the model's own first choice
 */

/**
 * What a link that says nothing of prompt, layer, head, token and key opens; a model may have an opening of its own.
 * @typedef {Pick<View, "prompt" | "layer" | "head" | "token" | "key">} Opening
 */

export const EXAMPLE = "When Mary and John went to the store, John gave a drink to";
/** @type {Readonly<Opening>} */
export const OPENING = Object.freeze({ prompt: EXAMPLE, layer: null, head: null, token: null, key: null });
const OPENING_FIELDS = /** @type {(keyof Opening)[]} */ (Object.keys(OPENING));
/** Characters (UTF-16 units) of the longest prompt that a link holds; browsers cut addresses at about 2 MB. */
export const LONGEST_PROMPT = 200_000;

/** @type {Readonly<View>} */
export const DEFAULT_VIEW = Object.freeze({
  model: null,
  ...OPENING,
  scale: "unit",
  noFirst: false,
  lock: true,
  view: "heatmap",
  zoom: null,
  depth: null,
  target: null,
  order: null,
  only: null,
  temperature: 0,
  topK: 0,
  topP: 1,
  seed: 1,
  maxTokens: 24,
});

/** Smallest and largest value of what generating is set by. */
export const SAMPLING_RANGES = Object.freeze({
  temperature: /** @type {const} */ ([0, 5]),
  topK: /** @type {const} */ ([0, 100_000]),
  topP: /** @type {const} */ ([0.01, 1]),
  seed: /** @type {const} */ ([0, 4_294_967_295]),
  maxTokens: /** @type {const} */ ([1, 512]),
});

/**
 * Text as a text box holds it: every line ends in one \n. The page computes just what its box shows.
 * @param {string} text
 */
export const boxText = (text) => text.replace(/\r\n?/g, "\n");

/** @param {string} text */
const whole = (text) => (/^\d{1,7}$/.test(text) ? Number(text) : undefined);
/** @param {string} text */
const flag = (text) => ({ 0: false, 1: true })[text];
/** @param {...string} names */
const oneOf =
  (...names) =>
  (/** @type {string} */ text) =>
    names.includes(text) ? text : undefined;

/** @param {string} text */
function zoom(text) {
  const parts = text.split(",").map(whole);
  const [, rows, , cols] = parts;
  return parts.length === 4 && parts.every((part) => part !== undefined) && rows && cols ? parts : undefined;
}

/** @param {keyof typeof SAMPLING_RANGES} name @param {RegExp} form */
const within = (name, form) => (/** @type {string} */ text) => {
  const [least, most] = SAMPLING_RANGES[name];
  return form.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined;
};
const WHOLE = /^\d{1,10}$/;
const DECIMAL = /^\d{1,6}(\.\d{1,9})?$/;

/** The wall's order: by a score of the model's report, whatever it has, or by one that is computed from a prompt. */
const ORDER = new RegExp(`^(measured\\.[a-z][a-z_]{0,29}|prompt\\.(${PROMPT_SCORES.join("|")}))$`);

/** Field of the view -> its name in the link and its reader. Order is the order in the link. */
const FIELDS = {
  model: ["m", (/** @type {string} */ text) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text) ? text : undefined)],
  layer: ["l", whole],
  head: ["h", whole],
  token: ["t", whole],
  key: ["k", whole],
  view: ["v", oneOf("heatmap", "arcs", "table")],
  scale: ["s", oneOf("unit", "row", "sqrt")],
  noFirst: ["x", flag],
  lock: ["b", flag],
  zoom: ["z", zoom],
  depth: ["d", whole],
  target: ["g", whole],
  order: ["o", (/** @type {string} */ text) => (ORDER.test(text) ? text : undefined)],
  only: ["f", oneOf("known", "0.1", "0.3", "0.5", "0.7", "0.9")],
  temperature: ["gt", within("temperature", DECIMAL)],
  topK: ["gk", within("topK", WHOLE)],
  topP: ["gp", within("topP", DECIMAL)],
  seed: ["gs", within("seed", WHOLE)],
  maxTokens: ["gn", within("maxTokens", WHOLE)],
  prompt: ["p", (/** @type {string} */ text) => (text.length <= LONGEST_PROMPT ? boxText(text.toWellFormed()) : undefined)],
};

/**
 * Only what differs from the default, and no prompt that readLink would refuse. An opening is left out whole or not at all,
 * so that a link with a layer and no token means the last token, whatever the model's opening selects.
 * @param {View} view
 * @param {{opening?: Opening, whole?: boolean}} [options] whole: names the opening too, for where another one may be set
 * @returns {string} without the #
 */
export function writeLink(view, { opening = OPENING, whole = false } = {}) {
  const opens = !whole && OPENING_FIELDS.every((field) => view[field] === opening[field]);
  const parts = [];
  for (const [name, [short]] of Object.entries(FIELDS)) {
    const field = /** @type {keyof View} */ (name);
    const value = view[field];
    const ofOpening = OPENING_FIELDS.some((other) => other === field);
    if (value === null || (ofOpening ? opens : value === DEFAULT_VIEW[field])) continue;
    if (field === "prompt" && view.prompt.length > LONGEST_PROMPT) continue;
    const text = typeof value === "boolean" ? String(Number(value)) : String(value);
    parts.push(`${short}=${encodeURIComponent(text.toWellFormed())}`);
  }
  return parts.join("&");
}

/**
 * @param {string} hash with or without the #
 * @param {Opening} [opening] of the link's model; its prompt stands in where the link has none
 * @returns {{view: View, unread: string[]}} unread: names of the fields that could not be used
 */
export function readLink(hash, opening = OPENING) {
  const view = { ...DEFAULT_VIEW, prompt: opening.prompt };
  const unread = [];
  const names = new Map(Object.entries(FIELDS).map(([field, [short, read]]) => [short, { field, read }]));
  let opens = true;
  for (const part of hash.replace(/^#/, "").split("&").slice(0, 40)) {
    if (part === "") continue;
    const [short, ...rest] = part.split("=");
    const known = names.get(short);
    opens &&= !OPENING_FIELDS.some((field) => field === known?.field);
    const value = known && decode(rest.join("="), /** @type {(text: string) => unknown} */ (known.read));
    if (value === undefined) unread.push(known ? known.field : "an unknown field");
    else Object.assign(view, { [/** @type {{field: string}} */ (known).field]: value });
  }
  return { view: opens ? { ...view, ...opening } : view, unread };
}

/**
 * @param {string} text
 * @param {(text: string) => unknown} read
 */
function decode(text, read) {
  try {
    return read(decodeURIComponent(text));
  } catch {
    return undefined; // a % that starts no character
  }
}
