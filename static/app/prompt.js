// The prompt: a box that grows, the example prompts, the count against the limit, what is being computed.
import { IdTokens } from "../lib/id_tokens.js";
import { EXAMPLE } from "../lib/permalink.js";
import { count, plural } from "../lib/numbers.js";
import { tokenChips } from "./chips.js";
import { byId, h } from "./dom.js";
import { progressLine } from "./progress.js";
import { setPrompt } from "./session.js";
import { store } from "./state.js";

/** Name of the button, prompt. Each shows something that heads are known for. */
const EXAMPLES = [
  ["Who gets the drink", EXAMPLE],
  ["Capital", "The capital of France is"],
  ["Repetition", "jump red seven lamp jump red seven"],
  ["Code", "def add(a, b):\n    return a +"],
  ["Scripts", "Tokyo is 東京, Moscow is Москва 👍🏽"],
];

const TALLEST_PX = 168;
/** More characters than this fill the tallest box at any width, so nothing needs measuring. */
const FULL_BOX = 20_000;

/** Fills the prompt panel. */
export function mountPrompt() {
  const box = /** @type {HTMLTextAreaElement} */ (byId("prompt-text"));
  const counter = h("p", { id: "token-count", class: "token-count" });
  const error = h("p", { id: "prompt-error", class: "error", role: "alert" });
  const note = h("p", { id: "prompt-note", class: "small dim", role: "status" });
  const examples = h(
    "div",
    { class: "examples", role: "group", "aria-label": "Example prompts" },
    h("span", { class: "small dim", text: "Examples" }),
  );
  for (const [name, text] of EXAMPLES) {
    examples.append(h("button", { type: "button", class: "quiet", text: name, onclick: () => setPrompt(text, { now: true }) }));
  }
  const clear = h("button", { type: "button", class: "quiet", text: "Clear", onclick: () => (setPrompt("", { now: true }), box.focus()) });
  examples.append(clear);
  const chips = tokenChips();
  const meta = h("div", { class: "prompt-meta" }, counter, chips.details, progressLine(), h("span", { class: "spacer" }), examples);
  byId("prompt-body").append(error, note, chips.element, meta);

  box.addEventListener("input", () => setPrompt(box.value.toWellFormed()));
  store.on(["prompt"], ({ prompt }) => {
    if (box.value !== prompt) box.value = prompt;
    grow(box);
  });
  new ResizeObserver(() => grow(box)).observe(byId("prompt"));
  store.on(["typed", "entry", "tokens"], ({ typed, entry, tokens }) => {
    examples.hidden = tokens instanceof IdTokens;
    counter.textContent = !entry ? "" : tokens ? `${count(typed.length)} of ${plural(entry.max_tokens, "token")}` : "reading the tokenizer";
  });
  store.on(["promptNote"], ({ promptNote }) => {
    note.textContent = promptNote ?? "";
    note.hidden = !promptNote;
  });
  store.on(["promptError"], ({ promptError }) => {
    error.textContent = promptError ?? "";
    error.hidden = !promptError;
    box.setAttribute("aria-invalid", String(promptError !== null));
  });
}

/** @param {HTMLTextAreaElement} box */
function grow(box) {
  if (box.value.length > FULL_BOX) return void (box.style.height = `${TALLEST_PX}px`);
  box.style.height = "auto";
  box.style.height = `${Math.min(TALLEST_PX, box.scrollHeight + 2)}px`;
}
