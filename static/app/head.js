// The panel of one head: which head, how it is looked at (heatmap, arcs, table), the value under the cursor, the bars of one row.
import { share, three } from "../lib/numbers.js";
import { fitRegion, isWhole, reveal, wholeRegion, zoomAround } from "../lib/zoom.js";
import { Arcs } from "./arcs.js";
import { spelled } from "./glyphs.js";
import { announce, byId, h, panelTop } from "./dom.js";
import { headData, isExact, pixelOf } from "./head_data.js";
import { headTools } from "./head_tools.js";
import { HeadTable } from "./head_table.js";
import { Heatmap } from "./heatmap.js";
import { Overview } from "./overview.js";
import { RowBars } from "./row_bars.js";
import { WAITING_FOR, chosenHead, keyOf, position, select, store, waiting } from "./state.js";

/** @typedef {import("./heatmap.js").Cell} Cell */

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
    /** @type {import("./head_data.js").HeadData | null} */
    this.data = null;
    /** Measured when it changes: to ask in the middle of changes lays the page out once more. */
    this.width = 0;
    /** Counts the rows asked for, so that the newest one is the one that stays. */
    this.turn = 0;
    this.#listen();
  }

  get T() {
    return store.state.trace?.shape.T ?? 0;
  }

  /** @returns {import("../lib/pattern.js").Region} */
  region() {
    const { zoom } = store.state;
    if (!zoom) return wholeRegion(this.T);
    const [row0, rows, col0, cols] = zoom;
    return fitRegion({ row0, rows, col0, cols }, this.T);
  }

  /** @param {import("../lib/pattern.js").Region} region */
  zoomTo(region) {
    store.set({ zoom: isWhole(region, this.T) ? null : [region.row0, region.rows, region.col0, region.cols] });
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
    if (!cell || !picture) return void this.drawRow();
    const { value, rows, cols } = pixelOf(picture, cell);
    if (picture.exact) this.readout.textContent = this.words(cell.row, cell.col, value);
    else
      this.readout.textContent = `largest of queries ${rows[0]}–${rows[1] - 1}, keys ${cols[0]}–${cols[1] - 1}: ${Number.isNaN(value) ? "masked" : three(value)}`;
    if (!store.state.lock) void this.drawBars(cell.row);
  }

  /** @param {number} row @param {number} col @param {number} value */
  words(row, col, value) {
    const { shown, noFirst } = store.state;
    const left = noFirst && col === 0 ? "left out" : "masked";
    return `query ${row} ${spelled(shown[row])}, key ${col} ${spelled(shown[col])}: ${Number.isNaN(value) ? left : `weight ${three(value)}`}`;
  }

  /** Names the head and asks for its picture. */
  async load() {
    const { trace, engine } = store.state;
    const { layer, head } = chosenHead(store.state);
    const shape = trace?.shape ?? store.state.entry?.shape;
    byId("head-title").textContent = `L${layer} H${head}`;
    byId("head-about").textContent = shape ? `K/V group ${Math.floor(head / (shape.N / shape.K))}` : "";
    this.body.hidden = !trace;
    this.data = trace && engine ? headData(trace, engine.visible(layer), layer, head) : null;
    this.tools.allow(this.data !== null);
    if (this.data) await Promise.all([this.drawPicture(), this.drawRow()]);
  }

  async drawPicture() {
    const { data } = this;
    if (!data) return;
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
    this.heatmap.show({ chosen: { row, col: keyOf(store.state) } });
    await this.drawBars(row);
  }

  /** @param {number} row */
  async drawBars(row) {
    const { data } = this;
    const { noFirst, shown } = store.state;
    const key = keyOf(store.state);
    if (!data || row < 0) return;
    this.turn += 1;
    const mine = this.turn;
    const weights = await data.row(row, noFirst);
    if (this.data !== data || mine !== this.turn) return; // a newer row is on its way, and is what gets said
    this.bars.show(weights, shown, row, key);
    this.heatmap.name(strongest(weights));
    if (this.heatmap.pointed) return;
    const best = key ?? bestKey(weights);
    this.readout.textContent =
      key === null ? `${spelled(shown[row])} reads ${spelled(shown[best])} most: ${share(weights[best])}` : this.words(row, key, weights[key]);
    if (this.spoken) announce(this.readout.textContent);
    this.spoken = false;
  }

  #listen() {
    /** A trace that was destroyed while it was being read is no news. @param {Promise<void>} work */
    const quietly = (work) =>
      void work.catch((error) => this.data?.trace === store.state.trace && (this.readout.textContent = error.message));
    store.on(["trace", "layer", "head", "engine", "entry", "tokens"], () => quietly(this.load()));
    store.on(["zoom", "scale", "view", "painted"], () => quietly(this.drawPicture()));
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
