// Writing on from the prompt: sampling settings, a stop button, and the text back into the prompt.
import { SAMPLING_RANGES } from "../lib/permalink.js";
import { plural } from "../lib/numbers.js";
import { h, passFocus } from "./dom.js";
import { writePrompt } from "./examples.js";
import { stepProgress } from "./progress.js";
import { goToPrompt } from "./prompt.js";
import { store } from "./state.js";

/** Field of the view, id, label, step, what it does. The link holds them too. */
const SETTINGS = /** @type {const} */ ([
  ["temperature", "temperature", "Temperature", 0.1, "0 always takes the likeliest token"],
  ["topK", "top-k", "Top k", 1, "keeps the k likeliest tokens; 0 keeps all"],
  ["topP", "top-p", "Top p", 0.01, "keeps the likeliest tokens that hold this share of probability; 1 keeps all"],
  ["seed", "seed", "Seed", 1, "the same seed gives the same text"],
  ["maxTokens", "max-tokens", "Tokens", 1, "stops after this many"],
]);

const NOTHING = "For the model the text ends here: 0 tokens. Another prompt, or a temperature above 0, may go on.";
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
  const element = h("div", { class: "sampling" });
  const fields = SETTINGS.map(([name, id, label, step, about]) => {
    const [min, max] = SAMPLING_RANGES[name];
    const field = h("input", { type: "number", id: `sampling-${id}`, min, max, step, title: about });
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

/** @param {HTMLElement} panel */
export function mountGenerate(panel) {
  const { element: settings, fields } = samplingFields();
  const go = h("button", { type: "button", class: "primary", id: "generate", text: "Generate" });
  const stop = h("button", { type: "button", id: "stop", text: "Stop", hidden: true });
  const take = h("button", { type: "button", id: "take", text: "Put into the prompt", hidden: true });
  const output = h("p", { class: "generated", id: "generated", hidden: true, tabindex: -1 });
  const note = h("p", { class: "small dim", role: "status", id: "generate-note" });
  const progress = stepProgress();
  const refused = h("p", { class: "small dim", id: "generate-refused" });
  panel.append(
    h(
      "div",
      { class: "generate" },
      h("div", { class: "row" }, go, stop, take, progress.element),
      refused,
      note,
      output, // above the settings: open, they would push it off the screen
      h("details", {}, h("summary", { class: "small", text: "Sampling" }), settings),
    ),
  );

  /** @type {AbortController | null} */
  let running = null;
  let text = "";
  let from = "";
  /** Ids of the prompt that the text was written on from. */
  let base = "";
  /** @param {string} words @param {boolean} [wrong] */
  const say = (words, wrong = false) => {
    note.textContent = words;
    note.classList.toggle("error", wrong);
    note.classList.toggle("dim", !wrong);
  };
  const show = () => {
    output.hidden = text === "";
    output.replaceChildren(h("span", { class: "dim", text: from.slice(-60) }), h("mark", { text }));
  };
  const run = async () => {
    const { engine, tokens, shown, entry, prompt } = store.state;
    if (!engine || !tokens || hindrance() !== null) return;
    const bad = fields.find(wrong);
    for (const field of fields) field.setAttribute("aria-invalid", String(field === bad));
    if (bad) return say(wrong(bad) ?? "", true);
    running = new AbortController();
    const mine = running;
    [text, from] = ["", prompt];
    stop.hidden = false;
    passFocus(go, stop);
    go.disabled = true;
    take.hidden = true;
    show();
    say("Generating: reading the prompt.");
    progress.start();
    const ids = shown.map((piece) => piece.id);
    base = ids.join();
    /** @type {number[]} */
    const made = [];
    let ended = false;
    const began = performance.now();
    try {
      const { maxTokens, temperature, topK, topP, seed } = store.state;
      const sampling = { temperature, topK, topP, seed };
      const room = Math.min(maxTokens, (entry?.max_tokens ?? 0) - ids.length);
      if (room < 1) throw new Error("The prompt already fills the model's context; shorten it to generate.");
      for await (const { id } of engine.generate(ids, { ...sampling, maxTokens: room, stopIds: engine.stopIds, signal: mine.signal })) {
        if (mine.signal.aborted) break;
        ended = engine.stopIds.includes(id);
        if (ended) break; // a sign to stop, no text: taken over it would be cut into pieces
        made.push(id);
        text = tokens.decode([...ids, ...made]).slice(tokens.decode(ids).length);
        show();
        say(`Generating: ${plural(made.length, "token")} so far.`);
      }
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const end = ended ? "; there the model ended its text" : "";
      const none = ended && made.length === 0;
      if (mine.signal.aborted) say(`Stopped after ${plural(made.length, "token")}.`);
      else say(none ? NOTHING : `${plural(made.length, "token")} in ${seconds} s${end}`);
    } catch (error) {
      const stopped = mine.signal.aborted;
      if (stopped) say(`Stopped after ${plural(made.length, "token")}.`);
      else say(/** @type {Error} */ (error).message, true);
    }
    running = null;
    progress.stop();
    if (base === "") forget(); // its prompt went away meanwhile
    allow();
    passFocus(stop, go);
    stop.hidden = true;
    take.hidden = text === "";
  };
  const forget = () => {
    [text, from, base] = ["", "", ""];
    take.hidden = true;
    show();
    say("");
  };
  go.addEventListener("click", () => void run());
  stop.addEventListener("click", () => running?.abort());
  take.addEventListener("click", () => {
    writePrompt(from + text, { now: true });
    goToPrompt();
  });
  store.on(["engine"], () => running?.abort());
  // What was written on belongs to one prompt, as text and as tokens: with another in the box or in the picture it goes.
  store.on(["shown", "prompt"], ({ shown, prompt }) => {
    if (base === "" || (prompt === from && shown.map((piece) => piece.id).join() === base)) return;
    running?.abort();
    forget();
  });
  const allow = () => {
    const why = hindrance();
    go.disabled = why !== null || running !== null;
    go.title = why ?? "";
    refused.textContent = store.state.promptError ? why : "";
  };
  store.on(["engine", "shown", "stale", "promptError", "prompt"], allow);
}
