// The same weights as a table of numbers: a window of queries and keys around the selected cell, with paging.
import { share } from "../lib/numbers.js";
import { glyphs } from "./glyphs.js";
import { h } from "./dom.js";

const ROWS = 16;
/** Most columns; fewer where they do not fit. */
const MOST_COLS = 8;

/** @typedef {import("./heatmap.js").Cell} Cell */

export class HeadTable {
  /** @param {(cell: Cell) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.table = h("table", { class: "numbers" });
    this.range = h("span", { class: "small dim" });
    /** @type {(rows: number, cols: number) => void} */
    this.page = () => {};
    /** @param {string} text @param {number} rows @param {number} cols */
    const button = (text, rows, cols) => h("button", { type: "button", class: "quiet", text, onclick: () => this.page(rows, cols) });
    this.buttons = {
      up: button("Queries before", -1, 0),
      down: button("Queries after", 1, 0),
      left: button("Keys before", 0, -1),
      right: button("Keys after", 0, 1),
    };
    this.element = h(
      "div",
      { class: "head-table" },
      h("div", { class: "pager" }, ...Object.values(this.buttons), this.range),
      h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table of weights" }, this.table),
    );
  }

  /**
   * As many columns as the panel has room for.
   * @param {import("./head_data.js").Picture} picture
   * @param {import("./state.js").Piece[]} tokens
   * @param {{row: number, col: number | null}} chosen
   */
  show(picture, tokens, chosen) {
    const box = /** @type {HTMLElement} */ (this.table.parentElement);
    for (let columns = MOST_COLS; columns > 0; columns -= 1) {
      this.#draw(picture, tokens, chosen, columns);
      if (box.clientWidth === 0 || this.table.offsetWidth <= box.clientWidth) return;
    }
  }

  /**
   * @param {import("./head_data.js").Picture} picture
   * @param {import("./state.js").Piece[]} tokens
   * @param {{row: number, col: number | null}} chosen
   * @param {number} COLS
   */
  #draw({ cells, outCols, region, exact }, tokens, chosen, COLS) {
    if (!exact) {
      this.table.replaceChildren(
        h("caption", { text: "Zoom in on the heatmap until every cell is shown (about 1,000 tokens) to read its numbers here." }),
      );
      return;
    }
    const row0 = start(region.row0, region.rows, chosen.row, ROWS);
    const col0 = start(region.col0, region.cols, chosen.col ?? Math.max(0, chosen.row - COLS + 1), COLS);
    const rows = Array.from({ length: Math.min(ROWS, region.rows) }, (_, i) => row0 + i);
    const cols = Array.from({ length: Math.min(COLS, region.cols) }, (_, j) => col0 + j);
    const at = (/** @type {number} */ i, /** @type {number} */ j) => cells[(i - region.row0) * outCols + (j - region.col0)];
    this.table.replaceChildren(...tableParts(rows, cols, at, tokens, chosen));
    this.range.textContent = `queries ${row0}–${rows.at(-1)}, keys ${col0}–${cols.at(-1)} of ${tokens.length}`;
    const { up, down: below, left, right } = this.buttons;
    up.disabled = row0 <= region.row0;
    below.disabled = row0 + rows.length >= region.row0 + region.rows;
    left.disabled = col0 <= region.col0;
    right.disabled = col0 + cols.length >= region.col0 + region.cols;
    this.page = (down, across) => {
      const inside = (/** @type {number} */ value, /** @type {number} */ from, /** @type {number} */ size) =>
        Math.max(from, Math.min(from + size - 1, value));
      this.choose({
        row: down ? inside(row0 + down * ROWS, region.row0, region.rows) : chosen.row,
        col: across ? inside(col0 + across * COLS, region.col0, region.cols) : (chosen.col ?? col0),
      });
    };
  }
}

/**
 * Where the page of `part` lines begins that holds `at`, within `size` lines from `from` on.
 * @param {number} from @param {number} size @param {number} at @param {number} part
 */
const start = (from, size, at, part) => Math.max(from, Math.min(from + size - part, Math.floor((at - from) / part) * part + from));

/**
 * @param {number[]} rows queries @param {number[]} cols keys @param {(i: number, j: number) => number} at the weight; NaN is masked
 * @param {import("./state.js").Piece[]} tokens @param {{row: number, col: number | null}} chosen
 */
function tableParts(rows, cols, at, tokens, chosen) {
  const name = (/** @type {number} */ i) => [`${i} `, ...glyphs(tokens[i]?.glyph ?? "")];
  const cell = (/** @type {number} */ i, /** @type {number} */ j) =>
    h("td", { class: i === chosen.row && j === chosen.col ? "on" : "", text: Number.isNaN(at(i, j)) ? "–" : share(at(i, j)) });
  const head = h("tr", {}, h("th", { scope: "col", text: "query \\ key" }), ...cols.map((j) => h("th", { scope: "col" }, ...name(j))));
  const lines = rows.map((i) =>
    h("tr", { class: i === chosen.row ? "on" : "" }, h("th", { scope: "row" }, ...name(i)), ...cols.map((j) => cell(i, j))),
  );
  return [
    h("caption", { class: "visually-hidden", text: "Attention weights; – is masked or left out" }),
    h("thead", {}, head),
    h("tbody", {}, ...lines),
  ];
}
