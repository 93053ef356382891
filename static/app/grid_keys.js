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
    const stop = event.ctrlKey ? cornerOf(event.key, stops) : ofKey(event.key, stops, row, column, PAGE_ROWS);
    if (!stop) return;
    event.preventDefault();
    stop.focus();
  });
  return { settle };
}

/**
 * The first and the last, which Home and End lead to with Control held; null for other keys.
 * @template T @param {string} key @param {T[][]} rows @returns {T | null}
 */
function cornerOf(key, rows) {
  return key === "Home" ? rows[0][0] : key === "End" ? rows[rows.length - 1][rows[rows.length - 1].length - 1] : null;
}

/**
 * What a key leads to in rows of things, the nearest to where there is no more; null for other keys.
 * @template T @param {string} key @param {T[][]} rows @param {number} row @param {number} column
 * @param {number} page rows that PageUp and PageDown pass @returns {T | null}
 */
export function ofKey(key, rows, row, column, page) {
  const goes = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, Infinity],
    PageUp: [row - page, column],
    PageDown: [row + page, column],
  }[key];
  if (!goes) return null;
  const line = rows[Math.max(0, Math.min(rows.length - 1, goes[0]))];
  return line[Math.max(0, Math.min(line.length - 1, goes[1]))];
}
