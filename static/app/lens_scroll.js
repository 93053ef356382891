// What says that the lens has more positions than are in view, and leads to them: a shade at the sides where there are more, and
// a line with buttons, since whole columns end at the edge and a scroll bar may be hidden.
import { count } from "../lib/numbers.js";
import { h } from "./dom.js";

/** @typedef {{first: number, end: number, T: number}} Seen whole columns in view: first..end-1 of T */

/**
 * @param {HTMLElement} grid what scrolls
 * @param {(columns: number) => void} page goes so many columns on; negative: back
 * @returns {{element: HTMLElement, fit: (width: number | null) => void, show: (seen: Seen) => void}} fit: CSS pixels of what is
 *   in view; null: all there are
 */
export function lensScroll(grid, page) {
  let shown = 1;
  const button = (/** @type {string} */ text, /** @type {number} */ way) =>
    h("button", { type: "button", class: "quiet", text, "aria-label": `${text} positions`, onclick: () => page(way * shown) });
  const [earlier, later] = [button("Earlier", -1), button("Later", 1)];
  const range = h("span", { class: "small dim", id: "lens-range" });
  const pager = h("div", { class: "pager", hidden: true }, earlier, range, later);
  const box = h("div", { class: "lens-box" }, grid);
  const show = (/** @type {Seen} */ { first, end, T }) => {
    shown = Math.max(1, end - first);
    const more = { before: first > 0, after: end < T };
    for (const [side, there] of Object.entries(more)) box.classList.toggle(`more-${side}`, there);
    pager.hidden = !more.before && !more.after;
    range.textContent = `positions ${count(first)}–${count(end - 1)} of ${count(T)}`;
    // Not disabled: a button that has the focus would lose it at the end.
    earlier.setAttribute("aria-disabled", String(!more.before));
    later.setAttribute("aria-disabled", String(!more.after));
  };
  const fit = (/** @type {number | null} */ width) => void (box.style.width = width === null ? "" : `${width}px`);
  return { element: h("div", {}, box, pager), fit, show };
}
