// The model menu: what is here with its size, what is kept in this browser, how to get more.
import { megabytes, partOf } from "../lib/numbers.js";
import { byId, h } from "./dom.js";
import { keptWeightBytes, weightBytes } from "./models.js";
import { openReport } from "./report_panel.js";
import { switchModel } from "./session.js";
import { store } from "./state.js";

/** @typedef {import("./state.js").ModelEntry} ModelEntry */

/** @param {ModelEntry} entry */
const headsWords = ({ shape: { L, N, K } }) => `${L} layers × ${N} heads${K === N ? "" : ` (${K} K/V)`}`;

/** Models that one command brings, for those who do not have them yet. */
const PULLABLE = [
  { id: "smollm2-135m", words: "SmolLM2-135M-Instruct: 30 layers × 9 heads (3 K/V) · 97 MB · Apache-2.0 · not pulled yet" },
];

/** Makes the menu in the top bar. */
export function mountModelMenu() {
  const anchor = byId("model-menu");
  const panel = h("div", { class: "menu", id: "model-panel", hidden: true });
  const button = h("button", {
    type: "button",
    class: "menu-button",
    id: "model-button",
    "aria-expanded": "false",
    "aria-controls": "model-panel",
  });
  anchor.replaceChildren(button, panel);
  const open = (/** @type {boolean} */ wanted) => {
    panel.hidden = !wanted;
    button.setAttribute("aria-expanded", String(wanted));
    if (wanted) void draw(panel, () => open(false));
    else panel.replaceChildren(); // rows of an earlier opening would be replaced under a finger
  };
  button.addEventListener("click", () => open(panel.hidden === true));
  anchor.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    open(false);
    button.focus();
  });
  document.addEventListener("click", (event) => {
    if (!panel.hidden && !event.composedPath().includes(anchor)) open(false);
  });
  store.on(["entry"], ({ entry }) => {
    button.replaceChildren(
      entry ? h("span", { text: entry.name }) : "Model",
      entry ? h("span", { class: "dim small wide-only", text: ` ${headsWords(entry)} · ${megabytes(weightBytes(entry))}` }) : "",
    );
  });
  store.on(["modelStates", "models"], () => panel.hidden || void draw(panel, () => open(false)));
}

/**
 * @param {HTMLElement} panel
 * @param {() => void} close
 */
async function draw(panel, close) {
  const { models } = store.state;
  const here = models.filter((model) => model.files);
  const kept = new Map(await Promise.all(here.map(async (model) => /** @type {const} */ ([model.id, await keptWeightBytes(model)]))));
  const rows = models.map((model) => (model.files ? modelRow(model, kept.get(model.id) ?? 0, close) : refusedRow(model)));
  const pullable = PULLABLE.filter(({ id }) => !models.some((model) => model.id === id)).map(({ id, words }) =>
    h("li", { class: "menu-row" }, h("div", {}, h("strong", { text: id }), h("p", { class: "small dim", text: words })), command(id)),
  );
  const more = h(
    "p",
    { class: "small dim" },
    "More: ",
    h("code", { text: "playground pull OWNER/NAME" }),
    " takes Llama, Qwen2, Qwen3, Mistral and SmolLM3 checkpoints from the Hugging Face hub, or a folder.",
  );
  panel.replaceChildren(h("ul", { "aria-label": "Models" }, ...rows, ...pullable), more);
}

/** A model that cannot be run, with the reason. @param {ModelEntry} model */
function refusedRow(model) {
  const why = /** @type {any} */ (model).refused ?? "not pulled yet";
  return h("li", { class: "menu-row" }, h("strong", { text: model.name }), h("p", { class: "small dim", text: why }), command(model.id));
}

/**
 * A model with what is kept of it in this browser, and the button that takes it.
 * @param {ModelEntry} model @param {number} keptBytes @param {() => void} close
 */
function modelRow(model, keptBytes, close) {
  const { entry, modelStates, engine, progress } = store.state;
  const chosen = model.id === entry?.id;
  const bytes = weightBytes(model);
  const part = keptBytes > 0 && keptBytes < bytes;
  const kept = part ? `${partOf(keptBytes, bytes)} kept here` : keptBytes ? "kept in this browser" : "not in this browser yet";
  const label = chosen && engine ? "In use" : chosen && progress ? "Loading" : part ? "Resume" : "Use";
  const disabled = chosen && (engine !== null || progress !== null);
  const use = h("button", { type: "button", text: label, disabled, "aria-label": `${label}: ${model.name}` });
  use.addEventListener("click", () => {
    close();
    byId("model-button").focus();
    switchModel(model.id).catch(() => {}); // a notice says what went wrong
  });
  const stops = chosen && progress?.cancel && !engine;
  const cancel = stops ? h("button", { type: "button", text: "Cancel", onclick: () => progress.cancel?.() }) : null;
  const about = h(
    "div",
    {},
    h("strong", { text: model.name }),
    h("p", { class: "small dim", text: `${headsWords(model)} · ${megabytes(bytes)} · ${model.licence}` }),
    h("p", { class: "small", text: (chosen && modelStates[model.id]) || kept }),
    ...reportLines(model, close),
    h("p", { class: "small dim mono hash", title: model.hash, text: `sha256 ${model.hash.slice(0, 16)}…` }),
  );
  return h("li", { class: "menu-row", "aria-current": chosen }, about, cancel, use);
}

/** @param {string} id */
const command = (id) => h("code", { text: `playground pull ${id}` });

/**
 * What was measured of a model's heads, or one line that says why there is nothing to see.
 * @param {ModelEntry} model
 * @param {() => void} close
 */
function reportLines(model, close) {
  const { heads, depth, problems } = model.report;
  const measured = heads.length > 0 || Object.keys(depth).length > 0;
  const show = () => {
    close();
    byId("model-button").focus(); // this button is hidden by then: the dialog gives the focus back to the one that opens the menu
    openReport(model);
  };
  const none = h("p", { class: "small dim", text: "Its heads were not measured; the wall scores them on your prompt." });
  const button = h("button", { type: "button", class: "report-button", text: "What its heads do", "aria-label": `What its heads do: ${model.name}`, onclick: show });
  return [measured ? button : problems.length ? null : none, ...problems.map((text) => h("p", { class: "small problem", text }))];
}
