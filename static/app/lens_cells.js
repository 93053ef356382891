// The elements of the lens: a row for each depth with its label, a cell for each position in view.
import { cividis, inkOn } from "../lib/colours.js";
import { share } from "../lib/numbers.js";
import { glyphs, spelled } from "./glyphs.js";
import { h } from "./dom.js";
import { pieceOf, store } from "./state.js";

/** @param {number} depth a row of the lens, 0..L: layers are counted from 0, as in the wall */
export const depthWords = (depth) => (depth === 0 ? "embedding" : `after layer ${depth - 1}`);
/** @param {number} depth the same, short */
export const depthName = (depth) => (depth === 0 ? "emb" : `L${depth - 1}`);
/** @param {number} L @returns {string[]} names of all rows from the embedding on */
export const depthNames = (L) => Array.from({ length: L + 1 }, (_, depth) => depthName(depth));

/**
 * @param {number | null} layer null: the row of token names
 * @param {number} width CSS pixels of all columns
 */
export function lensRow(layer, width) {
  const label =
    layer === null
      ? h("div", { role: "columnheader", class: "lens-label" }, h("span", { class: "visually-hidden", text: "layers" }))
      : h("div", { role: "rowheader", class: "lens-label", text: depthName(layer), "aria-label": depthWords(layer) });
  const row = h("div", { role: "row", class: layer === null ? "lens-row names" : "lens-row", "data-layer": layer ?? "" }, label);
  row.style.width = `${width}px`;
  return row;
}

/** @param {HTMLElement} cell @param {number} left @param {number} width */
function place(cell, left, width) {
  cell.style.left = `${left}px`;
  cell.style.width = `${width}px`;
  return cell;
}

/** The name of a position. @param {number} position @param {number} left @param {number} width */
export function nameCell(position, left, width) {
  const { glyph = "", text = "" } = store.state.shown[position] ?? {};
  const name = glyphs(glyph, text);
  return place(h("div", { role: "columnheader", class: "lens-name", "aria-colindex": position + 2 }, ...name), left, width);
}

/** A cell that waits for its numbers. @param {number} layer @param {number} position @param {number} left @param {number} width */
export function lensCell(layer, position, left, width) {
  const id = `lens-${layer}-${position}`;
  return place(h("div", { role: "gridcell", class: "lens-cell pending", "aria-colindex": position + 2, tabindex: -1, id }), left, width);
}

/**
 * @param {HTMLElement} cell
 * @param {number} layer
 * @param {number} position
 * @param {import("./lens_data.js").LensCell | undefined} found
 */
export function paintCell(cell, layer, position, found) {
  const where = `${depthWords(layer)}, position ${position} ${spelled(store.state.shown[position])}`;
  if (!found) return cell.setAttribute("aria-label", `${where}: not computed yet`);
  const probability = Math.exp(found.logprobs[0]);
  const colour = cividis(probability);
  const piece = pieceOf(found.ids[0]);
  cell.setAttribute("aria-label", `${where}: ${spelled(piece)} ${share(probability)}`);
  cell.classList.remove("pending");
  cell.style.backgroundColor = `rgb(${colour.join(" ")})`;
  cell.style.color = inkOn(colour);
  cell.replaceChildren(...glyphs(piece.glyph, piece.text));
}
