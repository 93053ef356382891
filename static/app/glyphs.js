// Tokens as they are written in the page: text with the marks that stand for blanks.
import { blankName } from "../lib/glyphs.js";
import { h } from "./dom.js";

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
