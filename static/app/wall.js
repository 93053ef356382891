// The wall: every head of every layer as a thumbnail, layers down, heads across, a gap between groups that share keys and
// values. One canvas holds the pictures; one cell per head carries its name, its focus and its click.
import { plural } from "../lib/numbers.js";
import { maskPixels, toShade } from "../lib/pattern.js";
import { wholeRegion } from "../lib/zoom.js";
import { byId, h, panelTop, sizeCanvas } from "./dom.js";
import { paintMatrix, themeColours } from "./paint.js";
import { chosenHead, store, whenIdle } from "./state.js";
import { cellOfKey, gridRows, headNames, measure, placeOf } from "./wall_grid.js";

/** @typedef {import("./wall_grid.js").Heads} Heads */

export class Wall {
  constructor() {
    this.panel = byId("wall");
    this.about = h("p");
    this.canvas = h("canvas", { class: "heat-canvas", "aria-hidden": "true" });
    this.names = h("div");
    this.grid = h("div", {
      class: "wall-grid",
      role: "grid",
      "aria-label": "Attention heads, layers down, heads across",
      "aria-readonly": "true",
    });
    this.box = h("div", { class: "wall-box picture" }, this.canvas, this.names, this.grid);
    this.readout = h("p", { class: "small dim wall-readout", id: "wall-readout" });
    panelTop(byId("wall-title"), this.about);
    this.panel.append(h("div", { class: "wall-scroll" }, this.box), this.readout);
    /** @type {Map<number, {data: Float32Array, out: number}>} thumbnails of each layer, N * out * out weights */
    this.layers = new Map();
    /** @type {import("./wall_grid.js").Sizes | null} */
    this.sizes = null;
    this.built = "";
    this.#listen();
  }

  /** @returns {Heads | null} */
  get heads() {
    return store.state.trace?.shape ?? store.state.entry?.shape ?? null;
  }

  /** Lays the cells out, when the model or the room changed. */
  build() {
    const { heads } = this;
    const width = matchMedia("(min-width: 720px)").matches ? 300 : this.panel.clientWidth - 18;
    const key = JSON.stringify([heads?.L, heads?.N, heads?.K, width, window.devicePixelRatio]);
    if (!heads || key === this.built) return;
    this.built = key;
    this.sizes = measure(heads, width);
    this.about.textContent = `${plural(heads.L, "layer")} × ${plural(heads.N, "head")}, ${plural(heads.K, "K/V group")}`;
    Object.assign(this.box.style, { width: `${this.sizes.width}px`, height: `${this.sizes.height}px` });
    this.grid.replaceChildren(...gridRows(heads, this.sizes));
    this.names.replaceChildren(headNames(heads, this.sizes));
    this.draw();
    this.mark();
  }

  draw() {
    const { heads, sizes } = this;
    if (!heads || !sizes) return;
    sizeCanvas(this.canvas, sizes.width, sizes.height);
    for (let layer = 0; layer < heads.L; layer += 1) this.drawLayer(layer, heads.N);
  }

  /** @param {number} layer @param {number} N */
  drawLayer(layer, N) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const { mask } = themeColours(this.canvas);
    const found = this.layers.get(layer);
    for (let n = 0; this.sizes && n < N; n += 1) {
      const target = { x: this.sizes.x(n), y: this.sizes.y(layer), width: this.sizes.size, height: this.sizes.size };
      const out = found?.out ?? 1;
      const cells = found ? found.data.subarray(n * out * out, (n + 1) * out * out) : new Float32Array([NaN]);
      paintMatrix(context, toShade(cells, out, store.state.scale), out, out, target, mask);
    }
  }

  /** Asks for the thumbnails, layer by layer; old ones stay until the new ones are there. */
  async load() {
    const { trace, engine } = store.state;
    if (!trace) {
      this.layers.clear();
      return this.draw();
    }
    const { L, N, T } = trace.shape;
    const out = Math.min(T, Math.round((this.sizes?.size ?? 20) * Math.max(1, window.devicePixelRatio)));
    const region = wholeRegion(T);
    this.panel.dataset.drawn = "0";
    for (let layer = 0; layer < L; layer += 1) {
      await whenIdle();
      if (store.state.trace !== trace) return;
      const data = await trace.window({ layer, head0: 0, heads: N, ...region, outRows: out, outCols: out, reduce: "max" });
      if (store.state.trace !== trace) return;
      const rule = engine?.visible(layer) ?? { window: 0, sinks: 0 };
      for (let n = 0; n < N; n += 1) maskPixels(data.subarray(n * out * out, (n + 1) * out * out), region, out, out, rule);
      this.layers.set(layer, { data, out });
      this.drawLayer(layer, N);
      this.panel.dataset.drawn = String(layer + 1);
    }
  }

  /** Shows which head is open; the focus goes there when it comes into the wall. */
  mark() {
    const { layer, head } = chosenHead(store.state);
    const inside = this.grid.contains(document.activeElement);
    for (const cell of this.grid.querySelectorAll("[role='gridcell']")) {
      const on = cell.id === `head-${layer}-${head}`;
      cell.setAttribute("aria-selected", String(on));
      if (!inside) cell.setAttribute("tabindex", on ? "0" : "-1");
    }
    this.say(layer, head);
  }

  /** @param {number} layer @param {number} head */
  say(layer, head) {
    const { heads } = this;
    if (heads) this.readout.textContent = `L${layer} H${head}, K/V group ${Math.floor(head / (heads.N / heads.K))}`;
  }

  /** @param {EventTarget | null} target */
  open(target) {
    const place = placeOf(target);
    if (place) store.set({ layer: place[0], head: place[1] });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.heads) return;
    const opens = event.key === "Enter" || event.key === " ";
    const cell = opens ? null : cellOfKey(event, this.heads);
    if (!opens && !cell) return;
    event.preventDefault();
    if (opens) return this.open(event.target);
    /** @type {HTMLElement} */ (event.target).tabIndex = -1;
    if (!cell) return;
    cell.tabIndex = 0;
    cell.focus();
  }

  #listen() {
    const { grid } = this;
    grid.addEventListener("click", (event) => this.open(event.target));
    grid.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focusin", "pointerover"]) {
      grid.addEventListener(kind, (event) => {
        const place = placeOf(event.target);
        if (place) this.say(...place);
      });
    }
    const back = () => {
      const { layer, head } = chosenHead(store.state);
      this.say(layer, head);
    };
    grid.addEventListener("focusout", back);
    grid.addEventListener("pointerleave", back);
    new ResizeObserver(() => this.build()).observe(this.panel);
    store.on(["entry", "trace"], () => this.build());
    store.on(["trace"], ({ trace }) => {
      this.load().catch((error) => {
        // A trace that a newer prompt replaced while the wall was filling is nobody's error.
        if (trace && store.state.trace === trace) this.readout.textContent = error.message;
      });
    });
    store.on(["scale", "painted"], () => this.draw());
    store.on(["layer", "head", "entry", "trace"], () => this.mark());
    store.on(["stale"], ({ stale }) => this.box.classList.toggle("stale", stale));
  }
}
