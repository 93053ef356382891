// Text to token ids and back, truthfully; the same ids and bytes as weights/tokens.py.
// Text that somebody typed never becomes a control token, nothing is put before or after a prompt, and a chip shows what a
// token really is: its bytes, with glyphs for blanks, names for what cannot be seen, and hex for half a character.
// The byte-pair merging is the library's (@huggingface/tokenizers, handed in by the page: this folder imports nothing from
// outside); where the library differs from the reference tokenizer, `adapt` hands it a description on which they agree.
import { chip } from "./glyphs.js";

/** @typedef {{id: number, bytes: Uint8Array, text: string, glyph: string, partial: boolean}} Piece */
/** @typedef {{type: string, [key: string]: any}} Step one step of a tokenizer.json */
/** @typedef {{pre_tokenizer: ((text: string, options?: any) => string[]) | null, encode(text: string, options: object): {ids: number[]}}} Encoder */
/** @typedef {new (tokenizer: any, config: any) => Encoder} Library the class Tokenizer of @huggingface/tokenizers */

/** GPT-2's own pattern, as the reference reads it: \s is White_Space, which holds U+0085 and leaves out U+FEFF. */
const GPT2_PATTERN = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

export class TokenizerError extends Error {
  /**
   * @param {"tokenizer-broken" | "bad-token-id"} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "TokenizerError";
    this.code = code;
  }
}

/** GPT-2's alphabet: the printable letter that stands for each byte. */
export const BYTE_LETTERS = (() => {
  const shown = (/** @type {number} */ byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  let hidden = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(shown(byte) ? byte : hidden++));
})();
const BYTE_OF = new Map(BYTE_LETTERS.map((letter, byte) => [letter, byte]));

export class Tokens {
  /**
   * @param {Library} Library
   * @param {any} tokenizer parsed tokenizer.json
   */
  static from(Library, tokenizer) {
    return new Tokens(Library, tokenizer);
  }

  /**
   * @param {Library} Library
   * @param {any} tokenizer
   */
  constructor(Library, tokenizer) {
    const vocabulary = tokenizer?.model?.vocab;
    if (!JSON.stringify(tokenizer?.pre_tokenizer ?? null).includes('"ByteLevel"') || typeof vocabulary !== "object") {
      throw new TokenizerError("tokenizer-broken", "tokenizer.json is not byte-level BPE; only byte-level tokenizers are read.");
    }
    if (JSON.stringify(tokenizer.pre_tokenizer).includes('"add_prefix_space":true')) {
      throw new TokenizerError("tokenizer-broken", "tokenizer.json puts a space before each text (add_prefix_space); only false is read.");
    }
    /** @type {string[]} */
    this.letters = [];
    for (const [token, id] of Object.entries(vocabulary)) this.letters[id] = token;
    /** @type {Map<number, string>} control tokens */
    this.controls = new Map((tokenizer.added_tokens ?? []).map((/** @type {any} */ added) => [added.id, added.content]));
    this.size = Math.max(this.letters.length, ...[...this.controls.keys()].map((id) => id + 1));
    this.known = new Set(BYTE_LETTERS.filter((letter) => Object.hasOwn(vocabulary, letter)));
    /** @type {Map<number, Piece>} */
    this.seen = new Map();
    this.encoder = build(Library, tokenizer, this.known);
  }

  /**
   * Ids of the text, nothing added; lone surrogates, which are no text, become U+FFFD.
   * @param {string} text
   * @returns {number[]}
   */
  encode(text) {
    return this.encoder.encode(wellFormed(text), { add_special_tokens: false }).ids;
  }

  /**
   * Characters of the text with bytes that no token of this model stands for: `encode` leaves those bytes out.
   * @param {string} text
   * @returns {string[]} each once
   */
  missing(text) {
    const encoder = new TextEncoder();
    return [...new Set(wellFormed(text))].filter((c) => encoder.encode(c).some((byte) => !this.known.has(BYTE_LETTERS[byte])));
  }

