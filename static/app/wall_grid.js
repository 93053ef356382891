// The cells of the wall: where each head stands, its name for screen readers, moving among them with the arrow keys.
import { byId, h } from "./dom.js";

const GAP = 2;
const GROUP_GAP = 6;
const LABELS = 24;
const TOP = 18;
const TALLEST_PX = 662;

/** @typedef {{L: number, N: number, K: number}} Heads */
/** @typedef {{size: number, x: (n: number) => number, y: (l: number) => number, width: number, height: number}} Sizes */

/**
 * Sizes that make the wall fit beside the head: 30 x 9 thumbnails of 20 px, 2 x 2 of 64.
 * @param {Heads} shape
 * @param {number} width CSS pixels to spend
 * @returns {Sizes}
 */
export function measure({ L, N, K }, width) {
  const tallest = matchMedia("(pointer: coarse)").matches ? TALLEST_PX * 1.25 : TALLEST_PX;
  const across = Math.floor((width - LABELS - (K - 1) * (GROUP_GAP - GAP)) / N) - GAP;
  const size = Math.max(8, Math.min(64, across, Math.floor(tallest / L) - GAP));
  const x = (/** @type {number} */ n) => LABELS + n * (size + GAP) + Math.floor(n / (N / K)) * (GROUP_GAP - GAP);
  const y = (/** @type {number} */ l) => TOP + l * (size + GAP);
  return { size, x, y, width: x(N - 1) + size + 2, height: y(L - 1) + size + 2 };
}

/** @param {EventTarget | null} target @returns {[number, number] | null} layer and head of a cell */
export function placeOf(target) {
  const found = target instanceof Element && target.id.match(/^head-(\d+)-(\d+)$/);
  return found ? [Number(found[1]), Number(found[2])] : null;
}

/**
 * The cell that a key leads to from the focused one; null for other keys.
 * @param {KeyboardEvent} event
 * @param {Heads} heads
 */
export function cellOfKey(event, { L, N }) {
  const place = placeOf(event.target);
  if (!place || event.ctrlKey || event.metaKey || event.altKey) return null;
  const [layer, head] = place;
  const goes = {
    ArrowLeft: [layer, head - 1],
    ArrowRight: [layer, head + 1],
    ArrowUp: [layer - 1, head],
    ArrowDown: [layer + 1, head],
    Home: [layer, 0],
    End: [layer, N - 1],
    PageUp: [layer - 5, head],
    PageDown: [layer + 5, head],
  }[event.key];
  if (!goes) return null;
  return byId(`head-${Math.max(0, Math.min(L - 1, goes[0]))}-${Math.max(0, Math.min(N - 1, goes[1]))}`);
}

/**
 * Head numbers above the wall.
 * @param {Heads} heads
 * @param {Sizes} sizes
 */
export function headNames({ N }, sizes) {
  const names = h("div", { class: "wall-heads", "aria-hidden": "true" });
  for (let n = 0; n < N; n += sizes.size >= 16 ? 1 : 4) {
    const name = h("span", { text: n === 0 ? "H0" : n });
    name.style.left = `${sizes.x(n)}px`;
    name.style.width = `${sizes.size}px`;
    names.append(name);
  }
  return names;
}

/**
 * Rows of cells with their layer numbers.
 * @param {Heads} heads
 * @param {Sizes} sizes
 */
export function gridRows({ L, N, K }, sizes) {
  const every = L > 12 ? 5 : 1;
  return Array.from({ length: L }, (_, layer) => {
    const label = h("div", { role: "rowheader", class: "wall-layer", "aria-label": `layer ${layer}`, text: layer % every ? "" : layer });
    Object.assign(label.style, { top: `${sizes.y(layer)}px`, height: `${sizes.size}px`, lineHeight: `${sizes.size}px` });
    const cells = Array.from({ length: N }, (_, n) => {
      const name = `L${layer} H${n}, K/V group ${Math.floor(n / (N / K))}`;
      const cell = h("div", { id: `head-${layer}-${n}`, role: "gridcell", tabindex: -1, "aria-selected": "false", "aria-label": name });
      Object.assign(cell.style, {
        left: `${sizes.x(n)}px`,
        top: `${sizes.y(layer)}px`,
        width: `${sizes.size}px`,
        height: `${sizes.size}px`,
      });
      return cell;
    });
    return h("div", { role: "row" }, label, ...cells);
  });
}
