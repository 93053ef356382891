// The wall: every head of every layer as a thumbnail, layers down, heads across, a gap between groups that share keys and
// values. One canvas holds the pictures; one cell per head carries its name, its focus and its click.
import { plural } from "../lib/numbers.js";
import { toShade } from "../lib/pattern.js";
import { askAhead } from "./ahead.js";
import { byId, h, panelTop, sizeCanvas } from "./dom.js";
import { knownHeads } from "./known_heads.js";
import { paintTiles, themeColours } from "./paint.js";
import { chosenHead, store, whenIdle } from "./state.js";
import { fillingWall, thumbnails } from "./thumbnails.js";
import { gridRows, headWords, placeOf, wallNames } from "./wall_grid.js";
import { byLayer, inOrder, placeOfKey } from "./wall_layout.js";
import { wallScroll } from "./wall_scroll.js";
import { captionOf, orderTools, orderWords, orderedHeads, scoreWords } from "./wall_order.js";

/** @typedef {import("./wall_layout.js").Heads} Heads */
/** @typedef {import("./wall_layout.js").Place} Place */

/**
 * Thumbnails of a trace that are asked for: those that are not drawn yet, how many are, whether others' stay until all are.
 * @typedef {{trace: import("./state.js").Trace | null, layers: Map<number, Tiles>, drawn: number, over: boolean,
 *   stop: AbortController, all: Promise<void>}} Asked
 */
/** @typedef {{data: Float32Array, out: number}} Tiles a layer's thumbnails, N * out * out weights */

/** Of the panel, both sides together. */
const [PADDING_PX, NARROW_PADDING_PX] = [24, 18];

export class Wall {
  constructor() {
    this.panel = byId("wall");
    this.about = h("p");
    this.canvas = h("canvas", { class: "heat-canvas", "aria-hidden": "true" });
    this.names = h("div", { class: "wall-names" });
    this.grid = h("div", {
      class: "wall-grid",
      role: "grid",
      "aria-label": "Attention heads, layers down, heads across",
      "aria-readonly": "true",
    });
    this.box = h("div", { class: "wall-box picture" }, this.canvas, this.names, this.grid);
    this.readout = h("p", { class: "small dim wall-readout", id: "wall-readout" });
    this.order = h("p", { class: "small dim", id: "wall-order-note", role: "status" });
    panelTop(byId("wall-title"), this.about);
    const window = h("div", { class: "wall-scroll" }, this.box);
    const named = h("div", {}, window, this.readout); // the line stays beside the wall and never covers what is above it
    this.panel.append(orderTools(), this.order, named, knownHeads());
    const open = () => this.grid.querySelector("[aria-selected='true']");
    this.scroll = wallScroll(window, () => /** @type {HTMLElement | null} */ (open()));
    /** An example or a link chose the head of the picture that is on its way. */
    this.led = false;
    /** Of each layer. @type {Map<number, Tiles>} */
    this.layers = new Map();
    /** @type {import("./wall_layout.js").Layout | null} */
    this.layout = null;
    /** The thumbnails that were asked for last. @type {Asked | null} */
    this.asked = null;
    this.panelWidth = 0;
    this.built = "";
    this.#listen();
  }

  /** @returns {Heads | null} */
  get heads() {
    return store.state.trace?.shape ?? store.state.entry?.shape ?? null;
  }

  /** Lays the cells out, when the model, the order or the room changed. */
  build() {
    const { heads } = this;
    if (!heads || !this.panelWidth) return; // a panel that was never laid out says its width in a moment
    const wide = matchMedia("(min-width: 720px)").matches;
    const width = this.panelWidth - (wide ? PADDING_PX : NARROW_PADDING_PX);
    const listed = orderedHeads(store.state, heads);
    this.order.textContent = orderWords(store.state, listed, heads);
    const captions = listed?.map((place) => [place.layer, place.head, captionOf(store.state, place)]);
    const { L, N, K } = heads;
    const key = JSON.stringify([store.state.entry?.hash, L, N, K, width, window.devicePixelRatio, captions]);
    if (key === this.built) return;
    this.built = key;
    const layout = listed ? inOrder(listed, width) : byLayer(heads, width, wide);
    this.layout = layout;
    this.panel.dataset.layers = String(L);
    this.about.textContent = `${plural(L, "layer")} × ${plural(N, "head")}, ${plural(K, "K/V group")}`;
    Object.assign(this.box.style, { width: `${layout.width}px`, height: `${layout.height}px` });
    this.grid.setAttribute("aria-label", layout.listed ? "Attention heads in order" : "Attention heads, layers down, heads across");
    const focused = placeOf(document.activeElement);
    const caption = (/** @type {Place} */ place) => captionOf(store.state, place);
    this.grid.replaceChildren(...gridRows(heads, layout, caption));
    this.names.replaceChildren(wallNames(heads, layout, caption));
    this.draw();
    this.mark();
    this.scroll.reveal();
    if (focused) document.getElementById(`head-${focused.layer}-${focused.head}`)?.focus();
  }

  draw() {
    const { heads, layout } = this;
    if (!heads || !layout) return;
    sizeCanvas(this.canvas, layout.width, layout.height);
    const { mask } = themeColours(this.canvas);
    for (let layer = 0; layer < heads.L; layer += 1) this.drawLayer(layer, heads.N, mask);
  }

