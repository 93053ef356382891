// Token names beside a picture, as text of the document. At most some sixty per axis: on a long prompt every n-th with its
// number, so that the page never holds one element per cell or per token.
import { glyphs } from "./glyphs.js";
import { h } from "./dom.js";

/** Nearer than this two names would touch: lines of 12 px; those across the top stand 60° up, so that 15 px are 13 between them. */
const ROOM_PX = { row: 12, column: 15 };

/**
 * Which positions get a name: the chosen one, then those to be named first, then every n-th that none of them crowds out.
 * @param {{from: number, size: number, length: number, chosen: number | null, strong: number[]}} range
 * @param {number} room CSS pixels between two names
 * @returns {number[]} in the order of the axis
 */
function named({ from, size, length, chosen, strong }, room) {
  const least = Math.max(1, Math.ceil((room * size) / length));
  const nice = [1, 2, 3, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000].find((n) => n >= least) ?? least;
  const first = Math.ceil(from / nice) * nice;
  const grid = Array.from({ length: Math.max(0, Math.ceil((from + size - first) / nice)) }, (_, i) => first + i * nice);
  /** @type {number[]} */
  const places = [];
  for (const place of [...(chosen === null ? [] : [chosen]), ...strong, ...grid]) {
    const inside = place >= from && place < from + size;
    if (inside && places.every((other) => (Math.abs(other - place) * length) / size >= room)) places.push(place);
  }
  return places.sort((a, b) => a - b);
}

/**
 * @param {HTMLElement} axis filled anew
 * @param {"row" | "column"} direction
 * @param {import("./state.js").Piece[]} tokens of the whole prompt
 * @param {{from: number, size: number, length: number, chosen: number | null, strong: number[]}} range length: CSS pixels of
 *   the axis; strong: positions that are named before their neighbours
 * @param {(position: number) => void} choose
 */
export function drawAxis(axis, direction, tokens, range, choose) {
  const { from, size, length, chosen } = range;
  const step = length / size;
  const room = ROOM_PX[direction];
  const places = named(range, room);
  const spaced = places.length > 1 && step < room;
  axis.replaceChildren(
    ...places.map((place) => {
      const glyph = tokens[place]?.glyph ?? "";
      const name = h(
        "span",
        { class: place === chosen ? "on" : "", "data-position": place, title: `token ${place}` },
        ...glyphs(spaced ? `${place} ${glyph}` : glyph),
      );
      const centre = (place - from + 0.5) * step;
      name.style[direction === "row" ? "top" : "left"] = `${centre}px`;
      name.addEventListener("click", () => choose(place));
      return name;
    }),
  );
}
