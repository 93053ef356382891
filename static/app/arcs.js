// Arcs: each query on the right, its keys on the left, a line per weight. Shows who reads whom where a heatmap shows where.
import { count } from "../lib/numbers.js";
import { glyphs } from "./glyphs.js";
import { h, sizeCanvas } from "./dom.js";
import { themeColours } from "./paint.js";

const MOST_TOKENS = 48;
const LINE_PX = 24;
const FAINTEST = 0.02;

export class Arcs {
  /** @param {(token: number) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.canvas = h("canvas", { class: "arcs-canvas heat-canvas", "aria-hidden": "true" });
    this.keys = h("ol", { class: "arcs-names keys", "aria-label": "Keys" });
    this.queries = h("ol", { class: "arcs-names queries", "aria-label": "Queries" });
    this.note = h("p", { class: "small dim" });
    this.element = h("div", { class: "arcs" }, h("div", { class: "arcs-stage" }, this.keys, this.canvas, this.queries), this.note);
  }

  /**
   * @param {import("./head_data.js").Picture} picture
   * @param {import("./state.js").Piece[]} tokens
   * @param {number} row the selected query
   */
  show({ cells, outCols, region, exact }, tokens, row) {
    const size = Math.min(MOST_TOKENS, region.rows);
    const from = Math.max(0, Math.min(region.row0 + region.rows - size, row - size + 1 > region.row0 ? row - size + 1 : region.row0));
    const inPart = (/** @type {number} */ i) => i >= from && i < from + size;
    const part = Array.from({ length: size }, (_, i) => from + i);
    this.keys.replaceChildren(...part.map((i) => h("li", {}, h("span", { class: "arcs-name" }, ...glyphs(tokens[i]?.glyph ?? "")))));
    this.queries.replaceChildren(...part.map((i) => this.#query(i, tokens, i === row)));
    const context = sizeCanvas(this.canvas, 200, size * LINE_PX);
    const { accent } = themeColours(this.canvas);
    context.strokeStyle = accent;
    for (const query of exact ? part : []) {
      for (const key of part) {
        const weight = cells[(query - region.row0) * outCols + (key - region.col0)];
        if (!(weight >= FAINTEST) || !inPart(key)) continue;
        context.globalAlpha = query === row ? Math.min(1, 0.15 + weight) : weight * 0.35;
        context.lineWidth = query === row ? 1 + weight * 3 : 1;
        const [y0, y1] = [(key - from + 0.5) * LINE_PX, (query - from + 0.5) * LINE_PX];
        context.beginPath();
        context.moveTo(0, y0);
        context.bezierCurveTo(80, y0, 120, y1, 200, y1);
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    const all =
      size === tokens.length
        ? ""
        : ` Tokens ${count(from)}–${count(from + size - 1)} of ${count(tokens.length)}, the part up to the selected one.`;
    this.note.textContent = exact
      ? `Keys left, queries right. Strong lines: the selected query. Weights under ${FAINTEST} are not drawn.${all}`
      : "Zoom in on the heatmap to see single weights as arcs.";
  }

  /** @param {number} i @param {import("./state.js").Piece[]} tokens @param {boolean} chosen */
  #query(i, tokens, chosen) {
    const props = {
      type: "button",
      class: "arcs-name",
      "aria-pressed": String(chosen),
      "aria-label": `query ${i} ${tokens[i]?.glyph}`,
      onclick: () => this.choose(i),
    };
    return h("li", {}, h("button", props, ...glyphs(tokens[i]?.glyph ?? "")));
  }
}