  /** @param {number} layer @param {number} N @param {import("../lib/colours.js").Rgb} mask */
  drawLayer(layer, N, mask) {
    const { layout } = this;
    if (!layout) return;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const { data, out } = this.layers.get(layer) ?? { data: new Float32Array(N).fill(NaN), out: 1 };
    const boxes = Array.from({ length: N }, (_, n) => {
      const spot = layout.at(layer, n);
      return spot && { ...spot, width: layout.size, height: layout.size };
    });
    paintTiles(context, toShade(data, out, store.state.scale), out, boxes, mask);
  }

  /**
   * Asks for a trace's thumbnails, and takes those that come once the trace is shown. Only the newest asking goes on.
   * @param {import("./state.js").State} state
   */
  ask({ trace, engine }) {
    this.asked?.stop.abort();
    const stop = new AbortController();
    /** @type {Asked} */
    const asked = { trace, layers: new Map(), drawn: 0, over: this.layers.size > 0, stop, all: Promise.resolve() };
    this.asked = asked;
    if (!trace) return asked;
    const out = Math.min(trace.shape.T, Math.round((this.layout?.size ?? 20) * Math.max(1, window.devicePixelRatio)));
    const rule = (/** @type {number} */ layer) => engine?.visible(layer) ?? { window: 0, sinks: 0 };
    this.panel.dataset.drawn = "0";
    performance.clearMeasures("wall drawn");
    performance.mark("wall asked");
    asked.all = (async () => {
      for await (const { layer, data } of thumbnails(trace, out, rule, stop.signal)) {
        if (stop.signal.aborted) return;
        asked.layers.set(layer, { data, out });
        this.take(asked);
      }
    })();
    // A prompt that gave way leaves the wall to the one that is shown.
    asked.all.catch(() => this.asked === asked && store.state.trace !== trace && void this.load().catch(() => {}));
    return asked;
  }

  /** Draws what came of the trace that is shown. @param {Asked} asked */
  take(asked) {
    const { trace, layers } = asked;
    if (!trace || trace !== store.state.trace) return;
    const { mask } = themeColours(this.canvas);
    for (const [layer, tiles] of layers) {
      this.layers.set(layer, tiles);
      this.drawLayer(layer, trace.shape.N, mask);
      asked.drawn += 1;
    }
    layers.clear();
    this.panel.dataset.drawn = String(asked.drawn);
    this.box.classList.toggle("behind", asked.over && asked.drawn < trace.shape.L);
    if (asked.drawn === trace.shape.L) performance.measure("wall drawn", "wall asked");
  }

  /** Fills the wall of the trace that is shown: what was asked for ahead at once, and the rest as it comes. */
  async load() {
    const { trace } = store.state;
    if (this.asked?.trace !== trace) {
      this.asked?.stop.abort();
      if (trace) await whenIdle();
      if (trace !== store.state.trace) return;
      if (this.asked?.trace !== trace) this.ask(store.state);
    }
    if (!trace) {
      this.layers.clear();
      this.box.classList.remove("behind");
      return this.draw();
    }
    const asked = /** @type {Asked} */ (this.asked);
    this.take(asked);
    await asked.all;
  }

  /** Shows which head is open; the focus goes there when it comes into the wall. */
  mark() {
    const { layer, head } = chosenHead(store.state);
    const inside = this.grid.contains(document.activeElement);
    const cells = Array.from(this.grid.querySelectorAll("[role='gridcell']"));
    const stop = cells.find((cell) => cell.id === `head-${layer}-${head}`) ?? cells[0]; // the open head may be filtered out
    for (const cell of cells) {
      cell.setAttribute("aria-selected", String(cell.id === `head-${layer}-${head}`));
      if (!inside) cell.setAttribute("tabindex", cell === stop ? "0" : "-1");
    }
    this.say({ layer, head });
  }

  /** @param {Place} place */
  say(place) {
    if (!this.heads) return;
    const words = [headWords(this.heads, place), scoreWords(store.state, place)];
    this.readout.textContent = words.filter(Boolean).join("; ");
  }

  /** @param {EventTarget | null} target */
  open(target) {
    const place = placeOf(target);
    if (place) store.set(place);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const from = placeOf(event.target);
    if (!this.layout || !from || event.ctrlKey || event.metaKey || event.altKey) return;
    const opens = event.key === "Enter" || event.key === " ";
    const place = opens ? null : placeOfKey(event.key, this.layout, from);
    if (!opens && !place) return;
    event.preventDefault();
    if (!place) return this.open(event.target);
    /** @type {HTMLElement} */ (event.target).tabIndex = -1;
    const cell = byId(`head-${place.layer}-${place.head}`);
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
        if (place) this.say(place);
      });
    }
    const back = () => this.say(chosenHead(store.state));
    grid.addEventListener("focusout", back);
    grid.addEventListener("pointerleave", back);
    new ResizeObserver(() => {
      this.panelWidth = this.panel.clientWidth;
      this.build();
    }).observe(this.panel);
    store.on(["entry", "trace", "order", "only", "promptScores"], () => this.build());
    askAhead("wall", (state) => this.ask(state).all);
    store.on(["trace"], ({ trace }) => {
      const load = this.load();
      fillingWall(load);
      load.catch((error) => {
        // A trace that a newer prompt replaced while the wall was filling is nobody's error.
        if (trace && store.state.trace === trace && error.name !== "AbortError") this.readout.textContent = error.message;
      });
    });
    store.on(["scale", "painted"], () => this.draw());
    store.on(["layer", "head", "entry", "trace"], () => this.mark());
    store.on(["layer", "head"], () => this.scroll.reveal());
    store.on(["coming"], ({ coming }) => {
      if (this.led && !coming) this.scroll.reveal();
      this.led = coming !== null && "layer" in coming;
    });
    store.on(["stale"], ({ stale }) => this.box.classList.toggle("stale", stale));
  }
}
