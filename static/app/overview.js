// A small map of the whole head while a part of it is looked at; a click moves the part.
import { maskPixels, toShade } from "../lib/pattern.js";
import { wholeRegion } from "../lib/zoom.js";
import { h, sizeCanvas } from "./dom.js";
import { paintMatrix, themeColours } from "./paint.js";
import { store } from "./state.js";

const SIDE = 96;

/** @typedef {import("../lib/pattern.js").Region} Region */

export class Overview {
  /** @param {(region: Region) => void} go */
  constructor(go) {
    this.canvas = h("canvas", { class: "heat-canvas", "aria-hidden": "true" });
    this.words = h("p", { class: "small dim" });
    this.element = h("div", { class: "overview", hidden: true }, this.canvas, this.words);
    /** @type {{data: import("./head_data.js").HeadData, cells: Float32Array, out: number} | null} */
    this.known = null;
    this.canvas.addEventListener("click", (event) => {
      if (!this.known || !this.region) return;
      const T = this.known.data.trace.shape.T;
      const { rows, cols } = this.region;
      go({ rows, cols, row0: (event.offsetY / SIDE) * T - rows / 2, col0: (event.offsetX / SIDE) * T - cols / 2 });
    });
  }

  /**
   * @param {import("./head_data.js").HeadData} data
   * @param {Region} region
   * @param {boolean} whole nothing to show beside the picture itself
   */
  async show(data, region, whole) {
    this.element.hidden = whole;
    this.region = region;
    if (whole) return;
    const T = data.trace.shape.T;
    if (this.known?.data !== data) {
      const out = Math.min(T, SIDE);
      const cells = await data.trace.window({
        layer: data.layer,
        head0: data.head,
        heads: 1,
        ...wholeRegion(T),
        outRows: out,
        outCols: out,
        reduce: "max",
      });
      this.known = { data, cells: maskPixels(cells, wholeRegion(T), out, out, data.rule), out };
    }
    const { cells, out } = this.known;
    const context = sizeCanvas(this.canvas, SIDE, SIDE);
    const { mask, accent } = themeColours(this.canvas);
    paintMatrix(context, toShade(cells, out, store.state.scale), out, out, { x: 0, y: 0, width: SIDE, height: SIDE }, mask);
    const part = SIDE / T;
    context.strokeStyle = accent;
    context.lineWidth = 2;
    context.strokeRect(region.col0 * part, region.row0 * part, Math.max(4, region.cols * part), Math.max(4, region.rows * part));
    this.words.textContent = `queries ${region.row0}–${region.row0 + region.rows - 1}, keys ${region.col0}–${region.col0 + region.cols - 1} of ${T}`;
  }
}
