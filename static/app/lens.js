// The logit lens: what each layer would say next. Layers up the side in the order the data flows, positions across, the
// likeliest token in each cell, colour its probability. Only the columns in view exist as elements.
import { announce, beforePaint, byId, h, panelTop } from "./dom.js";
import { paintCell } from "./lens_cells.js";
import { LensData } from "./lens_data.js";
import { LensProgress } from "./lens_progress.js";
import { LABEL_PX, LensRows } from "./lens_rows.js";
import { lensScroll } from "./lens_scroll.js";
import { WAITING_FOR, chosenDepth, position, select, store, waiting } from "./state.js";
import { pause } from "./thumbnails.js";

/** Eight letters fit the narrowest column. */
const [NARROWEST, WIDEST] = [68, 96];

export class LensPanel {
  constructor() {
    this.panel = byId("depth");
    this.about = h("p", { id: "lens-about" });
    this.grid = h("div", {
      class: "lens picture",
      id: "lens",
      role: "grid",
      "aria-label": "Logit lens: layers up the side, positions across",
      "aria-readonly": "true",
    });
    this.legend = h("p", { class: "small dim", id: "lens-legend" });
    this.progress = new LensProgress(
      () => this.data,
      () => {
        if (this.data !== this.laid) this.#layout(); // stopped before its first cells: their places are shown
        store.set({ lensGrown: store.state.lensGrown + 1 });
      },
      () => this.#selectedCell()?.focus({ preventScroll: true }),
    );
    panelTop(byId("depth-title"), this.about, h("span", { class: "spacer" }), this.progress.words, this.progress.button);
    this.rows = new LensRows(this.grid, (cell, layer, place) => this.#paint(cell, layer, place));
    this.pager = lensScroll(this.grid, (columns) => (this.grid.scrollLeft = Math.max(0, Math.round(this.left / this.cell + columns) * this.cell)));
    this.panel.append(this.pager.element, this.legend);
    /** @type {LensData | null} */
    this.data = null;
    /** Whose rows there are. @type {LensData | null} */
    this.laid = null;
    this.window = { from: 0, to: 0 };
    /** CSS pixels in view, and where they begin: kept, since to ask the browser in the middle of changes lays the page out once more. */
    this.width = 0;
    this.left = 0;
    this.scroll = () => void (this.grid.scrollLeft = this.left);
    this.#listen();
  }

  get T() {
    return store.state.trace?.shape.T ?? 0;
  }

  /** Which columns are in view. */
  #visible(left = this.left) {
    const from = Math.max(0, Math.floor(left / this.cell) - 2);
    const to = Math.min(this.T, Math.ceil((left + this.width - LABEL_PX) / this.cell) + 2);
    return { from, to };
  }

  get cell() {
    const room = this.width - LABEL_PX - 2;
    const shown = Math.max(1, Math.min(this.T, Math.floor(room / NARROWEST))); // whole columns: half a word reads as another
    return Math.max(NARROWEST, Math.min(WIDEST, Math.floor(room / shown)));
  }

  /** Whole columns in view. */
  get shown() {
    return Math.max(1, Math.floor((this.width - LABEL_PX) / this.cell));
  }

  /** A new trace: ask for its cells; the rows of the one before stay, dimmed, until the first are there. */
  async load() {
    const { trace } = store.state;
    this.data?.close();
    const data = trace && new LensData(trace, (places) => this.#arrived(places), (error) => this.#failed(error));
    this.data = data;
    store.set({ lens: data });
    this.pager.element.hidden = this.legend.hidden = !trace;
    this.progress.clear();
    this.grid.classList.toggle("behind", data !== null && this.laid !== null);
    if (!data) return this.#empty();
    this.panel.dataset.done = "false";
    await pause(); // what is asked for the other pictures goes to the device first
    if (this.data !== data) return;
    if (this.laid) this.#askFirst();
    else this.#layout();
  }

  #empty() {
    this.laid = null;
    this.grid.replaceChildren();
  }

  /** The cells that come first are where the selection will be seen; the rows that are shown stay where they are. */
  #askFirst() {
    const left = this.#leftOf(this.left);
    this.data?.want({ position: position(store.state), depth: chosenDepth(store.state), ...this.#visible(left) });
    this.#far();
  }

  /** @param {Error} error */
  #failed(error) {
    if (this.data !== this.laid) this.#layout();
    this.progress.fail(error);
    store.set({ lensGrown: store.state.lensGrown + 1 });
  }

