// The heatmap of one head: picture, both token axes, crosshair, pointer and keyboard. It draws what it is given and reports
// which cell is meant; what a cell is worth is looked up elsewhere.
import { blockMax } from "../lib/maths.js";
import { toShade } from "../lib/pattern.js";
import { drawAxis } from "./axes.js";
import { h, sizeCanvas } from "./dom.js";
import { paintMatrix, themeColours } from "./paint.js";

const LARGEST_CELL = 32;
const SLANT_ROOM = 44;
const STAGE = {
  class: "heat-stage",
  id: "heatmap",
  tabindex: 0,
  role: "application",
  "aria-roledescription": "heatmap",
  "aria-describedby": "cell-readout",
  "aria-label": "Attention weights: queries down, keys across. Arrow keys move the cell, plus and minus zoom.",
};

/** @typedef {import("./head_data.js").Picture} Picture */
/** @typedef {{row: number, col: number}} Cell */
/**
 * What the heatmap tells its owner.
 * @typedef {object} Reports
 * @property {(cell: Cell) => void} choose a click, or the keyboard
 * @property {(cell: Cell | null) => void} point the pointer; null when it left
 * @property {(factor: number, cell: Cell) => void} zoom
 * @property {(rows: number, cols: number) => void} pan
 */

export class Heatmap {
  /** @param {Reports} reports */
  constructor(reports) {
    this.reports = reports;
    this.canvas = h("canvas", { class: "heat-canvas", "aria-hidden": "true" });
    this.marks = h("canvas", { class: "heat-marks", "aria-hidden": "true" });
    this.stage = h("div", STAGE, this.canvas, this.marks);
    this.rows = h("div", { class: "axis-rows", "aria-hidden": "true" });
    this.cols = h("div", { class: "axis-cols", "aria-hidden": "true" });
    this.element = h(
      "div",
      { class: "heat" },
      h("p", { class: "heat-corner", "aria-hidden": "true" }, "keys →", h("br"), "queries ↓"),
      this.cols,
      this.rows,
      this.stage,
    );
    /** @type {Picture | null} */
    this.picture = null;
    /** @type {import("./state.js").Piece[]} */
    this.tokens = [];
    /** @type {{row: number, col: number | null} | null} */
    this.chosen = null;
    /** @type {Cell | null} */
    this.pointed = null;
    /** @type {number[]} keys that the selected row reads most, largest first */
    this.strong = [];
    this.scale = /** @type {"unit" | "row" | "sqrt"} */ ("unit");
    this.width = 300;
    /** Of the names beside the rows; 0 until they are shown. */
    this.namesWidth = 0;
    this.#listen();
  }

  /** Pixels per side of the picture on the device: what a reduced window is asked for. */
  get pixels() {
    return Math.round(this.side * Math.max(1, window.devicePixelRatio || 1));
  }

  get side() {
    return Math.max(120, Math.min(640, this.width));
  }

  /** @param {number} width CSS pixels for axis, picture and the slanted names */
  fit(width) {
    this.namesWidth ||= this.rows.offsetWidth;
    this.width = width - this.namesWidth - SLANT_ROOM;
    this.draw();
  }

  /**
   * @param {Partial<Pick<Heatmap, "picture" | "tokens" | "chosen" | "scale">>} changes
   */
  show(changes) {
    Object.assign(this, changes);
    this.draw();
  }

  draw() {
    if (!this.picture) return;
    const { cells, outRows, outCols, region } = this.picture;
    const most = Math.max(region.rows, region.cols);
    const cell = this.side / most >= 4 ? Math.min(LARGEST_CELL, Math.floor(this.side / most)) : this.side / most;
    this.cell = cell;
    const [width, height] = [Math.round(region.cols * cell), Math.round(region.rows * cell)];
    const context = sizeCanvas(this.canvas, width, height);
    const { mask, ground } = themeColours(this.canvas);
    // Where a cell is smaller than a pixel, the largest of its neighbours shows: drawing smaller would drop cells at random.
    const rows = Math.min(outRows, this.canvas.height);
    const cols = Math.min(outCols, this.canvas.width);
    const shades = blockMax(toShade(cells, outCols, this.scale), outRows, outCols, rows, cols);
    paintMatrix(context, shades, rows, cols, { x: 0, y: 0, width, height }, mask);
    if (cell >= 12) drawGaps(context, region, cell, ground);
    this.#drawOver();
  }

  /** @param {number[]} strong keys to be named on the axis before their neighbours */
  name(strong) {
    if (String(strong) === String(this.strong)) return;
    this.strong = strong;
    this.#drawOver();
  }

