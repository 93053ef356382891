// One line that says what is being done: with a number after half a second, with Cancel after two.
import { count } from "../lib/numbers.js";
import { h } from "./dom.js";
import { store } from "./state.js";

const SHOW_MS = 500;
const CANCEL_MS = 2000;

/** @typedef {import("./state.js").Progress} Progress */

/** @param {Progress} progress */
function numbers({ done, total, unit }) {
  if (!total) return "";
  if (unit === "MB") return `${count(done)} of ${count(total)} MB, ${Math.floor((100 * done) / total)} %`;
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
