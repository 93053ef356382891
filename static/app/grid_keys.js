// A table that is one stop of the Tab key: arrow keys, Home and End go through its cells, as ARIA's grid pattern has it. What
// takes the focus in a cell is its button, or the cell itself.

const PAGE_ROWS = 10;

/** @param {HTMLTableElement} table @returns {HTMLElement[][]} what takes the focus, row by row, the head first */
const stopsOf = (table) => Array.from(table.rows, (row) => Array.from(row.cells, (cell) => cell.querySelector("button") ?? cell));

/**
 * Makes a table a grid; call `settle` again when its rows were replaced.
 * @param {HTMLTableElement} table
 * @param {string} name of the grid
 */
export function gridOf(table, name) {
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", name);
  table.setAttribute("aria-readonly", "true");
  /** @param {HTMLElement} stop */
  const rove = (stop) => stopsOf(table).forEach((row) => row.forEach((other) => (other.tabIndex = other === stop ? 0 : -1)));
  const settle = () => {
    const stops = stopsOf(table);
    rove(stops.flat().find((stop) => stop === document.activeElement) ?? (stops[1] ?? stops[0])[0]);
  };
  table.addEventListener("focusin", (event) => rove(/** @type {HTMLElement} */ (event.target)));
  table.addEventListener("keydown", (event) => {
    const stops = stopsOf(table);
    const row = stops.findIndex((line) => line.includes(/** @type {HTMLElement} */ (event.target)));
    if (row < 0 || event.metaKey || event.altKey) return;
    const column = stops[row].indexOf(/** @type {HTMLElement} */ (event.target));
    const goes = placeOf(event, row, column);
    if (!goes) return;
    event.preventDefault();
    const line = stops[Math.max(0, Math.min(stops.length - 1, goes[0]))];
    line[Math.max(0, Math.min(line.length - 1, goes[1]))].focus();
  });
  return { settle };
}

/**
 * Where a key leads to, past the edges where there is no more; null for other keys.
 * @param {KeyboardEvent} event
 * @param {number} row
 * @param {number} column
 * @returns {[number, number] | null}
 */
function placeOf({ key, ctrlKey }, row, column) {
  if (ctrlKey) return key === "Home" ? [0, 0] : key === "End" ? [Infinity, Infinity] : null;
  /** @type {Record<string, [number, number]>} */
  const goes = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, Infinity],
    PageUp: [row - PAGE_ROWS, column],
    PageDown: [row + PAGE_ROWS, column],
  };
  return goes[key] ?? null;
}
