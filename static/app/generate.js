// Writing on from the selected token of the prompt: sampling settings, a stop button, and the text back into the prompt.
import { SAMPLING_RANGES } from "../lib/permalink.js";
import { plural } from "../lib/numbers.js";
import { sharedCharacters } from "../lib/split_characters.js";
import { h, passFocus } from "./dom.js";
import { writePrompt } from "./examples.js";
import { glyphs } from "./glyphs.js";
import { stepProgress } from "./progress.js";
import { goToPrompt } from "./prompt.js";
import { newEntry } from "./link.js";
import { position, store } from "./state.js";

/** Field of the view, id, label, step, what it does. The link holds them too. */
const SETTINGS = /** @type {const} */ ([
  ["temperature", "temperature", "Temperature", 0.1, "0 always takes the likeliest token"],
  ["topK", "top-k", "Top k", 1, "keeps the k likeliest tokens; 0 keeps all"],
  ["topP", "top-p", "Top p", 0.01, "keeps the likeliest tokens that hold this share of probability; 1 keeps all"],
  ["seed", "seed", "Seed", 1, "the same seed gives the same text"],
  ["maxTokens", "max-tokens", "Tokens", 1, "stops after this many"],
]);

/** What the settings' ends mean, for who sees no titles. */
const LEGEND = "Temperature 0 always takes the likeliest token, and the seed is unused. Top k 0 and top p 1 are off: they leave out no token.";
const NOTHING = "For the model the text ends here: 0 tokens. Another token, another prompt, or a temperature above 0, may go on.";
/** The link has room for so many. */
const DIGITS = 6;

/**
 * Why a field's value is none; a step below 1 is how far the arrows go, and what lies between is as good.
 * @param {HTMLInputElement} field @returns {string | null} null when it is one
 */
function wrong({ value, validity, step, min, max, labels }) {
  const whole = Number(step) >= 1;
  if (value !== "" && !validity.rangeUnderflow && !validity.rangeOverflow && !(whole && validity.stepMismatch)) return null;
  return `${labels?.[0].textContent} must be ${whole ? "a whole number " : ""}between ${min} and ${max}.`;
}

/** @returns {{element: HTMLElement, fields: HTMLInputElement[]}} the settings as fields; view and fields follow each other */
function samplingFields() {
  const legend = h("p", { class: "dim", id: "sampling-legend", text: LEGEND });
  const element = h("div", { class: "sampling" }, legend);
  const fields = SETTINGS.map(([name, id, label, step, about]) => {
    const [min, max] = SAMPLING_RANGES[name];
    const field = h("input", { type: "number", id: `sampling-${id}`, min, max, step, title: about, "aria-describedby": name === "maxTokens" ? null : legend.id });
    field.addEventListener("input", () => wrong(field) ?? store.set({ [name]: Number(Number(field.value).toFixed(DIGITS)) }));
    store.on([name], (state) => document.activeElement === field || (field.value = String(state[name])));
    element.append(h("label", { for: `sampling-${id}`, text: label, title: about }), field);
    return field;
  });
  return { element, fields };
}

/**
 * Why nothing can be written on: the text in the box must be the one whose picture is shown, or two prompts would mix.
 * @returns {string | null} null when it can
 */
function hindrance() {
  const { engine, shown, stale, promptError, prompt } = store.state;
  if (promptError) return "Nothing to write on from: the prompt in the box cannot be computed; see there.";
  if (prompt === "") return "Type a prompt to write on from.";
  if (!engine) return "The model is not loaded yet.";
  return stale || shown.length === 0 ? "The prompt in the box is not computed yet." : null;
}

/**
 * How many tokens of the prompt are gone on from: up to the selected one, or to the end of the character that it is a part of.
 * @param {import("./state.js").State} state
 */
function endOf(state) {
  const { shown } = state;
  const shared = sharedCharacters(shown.map((piece) => piece.bytes));
  let end = position(state) + 1;
  while (end < shown.length && shared[end - 1]) end += 1;
  return end;
}

const idsOf = (/** @type {import("./state.js").Piece[]} */ pieces) => pieces.map((piece) => piece.id);

/**
 * A text that is written on from the token whose next one the panel shows, or from the end of the character that this token is a
 * part of; it belongs to the prompt on the screen, as text and as tokens.
 */
class Continuation {
  /** @param {import("./state.js").State} state */
  constructor(state) {
    const { shown, prompt, tokens } = state;
    const end = endOf(state);
    this.prompt = prompt;
    this.whole = idsOf(shown).join();
    this.ids = idsOf(shown.slice(0, end));
    this.from = end < shown.length ? (tokens?.decode(this.ids) ?? "") : prompt;
    /** @type {number[]} */
    this.made = [];
    this.text = "";
    this.stopping = new AbortController();
  }

  /** Whether this prompt is in the box and in the picture. @param {import("./state.js").State} state */
  belongsTo({ shown, prompt }) {
    return prompt === this.prompt && idsOf(shown).join() === this.whole;
  }

  /**
   * Write on, token by token, until it is stopped or the model's end; `onText` after each.
   * @param {import("./state.js").State} state @param {() => void} onText
   * @returns {Promise<boolean>} whether the model ended its text
   */
  async write({ engine, tokens, entry, maxTokens, temperature, topK, topP, seed }, onText) {
    if (!engine || !tokens) return false;
    const { ids, made } = this;
    const { signal } = this.stopping;
    const room = Math.min(maxTokens, (entry?.max_tokens ?? 0) - ids.length);
    if (room < 1) throw new Error("The prompt already fills the model's context; shorten it to generate.");
    const wanted = { temperature, topK, topP, seed, maxTokens: room, stopIds: engine.stopIds, signal };
    for await (const { id } of engine.generate(ids, wanted)) {
      if (signal.aborted) return false;
      if (engine.stopIds.includes(id)) return true; // a sign to stop, no text: taken over it would be cut into pieces
      made.push(id);
      this.text = tokens.decode([...ids, ...made]).slice(tokens.decode(ids).length);
      onText();
    }
    return false;
  }
}