  /** Axes and crosshair: what changes while the pointer moves. */
  #drawOver() {
    if (!this.picture || !this.cell) return;
    const { region } = this.picture;
    const [width, height] = [Math.round(region.cols * this.cell), Math.round(region.rows * this.cell)];
    this.#drawAxes(width, height);
    this.#drawMarks(width, height);
  }

  /** @param {number} width @param {number} height */
  #drawAxes(width, height) {
    const { region } = /** @type {Picture} */ (this.picture);
    this.rows.style.height = `${height}px`;
    this.cols.style.width = `${width}px`;
    const at = this.pointed ?? this.chosen;
    const rowRange = { from: region.row0, size: region.rows, length: height, chosen: at?.row ?? null, strong: [] };
    const colRange = { from: region.col0, size: region.cols, length: width, chosen: at?.col ?? null, strong: this.strong };
    drawAxis(this.rows, "row", this.tokens, rowRange, (row) => this.reports.choose({ row, col: this.chosen?.col ?? 0 }));
    drawAxis(this.cols, "column", this.tokens, colRange, (col) => this.reports.choose({ row: this.chosen?.row ?? 0, col }));
  }

  /** @param {number} width @param {number} height */
  #drawMarks(width, height) {
    const context = sizeCanvas(this.marks, width, height);
    const { region } = /** @type {Picture} */ (this.picture);
    const cell = this.cell ?? 1;
    const { accent } = themeColours(this.marks);
    context.strokeStyle = accent;
    if (this.chosen && this.chosen.row >= region.row0 && this.chosen.row < region.row0 + region.rows) {
      const y = (this.chosen.row - region.row0) * cell;
      context.lineWidth = 2;
      context.strokeRect(1, y + (cell > 6 ? 0 : -1), width - 2, Math.max(cell - 1, 3));
      if (this.chosen.col !== null)
        context.strokeRect((this.chosen.col - region.col0) * cell + 1, y + 1, Math.max(cell - 3, 3), Math.max(cell - 3, 3));
    }
    if (this.pointed) {
      context.lineWidth = 1;
      context.setLineDash([3, 3]);
      const [x, y] = [(this.pointed.col - region.col0 + 0.5) * cell, (this.pointed.row - region.row0 + 0.5) * cell];
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.stroke();
    }
  }

  /** @param {PointerEvent | WheelEvent | MouseEvent} event @returns {Cell | null} */
  #cellAt(event) {
    if (!this.picture || !this.cell) return null;
    const { region } = this.picture;
    const box = this.stage.getBoundingClientRect();
    const row = region.row0 + Math.floor((event.clientY - box.top) / this.cell);
    const col = region.col0 + Math.floor((event.clientX - box.left) / this.cell);
    const inside = row >= region.row0 && row < region.row0 + region.rows && col >= region.col0 && col < region.col0 + region.cols;
    return inside ? { row, col } : null;
  }

  /** @param {Cell | null} cell */
  point(cell) {
    if (cell?.row === this.pointed?.row && cell?.col === this.pointed?.col) return;
    this.pointed = cell;
    this.#drawOver();
    this.reports.point(cell);
  }

  #listen() {
    /** @type {{x: number, y: number, moved: boolean} | null} */
    let drag = null;
    this.stage.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    this.stage.addEventListener("pointermove", (event) => {
      const cell = this.cell ?? 1;
      if (drag && event.buttons === 1) {
        const [rows, cols] = [Math.trunc((drag.y - event.clientY) / cell), Math.trunc((drag.x - event.clientX) / cell)];
        if (rows || cols) {
          drag = { x: drag.x - cols * cell, y: drag.y - rows * cell, moved: true };
          this.stage.setPointerCapture(event.pointerId);
          this.reports.pan(rows, cols);
        }
      } else this.point(this.#cellAt(event));
    });
    this.stage.addEventListener("pointerleave", () => this.point(null));
    this.stage.addEventListener("click", (event) => {
      const cell = this.#cellAt(event);
      if (cell && !drag?.moved) this.reports.choose(cell);
      drag = null;
    });
    this.stage.addEventListener(
      "wheel",
      (event) => {
        const cell = this.#cellAt(event);
        if (!cell || !(event.ctrlKey || event.metaKey)) return; // a plain wheel scrolls the page
        event.preventDefault();
        this.reports.zoom(event.deltaY < 0 ? 1.25 : 0.8, cell);
      },
      { passive: false },
    );
    this.stage.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => (this.namesWidth = this.rows.offsetWidth)).observe(this.rows); // before the panel's own, which draws
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (!this.chosen || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = { row: this.chosen.row, col: this.chosen.col ?? 0 };
    const last = this.tokens.length - 1;
    const step = event.shiftKey ? 10 : 1;
    const goes = {
      ArrowUp: { row: at.row - step },
      ArrowDown: { row: at.row + step },
      ArrowLeft: { col: at.col - step },
      ArrowRight: { col: at.col + step },
      Home: { col: 0 },
      End: { col: at.row },
      PageUp: { row: 0 },
      PageDown: { row: last },
    }[event.key];
    const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
    if (!goes && !zoom) return;
    event.preventDefault();
    if (zoom) return this.reports.zoom(zoom, at);
    const cell = { ...at, ...goes };
    this.reports.choose({ row: Math.max(0, Math.min(last, cell.row)), col: Math.max(0, Math.min(last, cell.col)) });
  }
}

/**
 * Thin gaps between cells, where there is room for them.
 * @param {CanvasRenderingContext2D} context
 * @param {import("../lib/pattern.js").Region} region
 * @param {number} cell
 * @param {string} ground
 */
function drawGaps(context, region, cell, ground) {
  context.fillStyle = ground;
  for (let i = 1; i <= region.rows; i += 1) context.fillRect(0, i * cell - 1, region.cols * cell, 1);
  for (let j = 1; j <= region.cols; j += 1) context.fillRect(j * cell - 1, 0, 1, region.rows * cell);
}
