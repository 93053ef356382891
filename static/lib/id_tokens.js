// Tokens of a model that comes without a tokenizer: the prompt is the ids themselves, "504, 3575, 282".
// The same methods as Tokens in tokens.js, so that the page need not know which of the two it holds.

/** @typedef {import("./tokens.js").Piece} Piece */

/** What was typed is not a list of this model's token ids. */
export class IdsError extends Error {
  name = "IdsError";
}

export class IdTokens {
  /** @param {number} size V: ids go from 0 to V - 1 */
  constructor(size) {
    this.size = size;
  }

  /**
   * The ids that the text lists, parted by commas or blanks.
   * @param {string} text
   * @returns {number[]}
   * @throws {IdsError} when something else stands there, or an id that the model does not have
   */
  encode(text) {
    const words = text.split(/[\s,]+/).filter(Boolean);
    const wrong = words.find((word) => !/^\d{1,9}$/.test(word) || Number(word) >= this.size);
    if (wrong !== undefined) {
      const shown = JSON.stringify(wrong.length > 20 ? `${wrong.slice(0, 20)}…` : wrong);
      throw new IdsError(`This model has no tokenizer, so the prompt is a list of token ids from 0 to ${this.size - 1}, such as "1, 2, 3"; ${shown} is none.`);
    }
    return words.map(Number);
  }

  /**
   * @param {number[]} ids
   * @returns {string} what `encode` reads back
   */
  decode(ids) {
    return ids.map((id) => ` ${id}`).join("");
  }

  /**
   * Each chip shows its id; a token of such a model has no bytes.
   * @param {number[]} ids
   * @returns {Piece[]}
   */
  pieces(ids) {
    return ids.map((id) => ({ id, bytes: new Uint8Array(), text: "", glyph: String(id), partial: false }));
  }

  /** Long lists too are read at once. @param {string} text */
  async cut(text) {
    return { ids: this.encode(text), missing: this.missing() };
  }

  /** No text, no missing characters. @returns {string[]} */
  missing() {
    return [];
  }
}
