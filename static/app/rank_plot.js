// How one token's rank changes through depth: a line on a logarithmic scale, first place at the top, and a sentence.
import { count } from "../lib/numbers.js";
import { svg } from "./dom.js";

const [WIDTH, HEIGHT] = [232, 116];
const BOX = { left: 44, right: 8, top: 10, bottom: 18 };

/**
 * @param {number[]} ranks [L+1], 0 is first
 * @param {number} depth the selected layer
 * @param {string} name
 */
export function rankPlot(ranks, depth, name) {
  const last = ranks.length - 1;
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(...ranks) + 1)));
  const x = (/** @type {number} */ layer) => BOX.left + (layer / Math.max(1, last)) * (WIDTH - BOX.left - BOX.right);
  const y = (/** @type {number} */ rank) => BOX.top + (Math.log10(rank + 1) / decades) * (HEIGHT - BOX.top - BOX.bottom);
  const parts = [];
  for (let decade = 0; decade <= decades; decade += 1) {
    const at = y(10 ** decade - 1);
    parts.push(svg("line", { class: "grid", x1: BOX.left, x2: WIDTH - BOX.right, y1: at, y2: at }));
    parts.push(label(BOX.left - 6, at + 4, decade < 3 ? String(10 ** decade) : `${10 ** (decade - 3)}k`, "end"));
  }
  parts.push(svg("line", { class: "cursor", x1: x(depth), x2: x(depth), y1: BOX.top, y2: HEIGHT - BOX.bottom }));
  parts.push(
    svg("polyline", { class: "curve", points: ranks.map((rank, layer) => `${x(layer).toFixed(1)},${y(rank).toFixed(1)}`).join(" ") }),
  );
  parts.push(svg("circle", { class: "dot", cx: x(depth), cy: y(ranks[depth]), r: 3 }));
  parts.push(
    label(BOX.left, HEIGHT - 4, "emb", "middle"),
    label(x(last), HEIGHT - 4, last === 0 ? "" : `L${last - 1}`, "end"),
    label((x(0) + x(last)) / 2, HEIGHT - 4, "after layer", "middle"),
  );
  return svg("svg", { class: "rank-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": rankStory(ranks, name) }, ...parts);
}

/** @param {number} x @param {number} y @param {string} text @param {string} anchor */
function label(x, y, text, anchor) {
  return svg("text", { x, y, text, "text-anchor": anchor });
}

/**
 * One sentence of what happened to the token.
 * @param {number[]} ranks [L+1], 0 is first
 * @param {string} glyph
 */
export function rankStory(ranks, glyph) {
  const name = `“${glyph}”`; // a comma or a full stop must not read as one of the sentence's own
  const last = ranks.length - 1;
  let firstSince = ranks.length;
  while (firstSince > 0 && ranks[firstSince - 1] === 0) firstSince -= 1;
  const far = ranks.findLastIndex((rank) => rank >= 100);
  const start = far > 0 ? `${name} is beyond rank 100 up to layer ${far - 1}` : `${name} starts at rank ${count(ranks[0] + 1)}`;
  if (firstSince > last) return `${start} and ends at rank ${count(ranks[last] + 1)}.`;
  return firstSince === 0 ? `${name} is first at every depth.` : `${start} and is first from layer ${firstSince - 1} on.`;
}
