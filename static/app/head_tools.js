// The controls of one head: view, scale, first token, row lock, zoom, copy and export; and the legend of the colours.
import { cividis } from "../lib/colours.js";
import { h, sizeCanvas, toggle } from "./dom.js";
import { exportHead } from "./export.js";
import { store } from "./state.js";

const SCALES = {
  unit: { name: "Scale 0 to 1", legend: "weight, each row sums to 1" },
  row: { name: "Row maximum", legend: "weight over the largest in its row" },
  sqrt: { name: "Square root", legend: "square root of the weight" },
};

/**
 * @param {{zoom: (factor: number) => void, whole: () => void, data: () => import("./head_data.js").HeadData | null}} head
 */
export function headTools({ zoom, whole, data }) {
  const [views, scale] = [viewButtons(), scaleField()];
  const first = toggle("Without first token", false, (noFirst) => store.set({ noFirst }), { id: "no-first" });
  const lock = toggle("Follow pointer", false, (follow) => store.set({ lock: !follow }), {
    id: "lock-row",
    title: "Bars show the row under the pointer; off: they stay with the selected row",
  });
  const [zooms, save] = [zoomButtons(zoom, whole), saveButtons(data)];
  const legend = legendLine();
  store.on(["view"], ({ view }) => (zooms.hidden = legend.element.hidden = view !== "heatmap"));
  store.on(["noFirst"], ({ noFirst }) => first.setAttribute("aria-pressed", String(noFirst)));
  store.on(["lock"], (state) => lock.setAttribute("aria-pressed", String(!state.lock)));
  /** @param {boolean} possible */
  const allowFirst = (possible) => {
    legend.allowFirst(possible);
    first.disabled = !possible;
    first.title = possible
      ? "Leaves key 0 out and lets each row sum to 1 again"
      : "Zoom in until every cell is shown (about 1,000 tokens) to renormalise rows";
  };
  /** Nothing to zoom or to save without a picture. @param {boolean} shown */
  const allow = (shown) => {
    for (const button of [zooms, save].flatMap((group) => Array.from(group.children)))
      /** @type {HTMLButtonElement} */ (button).disabled = !shown;
  };
  return { bar: h("div", { class: "head-tools" }, views, scale, first), zoom: zooms, save, lock, legend: legend.element, allow, allowFirst };
}

/** Heatmap, arcs or table. */
function viewButtons() {
  const views = h("div", { class: "segments", role: "group", "aria-label": "View" });
  for (const view of /** @type {const} */ (["heatmap", "arcs", "table"])) {
    views.append(toggle(view[0].toUpperCase() + view.slice(1), false, () => store.set({ view }), { "data-view": view }));
  }
  store.on(["view"], ({ view }) => {
    for (const button of views.children)
      button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.view === view));
  });
  return views;
}

/** What the darkest and the lightest colour stand for. */
function scaleField() {
  const scale = h("select", {
    id: "scale",
    "aria-label": "Colour scale",
    onchange: () => store.set({ scale: /** @type {keyof typeof SCALES} */ (scale.value) }),
  });
  for (const [value, { name }] of Object.entries(SCALES)) scale.append(h("option", { value, text: name }));
  store.on(["scale"], (state) => (scale.value = state.scale));
  return scale;
}

/** @param {(factor: number) => void} zoom @param {() => void} whole */
function zoomButtons(zoom, whole) {
  return h(
    "div",
    { class: "segments small-tools", role: "group", "aria-label": "Zoom" },
    h("button", { type: "button", class: "toggle", text: "−", "aria-label": "Zoom out", onclick: () => zoom(1 / 1.5) }),
    h("button", { type: "button", class: "toggle", text: "+", "aria-label": "Zoom in", onclick: () => zoom(1.5) }),
    h("button", { type: "button", class: "toggle", text: "All", "aria-label": "Show all tokens", onclick: whole }),
  );
}

/** @param {() => import("./head_data.js").HeadData | null} data */
function saveButtons(data) {
  /** @param {"copy" | "csv" | "json"} how @param {string} text @param {string} label */
  const saver = (how, text, label) => {
    const run = () => {
      const head = data();
      if (head) void exportHead(head, how, store.state);
    };
    return h("button", { type: "button", class: "toggle", id: `${how}-head`, text, "aria-label": label, onclick: run });
  };
  return h(
    "div",
    { id: "export", class: "segments small-tools", role: "group", "aria-label": "Copy or export this head" },
    saver("copy", "Copy", "Copy this head as a table"),
    saver("csv", "CSV", "Save this head as CSV"),
    saver("json", "JSON", "Save this head as JSON"),
  );
}

/** The colours from 0 to 1, and what they say. */
function legendLine() {
  const note = h("span", { class: "small dim" });
  let possible = true;
  const draw = ({ scale, noFirst } = store.state) => {
    const rest = noFirst && possible ? "first token left out, rows renormalised" : "grey: masked";
    note.textContent = `${SCALES[scale].legend}; ${rest}`;
  };
  store.on(["scale", "noFirst"], draw);
  const allowFirst = (/** @type {boolean} */ now) => {
    possible = now;
    draw();
  };
  const ramp = h("canvas", { class: "ramp", role: "img", "aria-label": "colours from 0, dark blue, to 1, yellow" });
  const context = sizeCanvas(ramp, 96, 8);
  for (let x = 0; x < 96; x += 1) {
    context.fillStyle = `rgb(${cividis(x / 95).join(" ")})`;
    context.fillRect(x, 0, 1, 8);
  }
  const ends = [0, 1].map((text) => h("span", { class: "mono", text }));
  return { element: h("div", { class: "legend" }, ends[0], ramp, ends[1], note), allowFirst };
}