  /**
   * The text of ids, control tokens spelt out; bytes that are no UTF-8 become U+FFFD.
   * @param {number[]} ids
   */
  decode(ids) {
    const all = ids.map((id) => this.bytes(id));
    const joined = new Uint8Array(all.reduce((sum, bytes) => sum + bytes.length, 0));
    let at = 0;
    for (const bytes of all) {
      joined.set(bytes, at);
      at += bytes.length;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(joined);
  }

  /**
   * What a chip shows for each token; the same token gives the same object, for a prompt is cut up at every key press.
   * @param {number[]} ids
   * @returns {Piece[]}
   */
  pieces(ids) {
    return ids.map((id) => {
      const seen = this.seen.get(id);
      if (seen) return seen;
      const bytes = this.bytes(id);
      const piece = Object.freeze({ id, bytes, ...chip(bytes) });
      this.seen.set(id, piece);
      return piece;
    });
  }

  /**
   * The text of a control token; null for any other.
   * @param {number} id
   */
  special(id) {
    return this.controls.get(id) ?? null;
  }

  /**
   * The bytes that a token stands for.
   * @param {number} id
   * @returns {Uint8Array}
   */
  bytes(id) {
    const token = this.controls.get(id) ?? this.letters[id];
    if (token === undefined) throw new TokenizerError("bad-token-id", `Token id ${id} is not in the vocabulary; ids go from 0 to ${this.size - 1}.`);
    const bytes = this.controls.has(id) ? [] : Array.from(token, (letter) => BYTE_OF.get(letter) ?? -1);
    return bytes.length === 0 || bytes.includes(-1) ? new TextEncoder().encode(token) : new Uint8Array(bytes);
  }
}

/**
 * The library's tokenizer on the adapted description. Bytes without a token are taken out before merging, as the reference
 * does, so that their neighbours may merge.
 * @param {Library} Library
 * @param {any} tokenizer
 * @param {Set<string>} known byte letters with a token
 */
function build(Library, tokenizer, known) {
  let encoder;
  try {
    encoder = new Library(adapt(tokenizer), {});
  } catch (error) {
    throw new TokenizerError("tokenizer-broken", `tokenizer.json cannot be used: ${String(error).slice(0, 120)}; fetch it again.`);
  }
  const split = encoder.pre_tokenizer;
  if (known.size < 256 && split) {
    const unknown = new RegExp(`[${BYTE_LETTERS.filter((letter) => !known.has(letter)).map((c) => `\\u{${c.codePointAt(0)?.toString(16)}}`).join("")}]`, "gu");
    encoder.pre_tokenizer = (text, options) => split(text, options).map((word) => word.replace(unknown, ""));
  }
  return encoder;
}

/**
 * A tokenizer.json on which library and reference agree, without added tokens (typed text stays text) and without BOS.
 * @param {any} tokenizer
 */
export function adapt(tokenizer) {
  return {
    ...tokenizer, added_tokens: [], post_processor: null, decoder: { type: "ByteLevel" }, normalizer: tokenizer.normalizer ?? null,
    pre_tokenizer: { type: "Sequence", pretokenizers: adaptStep(tokenizer.pre_tokenizer) },
  };
}

/**
 * The library's digits are ASCII only and its byte-level pattern uses JavaScript's \s; both are spelt out as patterns.
 * @param {Step} step
 * @returns {Step[]}
 */
function adaptStep(step) {
  if (step.type === "Sequence") return step.pretokenizers.flatMap(adaptStep);
  if (step.type === "Digits") return [split(step.individual_digits ? "\\p{N}" : "\\p{N}+")];
  if (step.type === "ByteLevel" && step.use_regex !== false) return [split(GPT2_PATTERN), { ...step, use_regex: false }];
  return [step];
}

/** @param {string} Regex */
const split = (Regex) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false });

/** @param {string} text */
const wellFormed = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");