  #layout() {
    const { trace, shown } = store.state;
    if (!trace) return;
    this.grid.setAttribute("aria-rowcount", String(trace.shape.L + 2));
    this.grid.setAttribute("aria-colcount", String(shown.length + 1));
    this.grid.classList.remove("behind");
    this.rows.lay(trace.shape.L, this.cell, this.T);
    this.pager.fit(this.T > this.shown ? LABEL_PX + this.shown * this.cell : null); // no slice of a column at an edge
    this.laid = this.data;
    this.window = { from: 0, to: 0 };
    this.#reveal();
    beforePaint(this.scroll); // rows of another length may have moved under it
    this.fill();
  }

  /** Where the view begins once the selected column is in it. @param {number} now CSS pixels where it begins */
  #leftOf(now) {
    const { cell } = this;
    const left = position(store.state) * cell;
    const room = this.shown * cell;
    const begin = Math.max(0, Math.min(now, this.T * cell - room));
    // Whole columns only: half a word at the edge reads as another word.
    return left + cell > begin + room ? Math.ceil((left + cell - room) / cell) * cell : Math.min(left, begin);
  }

  /** Brings the selected column into view. */
  #reveal() {
    const before = this.left;
    this.left = this.#leftOf(before);
    if (this.left !== before) beforePaint(this.scroll);
  }

  /** Makes the elements of the columns in view and asks for what they lack. */
  fill() {
    const { data } = this;
    if (!data || this.laid !== data || this.width === 0) return;
    const { from, to } = this.#visible();
    if (from !== this.window.from || to !== this.window.to) {
      this.window = { from, to };
      const focused = this.grid.contains(document.activeElement) && document.activeElement !== this.grid;
      const mark = () => this.mark();
      this.rows.show({ from, to }, chosenDepth(store.state), mark);
      mark();
      if (focused && !this.grid.contains(document.activeElement)) this.#selectedCell()?.focus({ preventScroll: true });
    }
    const end = Math.floor(this.left / this.cell) + this.shown; // of whole columns
    this.pager.show({ first: Math.ceil(this.left / this.cell), end: Math.min(this.T, end), T: this.T });
    data.want({ position: position(store.state), depth: chosenDepth(store.state), from, to });
    this.#far();
  }

  /** @param {HTMLElement} cell @param {number} layer @param {number} place */
  #paint(cell, layer, place) {
    paintCell(cell, layer, place, this.data?.get(layer, place));
  }

  /** @param {import("./lens_data.js").Place[]} places */
  #arrived(places) {
    if (this.data !== this.laid) this.#layout();
    for (const [layer, place] of places) {
      const cell = document.getElementById(`lens-${layer}-${place}`);
      if (cell) this.#paint(cell, layer, place);
    }
    this.#far();
    const depth = chosenDepth(store.state);
    if (places.some(([layer]) => layer === depth)) store.set({ lensGrown: store.state.lensGrown + 1 });
  }

  #far() {
    this.panel.dataset.done = String(this.progress.draw());
  }

  #selectedCell() {
    return document.getElementById(`lens-${chosenDepth(store.state)}-${position(store.state)}`);
  }

  /** Shows which cell, row and column are selected. */
  mark() {
    const chosen = this.#selectedCell();
    for (const cell of this.grid.querySelectorAll("[aria-selected='true'], [tabindex='0']")) {
      cell.setAttribute("tabindex", "-1");
      cell.removeAttribute("aria-selected");
    }
    chosen?.setAttribute("aria-selected", "true");
    (chosen ?? this.grid.querySelector("[role='gridcell']"))?.setAttribute("tabindex", "0");
    for (const name of this.grid.querySelectorAll(".lens-name")) {
      name.classList.toggle("on", Number(name.getAttribute("aria-colindex")) - 2 === position(store.state));
    }
    for (const row of this.grid.children)
      row.classList.toggle("on", /** @type {HTMLElement} */ (row).dataset.layer === String(chosenDepth(store.state)));
  }

  #listen() {
    const scrolled = () => {
      this.left = Math.max(0, this.grid.scrollLeft);
      this.fill();
    };
    this.grid.addEventListener("scroll", scrolled, { passive: true });
    this.grid.addEventListener("click", (event) => {
      const found = event.target instanceof Element && event.target.closest(".lens-cell")?.id.match(/^lens-(\d+)-(\d+)$/);
      if (found) this.#choose(Number(found[1]), Number(found[2]));
    });
    this.grid.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(([{ contentRect }]) => {
      const width = Math.round(contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.#layout();
    }).observe(this.panel);
    store.on(["trace"], () => void this.load());
    store.on(["entry"], ({ entry }) => (this.legend.textContent = legendWords(entry)));
    store.on(["token", "depth", "layer"], () => {
      if (!this.data) return;
      if (this.laid !== this.data) return void (this.laid && this.#askFirst()); // rows that are not laid out cannot be scrolled
      this.#reveal();
      this.fill();
      this.mark();
    });
    store.on([...WAITING_FOR], ({ trace }) => {
      this.about.textContent = trace ? "what each layer would say next" : waiting("The lens waits for a prompt.");
    });
    store.on(["stale"], ({ stale }) => this.grid.classList.toggle("stale", stale));
  }

  /** @param {number} layer @param {number} place */
  #choose(layer, place) {
    const { L } = /** @type {import("./state.js").Trace} */ (store.state.trace).shape;
    const depth = Math.max(0, Math.min(L, layer));
    store.set({ depth });
    select(Math.max(0, Math.min(this.T - 1, place)));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const [depth, place] = [chosenDepth(store.state), position(store.state)];
    const goes = {
      ArrowUp: [depth + 1, place],
      ArrowDown: [depth - 1, place],
      ArrowLeft: [depth, place - 1],
      ArrowRight: [depth, place + 1],
      Home: [depth, 0],
      End: [depth, this.T - 1],
      PageUp: [depth + 5, place],
      PageDown: [depth - 5, place],
    }[event.key];
    if (!goes || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.#choose(goes[0], goes[1]);
    queueMicrotask(() =>
      queueMicrotask(() => {
        const cell = this.#selectedCell();
        cell?.focus({ preventScroll: true });
        cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
        announce(cell?.getAttribute("aria-label") ?? "");
      }),
    );
  }
}

/** True of every model: with one matrix for both some echo each token, and others only some. @param {import("./state.js").ModelEntry | null} entry */
function legendWords(entry) {
  const same = entry?.tied ? "; unembedding uses the same matrix, so a token may come out as itself" : "";
  const rows = `Row Ln reads the residual stream after layer n. Row emb reads the embedding: no token has looked at another yet${same}.`;
  const trained = entry?.report?.about.lens ? ` ${entry.name}: ${entry.report.about.lens}.` : "";
  return `Colour: probability of the token shown, 0 dark to 1 yellow. ${rows}${trained}`;
}
