// What a chip shows for the bytes of one token. Nothing invisible stays invisible, and nothing pretends to be text that is
// not: blanks have glyphs, controls and zero-width characters are named, half a character is shown as its bytes in hex.

/** @type {Record<string, string>} */
const SHOWN = { " ": "·", "\n": "↵", "\t": "→", "\x7f": "⟨DEL⟩" };
/** Names of U+0000 to U+001F in ASCII; few monospace fonts have the pictures for them. */
const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");
/** Characters that the marks of blanks look like: as text they are named, so that no mark means two things. */
const MARKS = /[·↵→]/u;
/** Controls, format and bidi characters, other blanks, fillers, variation selectors, private and unassigned characters. */
const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u;

/**
 * Bytes as "E3 81".
 * @param {ArrayLike<number>} bytes
 */
const hexBytes = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");

/**
 * How one character is shown.
 * @param {string} c
 * @returns {string}
 */
export function glyphOf(c) {
  if (c in SHOWN) return SHOWN[c];
  const code = /** @type {number} */ (c.codePointAt(0));
  if (code < 0x20) return `⟨${CONTROLS[code]}⟩`;
  if (INVISIBLE.test(c) || MARKS.test(c)) return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return c;
}

const BLANK_OF = new Map([" ", "\n", "\t"].map((blank) => [SHOWN[blank], blank]));

/**
 * The text that is meant by one written with the marks of blanks: "·it" is " it".
 * @param {string} written
 */
export const unmarked = (written) => written.replace(/[·↵→]/gu, (mark) => BLANK_OF.get(mark) ?? mark);

const BLANKS = /** @type {Record<string, string>} */ ({ " ": "space", "\n": "newline", "\t": "tab" });

/**
 * What a text of blanks alone is called, of which the marks say little: "space", "newline, 4 spaces".
 * @param {string} text
 * @returns {string} "" for any other text
 */
export function blankName(text) {
  if (!/^[ \n\t]+$/.test(text)) return "";
  const runs = text.match(/ +|\n+|\t+/g) ?? [];
  return runs.map((run) => (run.length === 1 ? BLANKS[run] : `${run.length} ${BLANKS[run[0]]}s`)).join(", ");
}

/**
 * Text, glyph and whether a character begins or ends outside the token. In `text`, each run of stray bytes is one U+FFFD.
 * @param {Uint8Array} bytes of one token
 * @returns {{text: string, glyph: string, partial: boolean}}
 */
export function chip(bytes) {
  let text = "";
  let glyph = "";
  let partial = false;
  for (const run of runs(bytes)) {
    if (run.text === null) {
      partial = true;
      text += "\ufffd";
      glyph += `⟨${hexBytes(run.bytes)}⟩`;
    } else {
      // A mark that would sit on the letter of another chip gets a circle to sit on.
      glyph += (text === "" && /^\p{M}/u.test(run.text) && !INVISIBLE.test(run.text[0]) ? "◌" : "") + Array.from(run.text, glyphOf).join("");
      text += run.text;
    }
  }
  return { text, glyph, partial };
}

/**
 * The bytes as runs of whole characters (text) and of stray bytes (null).
 * @param {Uint8Array} bytes
 * @returns {{text: string | null, bytes: Uint8Array}[]}
 */
function runs(bytes) {
  /** @type {{text: string | null, from: number}[]} */
  const found = [];
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (let at = 0; at < bytes.length; ) {
    const length = characterBytes(bytes, at);
    const whole = length > 0 && at + length <= bytes.length ? tryDecode(decoder, bytes.subarray(at, at + length)) : null;
    const last = found.at(-1);
    if (last && (last.text === null) === (whole === null)) last.text = whole === null ? null : last.text + whole;
    else found.push({ text: whole, from: at });
    at += whole === null ? 1 : length;
  }
  return found.map(({ text, from }, i) => ({ text, bytes: bytes.subarray(from, found[i + 1]?.from ?? bytes.length) }));
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {number} bytes of the character that begins here, 0 for a byte that begins none
 */
function characterBytes(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return 1;
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
}

/**
 * @param {TextDecoder} decoder
 * @param {Uint8Array} bytes
 */
function tryDecode(decoder, bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
