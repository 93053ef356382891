// The chips as elements. Those that show the same as before stay, so that a letter typed changes one or two; others are made so
// many for each picture of the page, since a long text that comes at once would hold it up with laying them all out.
import { sharedCharacters } from "../lib/split_characters.js";
import { glyphs } from "./glyphs.js";
import { h } from "./dom.js";

/** Chips made for one picture of the page. */
const AT_ONCE = 40;

/** @typedef {import("./state.js").Piece} Piece */
/** @typedef {{pieces: Piece[], first: number, total: number, chosen: number}} Window pieces are tokens first.. of total */

/**
 * @param {HTMLElement} strip
 * @returns {(window: Window, done: () => void) => void} makes the strip show a window; done: it does
 */
export function chipStrip(strip) {
  let turn = 0;
  return ({ pieces, first, total, chosen }, done) => {
    turn += 1;
    const mine = turn;
    const joined = joints(pieces);
    const stop = chosen >= first && chosen < first + pieces.length ? chosen - first : 0; // the one that Tab reaches
    let at = 0;
    const slice = () => {
      if (mine !== turn) return; // another window is wanted by now
      for (let made = 0; at < pieces.length && made < AT_ONCE; at += 1) {
        const there = /** @type {HTMLElement | undefined} */ (strip.children[at]);
        const shows = `${pieces[at].id} ${pieces[at].glyph}${joined[at]}`;
        const chip = there?.dataset.shows === shows ? there : chipOf(pieces[at], joined[at], shows);
        place(chip, first + at, total, first + at === chosen, at === stop);
        if (chip === there) continue;
        if (there) there.replaceWith(chip);
        else strip.append(chip);
        made += 1;
      }
      if (at < pieces.length) requestAnimationFrame(slice);
      else done();
    };
    while (strip.children.length > pieces.length) strip.lastElementChild?.remove();
    slice();
  };
}

/** Classes of chips whose characters go over into their neighbours. @param {Piece[]} pieces */
function joints(pieces) {
  const shared = sharedCharacters(pieces.map((piece) => piece.bytes));
  return pieces.map((_, i) => `${i > 0 && shared[i - 1] ? " joined-left" : ""}${shared[i] ? " joined-right" : ""}`);
}

/** @param {Piece} piece @param {string} joined @param {string} shows what tells it from others */
function chipOf(piece, joined, shows) {
  const props = { class: `chip${joined}`, role: "option", "data-shows": shows };
  const name = piece.partial ? `${piece.glyph}, part of a character` : piece.glyph;
  return h("div", { ...props, "aria-label": name }, ...glyphs(piece.glyph));
}

/**
 * Says which token a chip is; what it says already is not written again.
 * @param {HTMLElement} chip @param {number} token @param {number} total @param {boolean} selected @param {boolean} stop
 */
function place(chip, token, total, selected, stop) {
  const said = { "data-token": token, "aria-posinset": token + 1, "aria-setsize": total, "aria-selected": selected, tabindex: stop ? 0 : -1 };
  for (const [name, value] of Object.entries(said)) if (chip.getAttribute(name) !== String(value)) chip.setAttribute(name, String(value));
}
