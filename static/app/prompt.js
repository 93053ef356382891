// The prompt: a box that grows, the example prompts, the count against the limit, what is being computed.
import { count, plural } from "../lib/numbers.js";
import { tokenChips } from "./chips.js";
import { beforePaint, byId, h } from "./dom.js";
import { examples, writePrompt } from "./examples.js";
import { newEntry } from "./link.js";
import { progressLine } from "./progress.js";
import { setPrompt } from "./session.js";
import { store, wished } from "./state.js";

/** Eight whole lines: the longest example on a phone. */
const TALLEST_PX = 208;
/** More characters than this fill the tallest box at any width, so nothing needs measuring. */
const FULL_BOX = 20_000;

/** Fills the prompt panel. */
export function mountPrompt() {
  const box = /** @type {HTMLTextAreaElement} */ (byId("prompt-text"));
  const counter = h("p", { id: "token-count", class: "token-count" });
  const error = h("p", { id: "prompt-error", class: "error", role: "alert" });
  const note = h("p", { id: "prompt-note", class: "small dim", role: "status" });
  const { buttons, says } = examples();
  buttons.append(clearButton(box));
  const chips = tokenChips();
  const meta = h("div", { class: "prompt-meta" }, counter, chips.details, progressLine(), h("span", { class: "spacer" }), buttons);
  byId("prompt-body").append(error, note, chips.element, meta, says);

  const grown = () => grow(box);
  box.addEventListener("input", (event) => writePrompt(box.value.toWellFormed(), { now: !isTyping(event) }));
  store.on(["prompt"], ({ prompt }) => {
    if (box.value !== prompt) box.value = prompt;
    beforePaint(grown);
  });
  new ResizeObserver(grown).observe(byId("prompt"));
  store.on(["typed", "entry", "tokens", "progress"], ({ typed, entry, tokens, progress }) => {
    const reading = progress ? "reading the tokenizer" : ""; // a load that failed says so itself
    const words = !entry ? "" : tokens ? `${count(typed.length)} of ${plural(entry.max_tokens, "token")}` : reading;
    if (counter.textContent !== words) counter.textContent = words;
  });
  store.on(["promptNote"], ({ promptNote }) => {
    note.textContent = promptNote ?? "";
    note.hidden = !promptNote;
  });
  store.on(["promptError", "trace"], ({ promptError, trace }) => {
    const below = trace ? "The picture below is still that of the last prompt that could be computed." : "There is no picture yet.";
    error.textContent = promptError ? `${promptError} ${below}` : "";
    error.hidden = !promptError;
    box.setAttribute("aria-invalid", String(promptError !== null));
  });
}

/**
 * Empties the box; then, in the same place, brings back what stood there and how it was looked at, as Back does. A text box takes
 * back what a person typed, and not what a script wrote into it.
 * @param {HTMLTextAreaElement} box
 */
function clearButton(box) {
  /** What was cleared last, for as long as the box is empty. @type {{entry: unknown, prompt: string, view: Partial<import("./state.js").View>} | null} */
  let cleared = null;
  const clear = () => {
    const { entry, prompt, layer, head, token, key, depth, target, zoom } = wished(store.state);
    newEntry();
    cleared = prompt === "" ? null : { entry, prompt, view: { layer, head, token, key, depth, target, zoom } };
    writePrompt("", { now: true });
    box.focus();
  };
  const undo = (/** @type {NonNullable<typeof cleared>} */ { prompt, view }) => {
    newEntry();
    setPrompt(prompt, { now: true, view });
    goToPrompt();
  };
  const button = h("button", { type: "button", class: "quiet", id: "clear", text: "Clear", onclick: () => (cleared ? undo(cleared) : clear()) });
  store.on(["prompt", "entry"], ({ prompt, entry }) => {
    if (prompt !== "" || cleared?.entry !== entry) cleared = null; // another model's ids and heads mean nothing in this one
    button.textContent = cleared ? "Undo" : "Clear";
    button.title = cleared ? "Bring the cleared prompt back, and how it was looked at" : "";
  });
  return button;
}

/** After something that changed the prompt from elsewhere: shows it, with the cursor at its end. */
export function goToPrompt() {
  const box = /** @type {HTMLTextAreaElement} */ (byId("prompt-text"));
  box.focus({ preventScroll: true });
  beforePaint(() => {
    grow(box);
    box.setSelectionRange(box.value.length, box.value.length);
    box.scrollTop = box.scrollHeight;
    byId("prompt").scrollIntoView({ block: "nearest" }); // at once: a page that slides by explains nothing here
  });
}

/**
 * Whether more letters are to be expected: what is pasted, dropped or filled in comes whole.
 * @param {Event} event
 */
const isTyping = (event) => event instanceof InputEvent && /^(insert(Text|Composition|Line)|delete)/.test(event.inputType);

/** @param {HTMLTextAreaElement} box */
function grow(box) {
  if (box.value.length > FULL_BOX) return void (box.style.height = `${TALLEST_PX}px`);
  box.style.height = "auto";
  box.style.height = `${Math.min(TALLEST_PX, box.scrollHeight + 2)}px`;
}
