// The example prompts as buttons under the prompt box, and the line that says what the chosen one shows.
import { IdTokens } from "../lib/id_tokens.js";
import { h, toggle } from "./dom.js";
import { newEntry } from "./link.js";
import { examplesOf } from "./openings.js";
import { setPrompt } from "./session.js";
import { chosenHead, store, wish, wished } from "./state.js";

/** Shows an example: its prompt, its head, its query row. @param {import("./openings.js").Example} example */
function openExample({ prompt, layer, head, token, key }) {
  newEntry();
  setPrompt(prompt, { now: true, view: { layer, head, token, key, depth: null, target: null, zoom: null } });
}

/**
 * Whether the head and the row of an example are the ones that are looked at; one without a claim is about no head.
 * @param {import("./state.js").State} state
 * @param {import("./openings.js").Example} example
 */
function looksAt(state, { layer, head, token, says }) {
  const [open, meant] = [chosenHead(state), chosenHead({ ...state, layer, head })];
  const row = (/** @type {number | null} */ at) => Math.min(at ?? Infinity, state.typed.length - 1);
  return says === null || (open.layer === meant.layer && open.head === meant.head && row(state.token) === row(token));
}

/**
 * Takes a prompt that a person writes: what an example had selected in its own text is let go.
 * @param {string} text
 * @param {Parameters<typeof setPrompt>[1]} [options]
 */
export function writePrompt(text, options) {
  const { entry, prompt } = store.state;
  if (examplesOf(entry).some((example) => example.prompt === prompt)) options = { ...options, view: { token: null, key: null } };
  setPrompt(text, options);
}

/** Leads back to what an example's sentence is about. @param {import("./openings.js").Example} example */
function elsewhere({ layer, head, token, key }) {
  return h("button", {
    type: "button",
    class: "quiet",
    id: "example-back",
    text: "Look there",
    onclick: () => {
      const view = { layer, head, token, key };
      if (store.state.stale) wish(view);
      else store.set(view);
      // The button goes with what it said; the example that is lit again takes the focus.
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(".example[aria-pressed=true]"))?.focus());
    },
  });
}

const OWN = "Each example names a head to look at, and why.";

/** @returns {{buttons: HTMLElement, says: HTMLElement}} both keep themselves up to date */
export function examples() {
  const list = h("span", { class: "examples-list" });
  const buttons = h(
    "div",
    { class: "examples", role: "group", "aria-label": "Example prompts" },
    h("span", { class: "small dim", text: "Examples" }),
    list,
  );
  const says = h("p", { id: "example-says", class: "example-says" });
  store.on(["entry", "tokens"], ({ entry, tokens }) => {
    buttons.hidden = tokens instanceof IdTokens || !entry;
    list.replaceChildren(
      ...examplesOf(entry).map((example) => {
        const props = { class: "toggle example", "aria-describedby": example.says ? "example-says" : null };
        return toggle(example.title, false, () => openExample(example), props);
      }),
    );
  });
  store.on(["entry", "tokens", "prompt", "typed", "layer", "head", "token", "coming"], (shown) => {
    const state = wished(shown);
    const { entry, tokens, prompt } = state;
    const known = examplesOf(entry);
    const same = known.flatMap((example, i) => (example.prompt === prompt ? [i] : [])); // one text may be offered for two heads
    const chosen = same.find((i) => looksAt(state, known[i])) ?? same[0] ?? -1;
    const lit = chosen >= 0 && looksAt(state, known[chosen]) ? chosen : -1;
    Array.from(list.children).forEach((button, i) => button.setAttribute("aria-pressed", String(i === lit)));
    const claim = known[chosen]?.says ?? null;
    says.textContent = claim ?? OWN;
    if (claim && lit < 0) says.append(" ", elsewhere(known[chosen]));
    says.classList.toggle("dim", lit < 0);
    says.hidden = tokens instanceof IdTokens || !entry || known[0].says === null;
  });
  return { buttons, says };
}
