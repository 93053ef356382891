// The tokens of what stands in the prompt box. A chip is the unit of selection everywhere: choosing token 7 chooses query
// row 7 of the head and column 7 of the lens. Long prompts show a window of chips and say so.
import { count, hex } from "../lib/numbers.js";
import { chipStrip } from "./chip_strip.js";
import { announce, beforePaint, h } from "./dom.js";
import { store, wish, wished } from "./state.js";

const WINDOW = 160;

/** @typedef {import("./state.js").Piece} Piece */

/**
 * What a chip stands for, in words.
 * @param {Piece} piece
 * @param {number} i
 */
function tokenWords(piece, i) {
  const text = piece.partial ? "part of a character" : JSON.stringify(piece.text);
  return `token ${i} · id ${count(piece.id)} · bytes ${hex(piece.bytes)} · ${text}`;
}

/** Chooses a token, or the nearest there is. @param {number} i */
function select(i) {
  const { typed, stale, promptError } = store.state;
  if (typed.length === 0) return;
  const token = Math.max(0, Math.min(typed.length - 1, i));
  const view = { token: token === typed.length - 1 ? null : token, key: null };
  if (stale || promptError) wish(view);
  else store.set(view); // the picture is that of these tokens
  announce(tokenWords(typed[token], token));
}

/** The selected token of what stands in the box. */
const selected = () => Math.min(wished(store.state).token ?? Infinity, store.state.typed.length - 1);

/** A window that is full wherever it lies. @param {number} start */
const inside = (start) => Math.max(0, Math.min(store.state.typed.length - WINDOW, start));

/** The strip of chips, empty: a click and the keys choose a token. */
function emptyStrip() {
  const strip = h("div", {
    class: "chips",
    id: "chips",
    role: "listbox",
    "aria-label": "Tokens of the prompt",
    "aria-orientation": "horizontal",
  });
  strip.addEventListener("click", (event) => {
    const chip = /** @type {HTMLElement} */ (event.target).closest(".chip");
    if (chip instanceof HTMLElement) select(Number(chip.dataset.token));
  });
  strip.addEventListener("keydown", (event) => {
    const chosen = selected();
    const goes = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, ArrowUp: chosen - 10, ArrowDown: chosen + 10, Home: 0, End: Infinity }[
      event.key
    ];
    if (goes === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    select(goes);
  });
  return strip;
}

/**
 * Which window is shown, and the way to those beside it.
 * @param {(step: number) => void} page
 * @returns {{element: HTMLElement, show: (first: number, shown: number, total: number) => void}}
 */
function windowPager(page) {
  const range = h("span", { class: "small dim" });
  const earlier = h("button", { type: "button", class: "quiet", text: "Earlier", "aria-label": "Earlier tokens", onclick: () => page(-1) });
  const later = h("button", { type: "button", class: "quiet", text: "Later", "aria-label": "Later tokens", onclick: () => page(1) });
  const element = h("div", { class: "pager", hidden: true }, earlier, range, later);
  return {
    element,
    show: (first, shown, total) => {
      element.hidden = total <= WINDOW;
      earlier.setAttribute("aria-disabled", String(first === 0));
      later.setAttribute("aria-disabled", String(first + shown === total));
      range.textContent = `tokens ${count(first)}–${count(first + shown - 1)} of ${count(total)}`;
    },
  };
}

/** @returns {{element: HTMLElement, details: HTMLElement}} both keep themselves up to date; details: the selected token */
export function tokenChips() {
  const strip = emptyStrip();
  const details = h("p", { id: "token-details", class: "token-details" });
  const show = chipStrip(strip);
  let first = 0;
  let hadFocus = false;
  const revealChosen = () => reveal(strip);
  const pager = windowPager((step) => {
    first = inside(first + step * WINDOW);
    draw(false);
  });

  /** @param {boolean} follow bring the selected token into the window */
  const draw = (follow) => {
    const { typed, promptError, prompt } = store.state;
    const chosen = selected();
    if (follow && (chosen < first || chosen >= first + WINDOW)) first = Math.floor(chosen / WINDOW) * WINDOW;
    first = inside(first);
    const shown = typed.slice(first, first + WINDOW);
    hadFocus ||= strip.contains(document.activeElement);
    show({ pieces: shown, first, total: typed.length, chosen }, () => {
      strip.dataset.count = String(typed.length);
      beforePaint(revealChosen);
      const lost = document.activeElement === document.body || strip.contains(document.activeElement);
      if (hadFocus && lost) /** @type {HTMLElement | null} */ (strip.querySelector("[tabindex='0']"))?.focus({ preventScroll: true });
      hadFocus = false;
    });
    strip.hidden = typed.length === 0;
    strip.classList.toggle("refused", promptError !== null);
    strip.classList.toggle("full", shown.length === WINDOW);
    pager.show(first, shown.length, typed.length);
    const none = prompt === "" ? "Nothing to look at yet: type a prompt, or choose an example." : "";
    details.textContent = typed[chosen] ? tokenWords(typed[chosen], chosen) : none;
  };
  store.on(["typed", "token", "coming", "promptError", "prompt"], () => draw(true));
  return { element: h("div", { class: "chips-box" }, strip, pager.element), details };
}

/** Scrolls the strip, and nothing around it, to the selected chip. @param {HTMLElement} strip */
function reveal(strip) {
  const chip = /** @type {HTMLElement | null} */ (strip.querySelector("[aria-selected='true']"));
  if (!chip || strip.scrollHeight <= strip.clientHeight) return;
  const [box, here] = [strip.getBoundingClientRect(), chip.getBoundingClientRect()];
  if (here.top < box.top) strip.scrollTop += here.top - box.top - 2;
  else if (here.bottom > box.bottom) strip.scrollTop += here.bottom - box.bottom + 2;
}
