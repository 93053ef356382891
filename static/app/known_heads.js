// Under the wall of a model that was measured: the best head for each job, one click from being opened.
import { h } from "./dom.js";
import { barList, fillBars } from "./row_bars.js";
import { openReport } from "./report_panel.js";
import { NAMED, SCORES, measuredOn } from "./scores.js";
import { chosenHead, store } from "./state.js";

/** @returns {HTMLElement} keeps itself up to date; hidden where nothing was measured */
export function knownHeads() {
  const list = barList({ class: "bars", "aria-labelledby": "known-title" });
  const show = () => store.state.entry && openReport(store.state.entry);
  const how = h("button", { type: "button", class: "quiet", text: "How measured", onclick: show });
  const title = h("div", { class: "row" }, h("h3", { id: "known-title", text: "Measured beforehand" }), h("span", { class: "spacer" }), how);
  const element = h("div", { id: "known-heads", hidden: true }, title, list);
  store.on(["entry", "layer", "head", "trace"], (state) => {
    const { heads = [], scores = [] } = state.entry?.report ?? {};
    const open = chosenHead(state);
    const best = scores.map((score) => ({ score, found: heads.reduce((a, b) => (b[score] > a[score] ? b : a)) }));
    const known = best.filter(({ score, found }) => found[score] >= NAMED);
    element.hidden = known.length === 0;
    fillBars(
      list,
      known.map(({ score, found: { layer, head, ...values } }) => ({
        name: `L${layer} H${head} ${SCORES[score].name}`,
        value: /** @type {any} */ (values)[score],
        chosen: layer === open.layer && head === open.head,
        note: measuredOn(state.entry, score),
        about: `${[SCORES[score].about, measuredOn(state.entry, score)].filter(Boolean).join("; ")}; choose to open this head`,
        run: () => store.set({ layer, head }),
      })),
    );
  });
  return element;
}
