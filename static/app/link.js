// The address always restores exactly this view: every change of the view is written after the #, and a link that is opened
// or pasted is read back.
import { count } from "../lib/numbers.js";
import { LONGEST_PROMPT, readLink, writeLink } from "../lib/permalink.js";
import { openingFor, openingOf } from "./openings.js";
import { dismiss, notify, store, wished } from "./state.js";

const QUIET_MS = 150;

/** @typedef {import("../lib/permalink.js").View} View */

/** Fields of the link in words, for the sentence about what could not be used. */
const WORDS = {
  model: "model",
  layer: "layer",
  head: "head",
  token: "token",
  key: "key",
  scale: "scale",
  noFirst: "first-token switch",
  lock: "row lock",
  view: "view",
  zoom: "zoom",
  depth: "lens layer",
  target: "followed token",
  order: "order of the heads",
  only: "filter of the heads",
  temperature: "temperature",
  topK: "top k",
  topP: "top p",
  seed: "seed",
  maxTokens: "number of tokens",
  prompt: "prompt",
};

/** @returns {View} what the address asks for, where it says nothing the opening of its model */
export const plainView = () => readLink(location.hash, openingFor(readLink(location.hash).view.model)).view;

/** What the link that was opened last asks for: only of that a sentence is due when it is not there. @type {Partial<View>} */
let asked = {};

/** @returns {View} the same; says so when part of it could not be used */
export function viewOfAddress() {
  const { unread } = readLink(location.hash);
  dismiss("link");
  if (unread.length) {
    const names = [...new Set(unread.map((field) => WORDS[/** @type {keyof typeof WORDS} */ (field)] ?? field))].join(", ");
    notify({ id: "link", kind: "info", text: `Part of this link could not be used (${names}); the page chose for itself there.` });
  }
  return (asked = plainView());
}

/**
 * Indices beyond the model or the prompt go back to the page's own choice, with a sentence where a link asked for them.
 * @param {import("./state.js").State} state
 */
export function clampView(state) {
  const { trace, shown } = state;
  if (!trace) return;
  const { L, N, V } = trace.shape;
  /** @type {[keyof View, number][]} */
  const limits = [
    ["layer", L],
    ["head", N],
    ["token", shown.length],
    ["key", shown.length],
    ["depth", L + 1],
    ["target", V],
  ];
  const T = shown.length;
  const [row0 = 0, rows = 0, col0 = 0, cols = 0] = state.zoom ?? [];
  const outside = row0 + rows > T || col0 + cols > T;
  const beyond = limits.filter(([field, limit]) => typeof state[field] === "number" && /** @type {number} */ (state[field]) >= limit);
  if (beyond.length === 0 && !outside) return;
  const wanted = beyond.filter(([field]) => asked[field] === state[field]);
  const said = wanted.map(([field, limit]) => `${WORDS[field]} ${state[field]} (largest here: ${count(limit - 1)})`);
  if (outside && String(asked.zoom) === String(state.zoom)) said.push(`a zoom up to query ${row0 + rows - 1} and key ${col0 + cols - 1} (largest here: ${count(T - 1)})`);
  store.set({ ...Object.fromEntries(beyond.map(([field]) => [field, null])), ...(outside ? { zoom: null } : {}) });
  if (said.length === 0) return;
  notify({ id: "link", kind: "info", text: `The view asked for ${said.join(", ")}; the page chose for itself there.` });
}

/** The address of exactly this view, as short as the page's defaults allow. */
function addressOfView() {
  const address = new URL(location.href);
  address.hash = writeLink(wished(store.state), { opening: openingOf(store.state.entry) });
  return address.href;
}

/** The address to give away: names model and prompt, so that it means the same where the defaults are others. */
export function addressToShare() {
  const address = new URL(location.href);
  address.hash = writeLink({ ...wished(store.state), model: store.state.entry?.id ?? null }, { whole: true });
  return address.href;
}

let toldTooLong = false;

/** Says once, until a shorter prompt comes, that the link cannot hold this one. @param {string} prompt */
function sayWhatIsMissing(prompt) {
  const tooLong = prompt.length > LONGEST_PROMPT;
  if (tooLong && !toldTooLong) {
    const text = `The link in the address bar holds no prompt: this one is longer than ${count(LONGEST_PROMPT)} characters.`;
    notify({ id: "long-prompt", kind: "info", text });
  }
  if (!tooLong && toldTooLong) dismiss("long-prompt");
  toldTooLong = tooLong;
}

/** Whether the next address is a new entry of the browser's history. */
let entryDue = false;
let written = "";
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Called before a choice that leads elsewhere (an example, another model): Back then returns to what is shown now. */
export function newEntry() {
  dismiss("link");
  write();
  entryDue = true;
  writeSoon();
}

function writeSoon() {
  clearTimeout(timer);
  timer = setTimeout(write, QUIET_MS);
}

function write() {
  if (!store.state.entry) return; // what the address leaves out depends on the model
  if (location.hash !== written) return; // a link was opened this moment: it wins over what was about to be written
  const address = addressOfView();
  written = new URL(address).hash;
  sayWhatIsMissing(store.state.prompt);
  if (address !== location.href) history[entryDue ? "pushState" : "replaceState"](null, "", address);
  entryDue = false;
}

/**
 * Keeps address and view together.
 * @param {(view: View) => void} open called when another link is opened in this page
 */
export function mountLink(open) {
  written = location.hash;
  store.on(["entry", "coming", .../** @type {(keyof View)[]} */ (Object.keys(WORDS))], writeSoon);
  window.addEventListener("hashchange", () => {
    if (location.hash === written) return;
    written = location.hash;
    entryDue = false;
    open(viewOfAddress());
  });
}
