// The tokens of what stands in the prompt box. A chip is the unit of selection everywhere: choosing token 7 chooses query
// row 7 of the head and column 7 of the lens. Long prompts show a window of chips and say so.
import { blankName } from "../lib/glyphs.js";
import { count, hex } from "../lib/numbers.js";
import { sharedCharacters } from "../lib/split_characters.js";
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

/** @returns {{element: HTMLElement, details: HTMLElement}} both keep themselves up to date; details: the selected token */
export function tokenChips() {
  const strip = h("div", {
    class: "chips",
    id: "chips",
    role: "listbox",
    "aria-label": "Tokens of the prompt",
    "aria-orientation": "horizontal",
  });
  const details = h("p", { id: "token-details", class: "token-details" });
  const pager = h("div", { class: "pager", hidden: true });
  const range = h("span", { class: "small dim" });
  let first = 0;
  const revealChosen = () => reveal(strip);
  const selected = () => Math.min(wished(store.state).token ?? Infinity, store.state.typed.length - 1);

  /** @param {number} i */
  const select = (i) => {
    const { typed, stale, promptError } = store.state;
    if (typed.length === 0) return;
    const token = Math.max(0, Math.min(typed.length - 1, i));
    const view = { token: token === typed.length - 1 ? null : token, key: null };
    if (stale || promptError) wish(view);
    else store.set(view); // the picture is that of these tokens
    announce(tokenWords(typed[token], token));
  };
  /** A window that is full wherever it lies. @param {number} start */
  const inside = (start) => Math.max(0, Math.min(store.state.typed.length - WINDOW, start));
  /** @param {number} step */
  const page = (step) => {
    first = inside(first + step * WINDOW);
    draw(false);
  };
  pager.append(
    h("button", { type: "button", class: "quiet", text: "Earlier tokens", onclick: () => page(-1) }),
    range,
    h("button", { type: "button", class: "quiet", text: "Later tokens", onclick: () => page(1) }),
  );

  /** @param {boolean} follow bring the selected token into the window */
  const draw = (follow) => {
    const { typed, promptError, prompt } = store.state;
    const chosen = selected();
    if (follow && (chosen < first || chosen >= first + WINDOW)) first = Math.floor(chosen / WINDOW) * WINDOW;
    first = inside(first);
    const shown = typed.slice(first, first + WINDOW);
    const hadFocus = strip.contains(document.activeElement);
    strip.replaceChildren(...chips(shown, first, typed.length, chosen));
    strip.dataset.count = String(typed.length);
    strip.hidden = typed.length === 0;
    strip.classList.toggle("refused", promptError !== null);
    beforePaint(revealChosen);
    if (hadFocus) /** @type {HTMLElement | null} */ (strip.querySelector("[tabindex='0']"))?.focus({ preventScroll: true });
    pager.hidden = typed.length <= WINDOW;
    range.textContent = `tokens ${count(first)}–${count(first + shown.length - 1)} of ${count(typed.length)}`;
    const none = prompt === "" ? "Nothing to look at yet: type a prompt, or choose an example." : "";
    details.textContent = typed[chosen] ? tokenWords(typed[chosen], chosen) : none;
  };
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
  store.on(["typed", "token", "coming", "promptError", "prompt"], () => draw(true));
  return { element: h("div", { class: "chips-box" }, strip, pager), details };
}

/** Scrolls the strip, and nothing around it, to the selected chip. @param {HTMLElement} strip */
function reveal(strip) {
  const chip = /** @type {HTMLElement | null} */ (strip.querySelector("[aria-selected='true']"));
  if (!chip || strip.scrollHeight <= strip.clientHeight) return;
  const [box, here] = [strip.getBoundingClientRect(), chip.getBoundingClientRect()];
  if (here.top < box.top) strip.scrollTop += here.top - box.top - 2;
  else if (here.bottom > box.bottom) strip.scrollTop += here.bottom - box.bottom + 2;
}

/**
 * @param {Piece[]} pieces
 * @param {number} first
 * @param {number} total
 * @param {number} chosen
 */
function chips(pieces, first, total, chosen) {
  const shared = sharedCharacters(pieces.map((piece) => piece.bytes));
  return pieces.map((piece, i) => {
    const selected = first + i === chosen;
    const joined = `${i > 0 && shared[i - 1] ? " joined-left" : ""}${shared[i] ? " joined-right" : ""}`;
    const rovingHere = selected || ((chosen < first || chosen >= first + pieces.length) && i === 0);
    return h(
      "div",
      {
        class: `chip${joined}`,
        role: "option",
        "data-token": first + i,
        "aria-selected": String(selected),
        tabindex: rovingHere ? 0 : -1,
        "aria-posinset": first + i + 1,
        "aria-setsize": total,
        "aria-label": piece.partial ? `${piece.glyph}, part of a character` : piece.glyph,
      },
      ...glyphs(piece.glyph),
    );
  });
}

/**
 * The glyph as text, with the marks that stand for blanks (· ↵ →) in a quieter ink.
 * @param {string} glyph
 * @param {string} [text] of the token: where it is blanks alone, their name follows the marks
 * @returns {(Node | string)[]}
 */
export function glyphs(glyph, text = "") {
  const parts = glyph
    .split(/([·↵→]+)/u)
    .filter(Boolean)
    .map((part) => (/^[·↵→]+$/u.test(part) ? h("span", { class: "mark", text: part }) : part));
  const name = blankName(text);
  return name ? [...parts, h("span", { class: "blank-name", text: ` ${name}` })] : parts;
}

/**
 * A token as `glyphs` shows it, in a sentence or a name: its glyph, and the name of blanks that stand alone.
 * @param {{glyph: string, text: string} | undefined} piece
 */
export function spelled(piece) {
  const name = blankName(piece?.text ?? "");
  return name ? `${piece?.glyph} ${name}` : (piece?.glyph ?? "");
}
