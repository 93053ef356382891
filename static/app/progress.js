// What is being done, with a number: the line under the prompt (after half a second; Cancel after two), and that of a dialog.
import { count, partOf } from "../lib/numbers.js";
import { byId, h, passFocus } from "./dom.js";
import { store } from "./state.js";

const SHOW_MS = 500;
/** What takes longer can be cancelled. */
export const CANCEL_MS = 2000;

/** @typedef {import("./state.js").Progress} Progress */

/** @param {Progress} progress */
function numbers({ done, total, unit }) {
  if (!total) return "";
  if (unit === "bytes") return `${partOf(done, total)}, ${Math.floor((100 * done) / total)} %`;
  return `${Math.floor((100 * done) / total)} %`;
}

/** @returns {HTMLElement} keeps itself up to date */
export function progressLine() {
  const bar = h("progress", { max: "1", "aria-label": "Progress" });
  const words = h("span", { id: "progress-words" });
  const cancel = h("button", {
    type: "button",
    id: "cancel",
    class: "quiet",
    text: "Cancel",
    onclick: () => store.state.progress?.cancel?.(),
  });
  const line = h("div", { class: "progress-line", hidden: true }, bar, words, cancel);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const draw = () => {
    clearTimeout(timer);
    const { progress } = store.state;
    const age = progress ? performance.now() - progress.since : 0;
    if (!progress) passFocus(cancel, byId("prompt-text"));
    line.hidden = !progress || age < SHOW_MS;
    cancel.hidden = !progress?.cancel || age < CANCEL_MS;
    if (!progress) return;
    words.textContent = `${progress.what}: ${numbers(progress)}`;
    if (progress.total) bar.value = progress.done / progress.total;
    else bar.removeAttribute("value");
    const next = [SHOW_MS, CANCEL_MS].find((limit) => age < limit);
    if (next !== undefined) timer = setTimeout(draw, next - age + 5);
  };
  store.on(["progress"], draw);
  return line;
}

const TICK_MS = 1000;

/**
 * For work in steps that a sentence beside it names: how much of the step is done where that is known, and the seconds so far,
 * which go on where it is not.
 * @returns {{element: HTMLElement, start: () => void, part: (part: number | null) => void, stop: () => void}}
 */
export function stepProgress() {
  const bar = h("progress", { max: "1", "aria-label": "Progress of this step" });
  const words = h("span", { class: "step-number" });
  const element = h("div", { class: "progress-line", hidden: true }, bar, words);
  /** @type {number | null} */
  let done = null;
  let began = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const draw = () => {
    const seconds = `${count(Math.floor((performance.now() - began) / 1000))} s`;
    words.textContent = done === null ? seconds : `${Math.floor(100 * done)} % of this step, ${seconds} in all`;
    if (done === null) bar.removeAttribute("value");
    else bar.value = done;
  };
  const part = (/** @type {number | null} */ now) => {
    done = now;
    draw();
  };
  const stop = () => {
    clearInterval(timer);
    element.hidden = true;
  };
  const start = () => {
    stop();
    began = performance.now();
    part(null);
    element.hidden = false;
    timer = setInterval(draw, TICK_MS);
  };
  return { element, start, part, stop };
}