/** Buttons, text and lines to say things in. */
class Panel {
  /** @param {HTMLElement} element */
  constructor(element) {
    const { element: settings, fields } = samplingFields();
    this.fields = fields;
    this.go = h("button", { type: "button", class: "primary", id: "generate", text: "Generate" });
    this.stop = h("button", { type: "button", id: "stop", text: "Stop", hidden: true });
    this.take = h("button", { type: "button", id: "take", text: "Put into the prompt", hidden: true });
    this.output = h("p", { class: "generated", id: "generated", hidden: true, tabindex: -1 });
    this.note = h("p", { class: "small dim", role: "status", id: "generate-note" });
    this.refused = h("p", { class: "small dim", id: "generate-refused" });
    this.progress = stepProgress();
    const buttons = h("div", { class: "row" }, this.go, this.stop, this.take, this.progress.element);
    const sampling = h("details", {}, h("summary", { class: "small", text: "Sampling" }), settings);
    // The output stands above the settings: open, they would push it off the screen.
    element.append(h("div", { class: "generate" }, buttons, this.refused, this.note, this.output, sampling));
    store.on(["shown", "token"], (state) => this.name(state));
  }

  /** @param {string} words @param {boolean} [wrong] */
  say(words, wrong = false) {
    this.note.textContent = words;
    this.note.classList.toggle("error", wrong);
    this.note.classList.toggle("dim", !wrong);
  }

  /** @param {Continuation | null} written @param {boolean} running */
  show(written, running) {
    const text = written?.text ?? "";
    this.output.hidden = text === "";
    this.output.replaceChildren(h("span", { class: "dim", text: written?.from.slice(-60) ?? "" }), h("mark", { text }));
    this.take.hidden = running || text === "";
  }

  /** Whether every setting is one; the first that is not is marked, and why is said. */
  check() {
    const bad = this.fields.find(wrong);
    for (const field of this.fields) field.setAttribute("aria-invalid", String(field === bad));
    if (bad) this.say(wrong(bad) ?? "", true);
    return !bad;
  }

  /** Stop takes the place of Generate, and its focus. */
  begin() {
    this.stop.hidden = false;
    passFocus(this.go, this.stop);
    this.allow(true);
    this.progress.start();
  }

  /** Generate is back in its place. */
  end() {
    this.progress.stop();
    this.allow(false);
    passFocus(this.stop, this.go);
    this.stop.hidden = true;
  }

  /** The button says where it goes on from, unless that is the prompt's end. @param {import("./state.js").State} state */
  name(state) {
    const end = endOf(state);
    const last = end < state.shown.length ? state.shown[end - 1] : null;
    this.go.replaceChildren("Generate");
    if (last) this.go.append(" after ", h("span", { class: "mono" }, ...glyphs(last.glyph, last.text)));
  }

  /** @param {boolean} running */
  allow(running) {
    const why = hindrance();
    this.go.disabled = why !== null || running;
    this.go.title = why ?? "";
    this.refused.textContent = store.state.promptError ? why : "";
  }
}

/** @param {HTMLElement} element */
export function mountGenerate(element) {
  const panel = new Panel(element);
  /** What is on the screen. @type {Continuation | null} */
  let written = null;
  /** @type {Continuation | null} */
  let running = null;
  const run = async () => {
    if (hindrance() !== null || !panel.check()) return;
    const mine = (written = running = new Continuation(store.state));
    panel.begin();
    panel.show(mine, true);
    panel.say("Generating: reading the prompt.");
    const last = await finalWords(mine, () => {
      panel.show(mine, true);
      panel.say(`Generating: ${plural(mine.made.length, "token")} so far.`);
    });
    running = null;
    panel.show(written, false);
    if (written === mine) panel.say(...last); // else its prompt went away meanwhile
    panel.end();
  };
  panel.go.addEventListener("click", () => void run());
  panel.stop.addEventListener("click", () => running?.stopping.abort());
  panel.take.addEventListener("click", () => {
    if (!written) return;
    newEntry();
    // Half a character at its end was never written by the model; it has no place in a text.
    writePrompt(written.from + written.text.replace(/\uFFFD+$/, ""), { now: true });
    goToPrompt();
  });
  store.on(["engine"], () => running?.stopping.abort());
  store.on(["shown", "prompt"], (state) => {
    if (!written || written.belongsTo(state)) return;
    running?.stopping.abort();
    written = null;
    panel.show(null, running !== null);
    panel.say("");
  });
  store.on(["engine", "shown", "stale", "promptError", "prompt"], () => panel.allow(running !== null));
}

/**
 * Write on until the end, and say how it ended.
 * @param {Continuation} mine @param {() => void} onText @returns {Promise<[words: string, wrong: boolean]>}
 */
async function finalWords(mine, onText) {
  const began = performance.now();
  const { signal } = mine.stopping;
  const count = () => plural(mine.made.length, "token");
  try {
    const ended = await mine.write(store.state, onText);
    if (ended && mine.made.length === 0) return [NOTHING, false];
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    if (!signal.aborted) return [`${count()} in ${seconds} s${ended ? "; there the model ended its text" : ""}`, false];
  } catch (error) {
    if (!signal.aborted) return [/** @type {Error} */ (error).message, true];
  }
  return [`Stopped after ${count()}.`, false];
}
