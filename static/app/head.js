// The panel of one head: which head, how it is looked at (heatmap, arcs, table), the value under the cursor, the bars of one row.
import { share, three } from "../lib/numbers.js";
import { fitRegion, isWhole, reveal, wholeRegion, zoomAround } from "../lib/zoom.js";
import { askAhead } from "./ahead.js";
import { Arcs } from "./arcs.js";
import { spelled } from "./glyphs.js";
import { announce, byId, h, panelTop } from "./dom.js";
import { HeadData, isExact, pixelOf } from "./head_data.js";
import { headTools } from "./head_tools.js";
import { HeadTable } from "./head_table.js";
import { Heatmap } from "./heatmap.js";
import { Overview } from "./overview.js";
import { RowBars } from "./row_bars.js";
import { WAITING_FOR, chosenHead, keyOf, position, select, store, waiting } from "./state.js";

/** @typedef {import("./heatmap.js").Cell} Cell */
/** @typedef {import("./state.js").State} State */

/** Keys with at least this weight in the selected row are named on the axis before their neighbours, at most so many. */
const [STRONG, MOST_STRONG] = [0.05, 4];

export class HeadPanel {
  constructor() {
    this.panel = byId("head");
    this.tools = headTools({ zoom: (factor) => this.zoomChosen(factor), whole: () => store.set({ zoom: null }), data: () => this.data });
    this.heatmap = new Heatmap({
      choose: (cell) => this.choose(cell),
      point: (cell) => this.point(cell),
      zoom: (factor, cell) => this.zoomTo(zoomAround(this.region(), factor, cell.row, cell.col, this.T)),
      pan: (rows, cols) => this.pan(rows, cols),
    });
    this.arcs = new Arcs((token) => select(token));
    this.table = new HeadTable((cell) => this.choose(cell));
    this.bars = new RowBars(this.tools.lock, (key) => this.choose({ row: position(store.state), col: key }));
    this.overview = new Overview((region) => this.zoomTo(fitRegion(region, this.T)));
    this.readout = h("p", { id: "cell-readout", class: "readout" });
    this.empty = h("p", { class: "empty dim" });
    this.body = h(
      "div",
      { class: "head-body picture" },
      h("div", { class: "views" }, this.heatmap.element, this.arcs.element, this.table.element),
      this.tools.legend,
      this.readout,
      this.overview.element,
      this.bars.element,
    );
    panelTop(byId("head-title"), h("p", { id: "head-about" }), h("span", { class: "spacer" }), this.tools.zoom, this.tools.save);
    this.panel.append(this.tools.bar, this.empty, this.body);
    /** Of the picture that is shown. @type {HeadData | null} */
    this.data = null;
    /** Of the one that is asked for; the same when it is there. @type {HeadData | null} */
    this.coming = null;
    /** Measured when it changes: to ask in the middle of changes lays the page out once more. */
    this.width = 0;
    /** Counts the rows asked for, so that the newest one is the one that stays. */
    this.turn = 0;
    this.#listen();
  }

  get T() {
    return store.state.trace?.shape.T ?? 0;
  }

  region(state = store.state) {
    const T = state.trace?.shape.T ?? 0;
    if (!state.zoom) return wholeRegion(T);
    const [row0, rows, col0, cols] = state.zoom;
    return fitRegion({ row0, rows, col0, cols }, T);
  }

  /** @param {import("../lib/pattern.js").Region} region */
  zoomTo(region) {
    store.set({ zoom: isWhole(region, this.T) ? null : [region.row0, region.rows, region.col0, region.cols] });
  }

  /** Whether key 0 is left out: it can be where every cell is in hand. */
  leavesFirst(state = store.state) {
    return state.noFirst && isExact(this.region(state));
  }

  /** Said of every number that is not the model's own weight. */
  get renormalised() {
    return this.leavesFirst() ? ", renormalised" : "";
  }

  /** About the selected cell, so that it stays in view. @param {number} factor */
  zoomChosen(factor) {
    const row = position(store.state);
    this.zoomTo(zoomAround(this.region(), factor, row, keyOf(store.state) ?? row, this.T));
  }

  /** @param {number} rows @param {number} cols */
  pan(rows, cols) {
    const region = this.region();
    if (!isWhole(region, this.T)) this.zoomTo(fitRegion({ ...region, row0: region.row0 + rows, col0: region.col0 + cols }, this.T));
  }

  /** @param {Cell} cell */
  choose({ row, col }) {
    select(row, col);
    this.spoken = true;
    if (store.state.zoom) this.zoomTo(reveal(this.region(), row, col, this.T));
  }

  /** @param {Cell | null} cell under the pointer */
  point(cell) {
    const picture = this.heatmap.picture;
    if (this.data?.trace !== store.state.trace) return; // another prompt's words would be said of it
    if (!cell || !picture) return void this.drawRow();
    const { value, rows, cols } = pixelOf(picture, cell);
    if (picture.exact) this.readout.textContent = this.words(cell.row, cell.col, value);
    else
      this.readout.textContent = `largest of queries ${rows[0]}–${rows[1] - 1}, keys ${cols[0]}–${cols[1] - 1}: ${Number.isNaN(value) ? "masked" : three(value)}`;
    if (!store.state.lock) void this.drawBars(cell.row);
  }

  /** @param {number} row @param {number} col @param {number} value */
  words(row, col, value) {
    const { shown } = store.state;
    const left = this.leavesFirst() && col === 0 ? "left out" : "masked";
    const weight = Number.isNaN(value) ? left : `weight ${three(value)}${this.renormalised}`;
    return `query ${row} ${spelled(shown[row])}, key ${col} ${spelled(shown[col])}: ${weight}`;
  }

