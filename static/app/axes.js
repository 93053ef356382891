// Token names beside a picture, as text of the document. At most some sixty per axis: on a long prompt every n-th with its
// number, so that the page never holds one element per cell or per token.
import { glyphs } from "./chips.js";
import { h } from "./dom.js";

const ROOM_PX = 13;

/**
 * @param {number} from
 * @param {number} size tokens on the axis
 * @param {number} length CSS pixels
 * @returns {number[]} positions that get a name
 */
function named(from, size, length) {
  const step = Math.max(1, Math.ceil((ROOM_PX * size) / length));
  const nice = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000].find((n) => n >= step) ?? step;
  const first = Math.ceil(from / nice) * nice;
  return Array.from({ length: Math.max(0, Math.ceil((from + size - first) / nice)) }, (_, i) => first + i * nice);
}

/**
 * @param {HTMLElement} axis filled anew
 * @param {"row" | "column"} direction
 * @param {import("./state.js").Piece[]} tokens of the whole prompt
 * @param {{from: number, size: number, length: number, chosen: number | null}} range length: CSS pixels of the axis
 * @param {(position: number) => void} choose
 */
export function drawAxis(axis, direction, tokens, { from, size, length, chosen }, choose) {
  const step = length / size;
  const places = named(from, size, length);
  if (chosen !== null && chosen >= from && chosen < from + size && !places.includes(chosen)) {
    const crowded = places.findIndex((place) => Math.abs(place - chosen) * step < ROOM_PX);
    if (crowded >= 0) places.splice(crowded, 1, chosen);
    else places.push(chosen);
  }
  const spaced = places.length > 1 && step < ROOM_PX;
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
