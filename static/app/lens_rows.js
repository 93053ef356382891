// The rows of the lens with the cells of the columns in view. Scrolling keeps the cells that stay in view; a whole picture is made
// a part at a time, since some hundred cells of text would hold the page up.
import { lensCell, lensRow, nameCell } from "./lens_cells.js";

export const LABEL_PX = 32;
/** Cells made for one picture of the page; the two rows that come first need fewer on any screen. */
const AT_ONCE = 64;

/** @typedef {{from: number, to: number}} Columns from..to-1 */

export class LensRows {
  /**
   * @param {HTMLElement} grid
   * @param {(cell: HTMLElement, layer: number, place: number) => void} paint a cell that was made
   */
  constructor(grid, paint) {
    this.grid = grid;
    this.paint = paint;
    this.cell = 0;
    this.turn = 0;
  }

  /**
   * Rows without cells: names of the positions, then depth L down to 0.
   * @param {number} L
   * @param {number} cell CSS pixels of a column
   * @param {number} T
   */
  lay(L, cell, T) {
    this.cell = cell;
    this.turn += 1;
    const depths = Array.from({ length: L + 1 }, (_, i) => L - i);
    this.grid.replaceChildren(...[null, ...depths].map((depth) => lensRow(depth, LABEL_PX + T * cell)));
  }

  /**
   * Fills every row with the cells of these columns: names and the selected depth at once, the others picture by picture.
   * @param {Columns} columns
   * @param {number} depth
   * @param {() => void} done
   */
  show(columns, depth, done) {
    this.turn += 1;
    const mine = this.turn;
    const [names, ...rows] = /** @type {HTMLElement[]} */ (Array.from(this.grid.children));
    const selected = rows[rows.length - 1 - depth];
    const order = [names, selected, ...rows.filter((row) => row !== selected)];
    let at = 0;
    const slice = () => {
      if (mine !== this.turn) return; // other columns are in view by now
      for (let made = 0; at < order.length && made < AT_ONCE; at += 1) made += this.#fill(order[at], columns);
      if (at < order.length) requestAnimationFrame(slice);
      else done();
    };
    slice();
  }

  /** @param {HTMLElement} row @param {Columns} columns @returns {number} how many cells were made */
  #fill(row, { from, to }) {
    const cells = Array.from(row.children).slice(1);
    const placeOf = (/** @type {Element} */ cell) => Number(cell.getAttribute("aria-colindex")) - 2;
    const kept = cells.filter((cell) => placeOf(cell) >= from && placeOf(cell) < to);
    for (const cell of cells) if (!kept.includes(cell)) cell.remove();
    const [first, end] = kept.length ? [placeOf(kept[0]), placeOf(kept[kept.length - 1]) + 1] : [to, to];
    row.firstElementChild?.after(...this.#cells(row, from, first));
    row.append(...this.#cells(row, end, to));
    return to - from - kept.length;
  }

  /** @param {HTMLElement} row @param {number} from @param {number} to */
  #cells(row, from, to) {
    return Array.from({ length: Math.max(0, to - from) }, (_, i) => {
      const place = from + i;
      const left = LABEL_PX + place * this.cell;
      if (row.dataset.layer === "") return nameCell(place, left, this.cell - 2);
      const cell = lensCell(Number(row.dataset.layer), place, left, this.cell - 2);
      this.paint(cell, Number(row.dataset.layer), place);
      return cell;
    });
  }
}
