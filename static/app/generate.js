// Writing on from the prompt: sampling settings, a stop button, and the text back into the prompt.
import { plural } from "../lib/numbers.js";
import { h } from "./dom.js";
import { setPrompt } from "./session.js";
import { store } from "./state.js";

/** id, label, first value, smallest, largest, step, what it does */
const SETTINGS = /** @type {const} */ ([
  ["temperature", "Temperature", 0, 0, 5, 0.1, "0 always takes the likeliest token"],
  ["top-k", "Top k", 0, 0, 100000, 1, "keeps the k likeliest tokens; 0 keeps all"],
  ["top-p", "Top p", 1, 0.01, 1, 0.01, "keeps the likeliest tokens that hold this share of probability; 1 keeps all"],
  ["seed", "Seed", 1, 0, 4294967295, 1, "the same seed gives the same text"],
  ["max-tokens", "Tokens", 24, 1, 512, 1, "stops after this many"],
]);

/** @param {HTMLElement} panel */
export function mountGenerate(panel) {
  /** @type {Record<string, HTMLInputElement>} */
  const fields = {};
  const settings = h("div", { class: "sampling" });
  for (const [id, label, value, min, max, step, about] of SETTINGS) {
    fields[id] = h("input", { type: "number", id: `sampling-${id}`, value, min, max, step, title: about });
    settings.append(h("label", { for: `sampling-${id}`, text: label, title: about }), fields[id]);
  }
  const go = h("button", { type: "button", class: "primary", id: "generate", text: "Generate" });
  const stop = h("button", { type: "button", id: "stop", text: "Stop", hidden: true });
  const take = h("button", { type: "button", id: "take", text: "Put into the prompt", hidden: true });
  const output = h("p", { class: "generated", id: "generated", hidden: true, tabindex: -1 });
  const note = h("p", { class: "small dim", role: "status", id: "generate-note" });
  panel.append(
    h(
      "div",
      { class: "generate" },
      h("div", { class: "row" }, go, stop, take),
      h("details", {}, h("summary", { class: "small", text: "Sampling" }), settings),
      output,
      note,
    ),
  );

  /** @type {AbortController | null} */
  let running = null;
  let text = "";
  let from = "";
  const show = () => {
    output.hidden = text === "";
    output.replaceChildren(h("span", { class: "dim", text: from.slice(-60) }), h("mark", { text }));
  };
  const read = () => ({
    temperature: number(fields.temperature),
    topK: number(fields["top-k"]),
    topP: number(fields["top-p"]),
    seed: number(fields.seed),
    maxTokens: number(fields["max-tokens"]),
  });
  const run = async () => {
    const { engine, tokens, shown, entry, prompt } = store.state;
    if (!engine || !tokens || shown.length === 0) return;
    const wrong = Object.values(fields).find((field) => !field.checkValidity() || field.value === "");
    if (wrong) return void (note.textContent = `${wrong.labels?.[0].textContent} must be between ${wrong.min} and ${wrong.max}.`);
    running = new AbortController();
    [text, from] = ["", prompt];
    go.disabled = true;
    stop.hidden = false;
    take.hidden = true;
    note.textContent = "";
    const ids = shown.map((piece) => piece.id);
    /** @type {number[]} */
    const made = [];
    const began = performance.now();
    try {
      const { maxTokens, ...sampling } = read();
      const room = Math.min(maxTokens, (entry?.max_tokens ?? 0) - ids.length);
      if (room < 1) throw new Error("The prompt already fills the model's context; shorten it to generate.");
      for await (const { id } of engine.generate(ids, { ...sampling, maxTokens: room, stopIds: engine.stopIds, signal: running.signal })) {
        made.push(id);
        text = tokens.decode([...ids, ...made]).slice(tokens.decode(ids).length);
        show();
        note.textContent = plural(made.length, "token");
      }
      note.textContent = `${plural(made.length, "token")} in ${((performance.now() - began) / 1000).toFixed(1)} s`;
    } catch (error) {
      const stopped = running.signal.aborted;
      note.textContent = stopped ? `Stopped after ${plural(made.length, "token")}.` : /** @type {Error} */ (error).message;
    }
    running = null;
    go.disabled = false;
    stop.hidden = true;
    take.hidden = text === "";
  };
  go.addEventListener("click", () => void run());
  stop.addEventListener("click", () => running?.abort());
  take.addEventListener("click", () => setPrompt(from + text, { now: true }));
  store.on(["engine"], () => running?.abort());
  store.on(["engine", "shown"], ({ engine, shown }) => (go.disabled = !engine || shown.length === 0 || running !== null));
}

/** @param {HTMLInputElement} field */
const number = (field) => Number(field.value);