  /** The chosen head of a state: the one that is shown or on its way, or a new one. @param {State} state */
  dataOf(state) {
    const { trace, engine } = state;
    const { layer, head } = chosenHead(state);
    const known = [this.coming, this.data].find((data) => data?.trace === trace && data?.layer === layer && data?.head === head);
    return known ?? (trace && engine ? new HeadData(trace, engine.visible(layer), layer, head) : null);
  }

  /** Asks for what is shown of a head first; it is kept there. @param {State} state */
  async ask(state) {
    this.coming = this.dataOf(state);
    const { coming } = this;
    await Promise.all([
      coming?.picture(this.region(state), this.heatmap.pixels, state.noFirst),
      coming?.row(position(state), this.leavesFirst(state)),
    ]);
  }

  /** Asks for the chosen head, and shows it with its name when it is there; until then the one before stays, dimmed. */
  async load() {
    const { state } = store;
    this.body.hidden = !state.trace;
    const asked = this.ask(state);
    const mine = this.coming;
    this.body.classList.toggle("behind", mine !== this.data);
    const failed = mine === this.data ? null : await asked.then(() => null, (/** @type {Error} */ error) => error);
    if (mine !== this.coming) return;
    this.data = mine;
    this.body.classList.remove("behind");
    this.name();
    this.tools.allow(mine !== null);
    if (failed) throw failed;
    await Promise.all([asked, this.drawPicture(), this.drawRow()]);
  }

  name() {
    const { layer, head } = chosenHead(store.state);
    const shape = store.state.trace?.shape ?? store.state.entry?.shape;
    byId("head-title").textContent = `L${layer} H${head}`;
    byId("head-about").textContent = shape ? `K/V group ${Math.floor(head / (shape.N / shape.K))}` : "";
  }

  async drawPicture() {
    const { data } = this;
    if (!data || data.trace !== store.state.trace) return;
    const { noFirst, scale, shown, view } = store.state;
    const region = this.region();
    this.tools.allowFirst(isExact(region));
    const picture = await data.picture(region, this.heatmap.pixels, noFirst);
    if (this.data !== data) return;
    for (const [name, part] of Object.entries({ heatmap: this.heatmap, arcs: this.arcs, table: this.table }))
      part.element.hidden = name !== view;
    this.panel.dataset.head = `L${data.layer} H${data.head}`;
    const chosen = { row: position(store.state), col: keyOf(store.state) };
    this.width ||= this.panel.clientWidth;
    this.heatmap.fit(this.width - 26);
    this.heatmap.show({ picture, tokens: shown, scale, chosen });
    if (view === "arcs") this.arcs.show(picture, shown, chosen.row);
    if (view === "table") this.table.show(picture, shown, chosen);
    await this.overview.show(data, region, isWhole(region, this.T));
  }

  /** The selected row: mark, bars, readout. */
  async drawRow() {
    const row = position(store.state);
    if (this.data?.trace !== store.state.trace) return;
    this.heatmap.show({ chosen: { row, col: keyOf(store.state) } });
    await this.drawBars(row);
  }

  /** @param {number} row */
  async drawBars(row) {
    const { data } = this;
    const { shown } = store.state;
    const key = keyOf(store.state);
    if (!data || data.trace !== store.state.trace || row < 0) return;
    this.turn += 1;
    const mine = this.turn;
    const weights = await data.row(row, this.leavesFirst());
    if (this.data !== data || mine !== this.turn) return; // a newer row is on its way, and is what gets said
    this.bars.show(weights, shown, row, key);
    this.heatmap.name(strongest(weights));
    if (this.heatmap.pointed) return;
    const best = key ?? bestKey(weights);
    this.readout.textContent =
      key === null ? `${spelled(shown[row])} reads ${spelled(shown[best])} most: ${share(weights[best])}${this.renormalised}` : this.words(row, key, weights[key]);
    if (this.spoken) announce(this.readout.textContent);
    this.spoken = false;
  }

  #listen() {
    /** A trace that was destroyed while it was being read is no news. @param {Promise<void>} work */
    const quietly = (work) =>
      void work.catch((error) => this.data?.trace === store.state.trace && (this.readout.textContent = error.message));
    askAhead("head", (state) => this.ask(state));
    store.on(["trace", "layer", "head", "engine", "entry", "tokens"], () => quietly(this.load()));
    store.on(["zoom", "scale", "view", "painted"], () => quietly(this.drawPicture()));
    store.on(["zoom"], ({ noFirst }) => noFirst && quietly(this.drawRow())); // a part may be in hand where the whole is not
    store.on(["noFirst"], () => quietly(this.load()));
    store.on(["token", "key", "lock"], () => {
      quietly(this.drawRow());
      if (store.state.view !== "heatmap") quietly(this.drawPicture());
    });
    store.on([...WAITING_FOR], ({ trace }) => {
      this.empty.hidden = trace !== null;
      this.empty.textContent = waiting("No tokens, no attention: the heads wait for a prompt.");
    });
    store.on(["stale"], ({ stale }) => this.body.classList.toggle("stale", stale));
    new ResizeObserver(() => {
      if (this.width === this.panel.clientWidth) return;
      this.width = this.panel.clientWidth;
      quietly(this.drawPicture());
    }).observe(this.panel);
  }
}

/** Keys that a row's labels must name. @param {Float32Array} weights NaN is masked */
function strongest(weights) {
  const order = Array.from(weights.keys()).filter((key) => weights[key] >= STRONG);
  return order.sort((a, b) => weights[b] - weights[a]).slice(0, MOST_STRONG);
}

/** @param {Float32Array} weights NaN is masked */
function bestKey(weights) {
  let best = 0;
  weights.forEach((weight, key) => (weight > (weights[best] || -1) ? (best = key) : 0));
  return best;
}
