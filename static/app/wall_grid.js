// The cells of the wall: one element per head, with its name for screen readers, its mark, and in a list its caption.
import { h } from "./dom.js";
import { knownFor } from "./scores.js";
import { store } from "./state.js";

/** @typedef {import("./wall_layout.js").Heads} Heads */
/** @typedef {import("./wall_layout.js").Layout} Layout */
/** @typedef {import("./wall_layout.js").Place} Place */

/** A caption stands clear of the frame around the open head: 2 px wide, 1 px off. */
const FRAME_PX = 4;

/** @param {EventTarget | null} target @returns {Place | null} of the cell that the target is or lies in */
export function placeOf(target) {
  const cell = target instanceof Element ? target.closest("[role='gridcell']") : null;
  const found = cell?.id.match(/^head-(\d+)-(\d+)$/);
  return found ? { layer: Number(found[1]), head: Number(found[2]) } : null;
}

/**
 * A head's name, its group, and what it is known for.
 * @param {Heads} heads
 * @param {Place} place
 */
export function headWords({ N, K }, { layer, head }) {
  const known = knownFor(store.state.entry, layer, head);
  return [`L${layer} H${head}, K/V group ${Math.floor(head / (N / K))}`, ...known].join(", ");
}

/**
 * What is written around the thumbnails: head numbers above the layers, or a caption under each listed head.
 * @param {Heads} heads
 * @param {Layout} layout
 * @param {(place: Place) => string} caption second line under a listed head
 */
export function wallNames({ N }, layout, caption) {
  const names = h("div", { class: layout.listed ? "wall-captions" : "wall-heads", "aria-hidden": "true" });
  const every = layout.listed || layout.size >= 16 ? 1 : 4;
  const named = layout.listed ? layout.rows.flat() : (layout.rows[0] ?? []).filter(({ head }) => head % every === 0 && head < N);
  for (const place of named) {
    const { layer, head } = place;
    const { x, y } = /** @type {{x: number, y: number}} */ (layout.at(layer, head));
    const name = layout.listed ? h("span", {}, `L${layer} H${head}`, h("br"), caption(place)) : h("span", { text: head === 0 ? "H0" : head });
    Object.assign(name.style, { left: `${x}px`, width: `${layout.size}px`, top: layout.listed ? `${y + layout.size + FRAME_PX}px` : "0" });
    names.append(name);
  }
  return names;
}

/**
 * Rows of cells; where layers go down, each with its layer number.
 * @param {Heads} heads
 * @param {Layout} layout
 * @param {(place: Place) => string} caption what a listed head's score is
 */
export function gridRows(heads, layout, caption) {
  const every = heads.L > 12 ? 5 : 1;
  return layout.rows.map((places, i) => {
    const cells = places.map((place) => gridCell(heads, layout, place, caption));
    return h("div", { role: "row" }, layout.listed ? null : layerName(layout, i, i % every === 0), ...cells);
  });
}

/** @param {Layout} layout @param {number} layer @param {boolean} shown */
function layerName(layout, layer, shown) {
  const name = h("div", { role: "rowheader", class: "wall-layer", "aria-label": `layer ${layer}`, text: shown ? layer : "" });
  Object.assign(name.style, { top: `${layout.at(layer, 0)?.y}px`, height: `${layout.size}px`, lineHeight: `${layout.size}px` });
  return name;
}

/** @param {Heads} heads @param {Layout} layout @param {Place} place @param {(place: Place) => string} caption */
function gridCell(heads, layout, place, caption) {
  const { layer, head } = place;
  const known = knownFor(store.state.entry, layer, head).length > 0;
  const cell = h("div", {
    id: `head-${layer}-${head}`,
    role: "gridcell",
    tabindex: -1,
    "aria-selected": "false",
    class: known ? "known" : null,
    "aria-label": headWords(heads, place),
  });
  const spot = layout.at(layer, head);
  Object.assign(cell.style, { left: `${spot?.x}px`, top: `${spot?.y}px`, width: `${layout.size}px`, height: `${layout.size}px` });
  if (layout.listed) {
    const words = caption(place);
    if (words) cell.setAttribute("aria-description", words);
  }
  return cell;
}
