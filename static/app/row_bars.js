// One query's weights over its keys, largest first: the numbers behind one row of the heatmap.
import { plural, share } from "../lib/numbers.js";
import { glyphs } from "./glyphs.js";
import { h } from "./dom.js";
import { pieceOf, store } from "./state.js";

const MOST = 8;

/**
 * A list of bars with a name and a value each; used for weights and for probabilities.
 * @param {{name: string, text?: string, value: number, about: string, chosen?: boolean, note?: string, run?: () => void}[]} rows
 *   value: 0..1; text: of a token, whose glyph is the name
 * @returns {HTMLElement[]} list items
 */
function barRows(rows) {
  return rows.map(({ name, text, value, about, chosen, run, note }) => {
    const fill = h("span", { class: "bar-fill" });
    fill.style.width = `${Math.max(0.5, value * 100)}%`;
    const inside = [
      h("span", { class: "bar-name", title: note }, ...glyphs(name, text)),
      h("span", { class: "bar-track", "aria-hidden": "true" }, fill),
      h("span", { class: "bar-value", text: share(value) }),
    ];
    const bar = run
      ? h("button", { type: "button", class: "bar", "aria-description": about, "aria-pressed": String(chosen === true) }, ...inside)
      : h("div", { class: "bar" }, ...inside);
    if (run) bar.addEventListener("click", run);
    return h("li", {}, bar);
  });
}

/**
 * A list of bars that is one stop of the Tab key: the arrow keys, Home and End go through its rows.
 * @param {import("./dom.js").Props} props
 * @returns {HTMLOListElement} filled by `fillBars`
 */
export function barList(props) {
  const list = h("ol", props);
  list.addEventListener("keydown", (event) => {
    const bars = buttonsOf(list);
    const at = bars.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const last = bars.length - 1;
    const goes = { ArrowUp: at - 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (at < 0 || goes === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    rove(bars, Math.max(0, Math.min(last, goes))).focus();
  });
  return list;
}

/**
 * Replaces the rows of a list of bars; the focus stays at its place in the list.
 * @param {HTMLElement} list
 * @param {Parameters<typeof barRows>[0]} rows
 */
export function fillBars(list, rows) {
  const focused = buttonsOf(list).indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  list.replaceChildren(...barRows(rows));
  const bars = buttonsOf(list);
  if (bars.length === 0) return;
  const chosen = rows.findIndex((row) => row.chosen);
  const stop = rove(bars, Math.max(0, Math.min(bars.length - 1, focused >= 0 ? focused : chosen)));
  if (focused >= 0) stop.focus({ preventScroll: true });
}

/**
 * Replaces the rows by tokens and their probabilities; a click follows the token's rank.
 * @param {HTMLElement} list @param {{id: number, logprob: number}[]} best @param {number | null} chosen the token that is followed
 */
export function fillTokens(list, best, chosen) {
  fillBars(
    list,
    best.map(({ id, logprob }) => ({
      name: pieceOf(id).glyph,
      text: pieceOf(id).text,
      value: Math.exp(logprob),
      chosen: id === chosen,
      note: `id ${id}`,
      about: "probability; choose to follow its rank",
      run: () => store.set({ target: id }),
    })),
  );
}

/** @param {HTMLElement} list */
const buttonsOf = (list) => /** @type {HTMLButtonElement[]} */ (Array.from(list.querySelectorAll("button.bar")));

/** Makes one bar the stop of the Tab key. @param {HTMLButtonElement[]} bars @param {number} stop */
function rove(bars, stop) {
  bars.forEach((bar, i) => (bar.tabIndex = i === stop ? 0 : -1));
  return bars[stop];
}

export class RowBars {
  /**
   * @param {HTMLElement} lock the switch that keeps the bars with the selected row
   * @param {(key: number) => void} choose
   */
  constructor(lock, choose) {
    this.choose = choose;
    this.title = h("h3", { id: "row-title" });
    this.list = barList({ class: "bars two-columns", "aria-labelledby": "row-title" });
    this.element = h(
      "div",
      { class: "row-bars", id: "row-bars" },
      h("div", { class: "row" }, this.title, h("span", { class: "spacer" }), lock),
      this.list,
    );
  }

  /**
   * @param {Float32Array} weights [T]; NaN is masked or left out
   * @param {import("./state.js").Piece[]} tokens
   * @param {number} row
   * @param {number | null} key the selected key
   */
  show(weights, tokens, row, key) {
    const order = Array.from(weights.keys()).filter((i) => !Number.isNaN(weights[i]));
    order.sort((a, b) => weights[b] - weights[a] || a - b);
    const more = order.length - MOST;
    const rest = order.slice(MOST).reduce((sum, i) => sum + weights[i], 0);
    this.title.replaceChildren(
      `Query ${row} `,
      h("span", { class: "mono ink" }, ...glyphs(tokens[row]?.glyph ?? "", tokens[row]?.text)),
      more > 0 ? ` reads (${plural(more, "more key")} ${more === 1 ? "has" : "share"} ${share(rest)})` : " reads",
    );
    fillBars(
      this.list,
      order.slice(0, MOST).map((i) => ({
        name: tokens[i]?.glyph ?? "",
        text: tokens[i]?.text,
        value: weights[i],
        chosen: i === key,
        note: `key ${i}`,
        about: `weight of key ${i}; choose to mark its cell`,
        run: () => this.choose(i),
      })),
    );
  }
}
