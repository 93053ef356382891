// The next token at the selected position, as the model's own logits give it.
import { topTokens } from "../lib/maths.js";
import { askAhead } from "./ahead.js";
import { glyphs } from "./glyphs.js";
import { byId, h } from "./dom.js";
import { mountGenerate } from "./generate.js";
import { barList, fillTokens } from "./row_bars.js";
import { WAITING_FOR, isCurrent, position, store, waiting } from "./state.js";

/** @typedef {import("./state.js").Trace} Trace */

/** The likeliest next tokens at a position of a trace: those that were asked for last are not asked for again. */
function keptLast() {
  /** @type {{trace: Trace, place: number, best: Promise<{id: number, logprob: number}[]>} | null} */
  let last = null;
  return (/** @type {Trace} */ trace, /** @type {number} */ place) => {
    if (last?.trace === trace && last.place === place) return last.best;
    const best = trace.logits(place).then((logits) => topTokens(logits, 10));
    last = { trace, place, best };
    best.catch(() => (last = null)); // it may come the next time
    return best;
  };
}

/** Fills the prediction panel. */
export function mountPrediction() {
  const panel = byId("next");
  const list = barList({ class: "bars picture", id: "next-bars", "aria-labelledby": "next-title" });
  const note = h("p", { class: "small dim" });
  panel.append(note, list);
  mountGenerate(panel);

  const bestOf = keptLast();
  askAhead("prediction", (state) => bestOf(/** @type {Trace} */ (state.trace), position(state)));
  store.on(["trace", "token", "tokens"], async (state) => {
    const { trace } = state;
    const place = position(state);
    if (!trace) {
      store.set({ next: null });
      return list.replaceChildren();
    }
    try {
      const best = await bestOf(trace, place);
      if (store.state.trace === trace && position(store.state) === place) store.set({ next: { trace, position: place, best } });
    } catch (error) {
      if (store.state.trace === trace) note.textContent = /** @type {Error} */ (error).message;
    }
  });
  store.on([...WAITING_FOR], ({ trace }) => {
    if (!trace) note.textContent = waiting("Type a prompt to see what comes next.");
  });
  store.on(["next", "target"], ({ next, shown, target }) => {
    byId("next-title").replaceChildren("Next token");
    if (!next) return list.replaceChildren();
    note.textContent = "";
    byId("next-title").append(" after ", h("span", { class: "mono" }, ...glyphs(shown[next.position]?.glyph ?? "", shown[next.position]?.text)));
    fillTokens(list, next.best, target);
  });
  store.on(["stale", "token", "trace", "next"], (state) => {
    list.classList.toggle("stale", state.stale || (state.next !== null && !isCurrent(state)));
  });
}
