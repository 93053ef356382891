// Text to token ids and back, truthfully; the same ids and bytes as weights/tokens.py.
// Text that somebody typed never becomes a control token, nothing is put before or after a prompt, and a chip shows what a
// token really is: its bytes, with glyphs for blanks, names for what cannot be seen, and hex for half a character.
// The byte-pair merging is the library's (@huggingface/tokenizers, handed in by the page: this folder imports nothing from
// outside); where the library differs from the reference tokenizer, `adapt` hands it a description on which they agree.
import { chip } from "./glyphs.js";
import { parts } from "./tokenizer_parts.js";

/** @typedef {{id: number, bytes: Uint8Array, text: string, glyph: string, partial: boolean}} Piece */
/** @typedef {{type: string, [key: string]: any}} Step one step of a tokenizer.json */
/** @typedef {{tokens_to_ids: Map<string, number>, vocab: string[], bpe_ranks: Map<string, number>, unk_token?: string, unk_token_id?: number}} Merging */
/** @typedef {{pre_tokenizer: ((text: string, options?: any) => string[]) | null, model: Merging, encode(text: string, options: object): {ids: number[]}}} Encoder */
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

/** Make one with `Tokens.from`, or hand it the parts of a description one after another: `new`, `add` each, `finish`. */
export class Tokens {
  /**
   * @param {Library} Library
   * @param {any} tokenizer parsed tokenizer.json
   */
  static from(Library, tokenizer) {
    const tokens = new Tokens(Library);
    for (const part of parts(tokenizer)) tokens.add(part);
    return tokens.finish();
  }

  /** @param {Library} Library */
  constructor(Library) {
    this.Library = Library;
    /** @type {Map<number, string>} control tokens */
    this.controls = new Map();
    /** @type {Map<number, Piece>} */
    this.seen = new Map();
    /** @type {Set<string>} byte letters with a token */
    this.known = new Set();
    this.size = 0;
    this.merges = 0;
    /** @type {Encoder} there after the head */
    this.encoder = /** @type {any} */ (null);
    /** @type {string[]} word of each id */
    this.letters = [];
  }

  /**
   * Takes one part over. The library builds itself around an empty vocabulary, which is then filled: building it whole is
   * one step that nothing can interrupt.
   * @param {import("./tokenizer_parts.js").Part} part
   */
  add(part) {
    if ("head" in part) return this.begin(part.head);
    readable(() => {
      const { tokens_to_ids, vocab, bpe_ranks } = this.encoder.model;
      for (const [word, id] of "words" in part ? part.words : []) {
        tokens_to_ids.set(word, id);
        vocab[id] = word;
      }
      for (const merge of "merges" in part ? part.merges : []) {
        bpe_ranks.set(JSON.stringify(Array.isArray(merge) ? merge : merge.split(" ", 2)), this.merges++);
      }
    });
  }

  /** @param {any} head */
  begin(head) {
    if (!JSON.stringify(head?.pre_tokenizer ?? null).includes('"ByteLevel"') || typeof head.model?.vocab !== "object") {
      throw new TokenizerError("tokenizer-broken", "tokenizer.json is not byte-level BPE; only byte-level tokenizers are read.");
    }
    if (JSON.stringify(head.pre_tokenizer).includes('"add_prefix_space":true')) {
      throw new TokenizerError("tokenizer-broken", "tokenizer.json puts a space before each text (add_prefix_space); only false is read.");
    }
    this.encoder = readable(() => new this.Library(adapt(head), {}));
    this.letters = this.encoder.model.vocab;
    for (const added of head.added_tokens ?? []) this.controls.set(added.id, added.content);
  }

  /** After the last part: what depends on the whole vocabulary. */
  finish() {
    const { model } = this.encoder;
    if (model.unk_token !== undefined) model.unk_token_id = model.tokens_to_ids.get(model.unk_token);
    this.known = new Set(BYTE_LETTERS.filter((letter) => model.tokens_to_ids.has(letter)));
    this.size = Math.max(this.letters.length, ...[...this.controls.keys()].map((id) => id + 1));
    leaveOut(this.encoder, this.known);
    return this;
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
 * What `read` gives; a description that it stumbles over is broken.
 * @template R @param {() => R} read
 */
function readable(read) {
  try {
    return read();
  } catch (error) {
    throw new TokenizerError("tokenizer-broken", `tokenizer.json cannot be used: ${String(error).slice(0, 120)}; fetch it again.`);
  }
}

/**
 * Bytes without a token are taken out before merging, as the reference does, so that their neighbours may merge.
 * @param {Encoder} encoder
 * @param {Set<string>} known byte letters with a token
 */
function leaveOut(encoder, known) {
  const split = encoder.pre_tokenizer;
  if (known.size === 256 || !split) return;
  const unknown = new RegExp(`[${BYTE_LETTERS.filter((letter) => !known.has(letter)).map((c) => `\\u{${c.codePointAt(0)?.toString(16)}}`).join("")}]`, "gu");
  encoder.pre_tokenizer = (text, options) => split(text, options).map((word) => word.replace(unknown, ""));
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
