// JSON as the checkpoint rules want it: UTF-8, one object, bounded depth, no key twice, numbers as they are written.
// JSON.parse keeps the last of two equal keys and turns 1.0 into 1, so a small parser stands here. The same rules in the
// same order (UTF-8, depth, grammar, duplicates) stand in weights/strict_json.py.

/** A file that breaks a rule; `code` names the rule, the same word as in weights/errors.py. */
export class SafetensorsError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "SafetensorsError";
    this.code = code;
  }
}

/** A number as it is written, so that 1, 1.0 and 1e0 can be told apart. */
export class JsonNumber {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** @typedef {null | boolean | string | JsonNumber | Json[] | Map<string, Json>} Json */
/** @typedef {Json[]} JsonArray */

const NAME = "The safetensors header";
const BLANKS = /[ \t\n\r]*/y;
const STRING = /"[^"\\]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
/** @type {[string, Json][]} */
const WORDS = [["true", true], ["false", false], ["null", null]];

/**
 * A value from a file as short printable ASCII.
 * @param {unknown} value
 * @param {number} [limit]
 */
export function quoted(value, limit = 80) {
  const json = JSON.stringify(value instanceof JsonNumber ? value.text : value) ?? "undefined";
  const text = json.replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return text.length <= limit ? text : `${text.slice(0, limit - 3)}...`;
}

/**
 * The deepest nesting of brackets outside strings.
 * @param {string} text
 */
export function depth(text) {
  let level = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x22) {
      for (i++; i < text.length && text.charCodeAt(i) !== 0x22; i++) if (text.charCodeAt(i) === 0x5c) i++;
    } else if (c === 0x5b || c === 0x7b) {
      deepest = Math.max(deepest, ++level);
    } else if (c === 0x5d || c === 0x7d) {
      level--;
    }
  }
  return deepest;
}

/**
 * Parses a header's JSON object. Throws `header-not-utf8`, `-too-deep`, `-not-json`, `-duplicate-key`.
 * @param {Uint8Array} bytes
 * @param {number} maxDepth
 * @returns {Map<string, Json>}
 */
export function parseObject(bytes, maxDepth) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new SafetensorsError("header-not-utf8", `${NAME} is not UTF-8; write it again as UTF-8 JSON.`);
  }
  if (depth(text) > maxDepth) {
    throw new SafetensorsError("header-too-deep", `${NAME} nests more than ${maxDepth} levels; write it flat.`);
  }
  const parser = new Parser(text);
  const value = parser.document();
  if (value === undefined) {
    throw new SafetensorsError("header-not-json", `${NAME} is not JSON at character ${parser.at}; write it again as one JSON object.`);
  }
  if (parser.repeated !== null) {
    throw new SafetensorsError("header-duplicate-key", `${NAME} has the key ${quoted(parser.repeated)} twice; each key may stand once, so remove one.`);
  }
  if (!(value instanceof Map)) throw new SafetensorsError("header-not-json", `${NAME} is JSON but not an object; it must begin with '{'.`);
  return value;
}

/** Recursive descent over RFC 8259; undefined means that the grammar was broken at `at`. Depth is bounded beforehand. */
class Parser {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    /** @type {string | null} */
    this.repeated = null;
  }

  document() {
    const value = this.value();
    this.blanks();
    return this.at === this.text.length ? value : undefined;
  }

  /** @returns {Json | undefined} */
  value() {
    this.blanks();
    const c = this.text[this.at];
    if (c === "{") return this.object();
    if (c === "[") return this.array();
    if (c === '"') return this.string();
    for (const [word, value] of WORDS) if (this.take(word)) return value;
    const number = this.match(NUMBER);
    return number ? new JsonNumber(number) : undefined;
  }

  /** @returns {Map<string, Json> | undefined} */
  object() {
    /** @type {Map<string, Json>} */
    const found = new Map();
    this.at++;
    this.blanks();
    if (this.take("}")) return found;
    do {
      this.blanks();
      const key = this.text[this.at] === '"' ? this.string() : undefined;
      if (key === undefined) return undefined;
      this.blanks();
      if (!this.take(":")) return undefined;
      const value = this.value();
      if (value === undefined) return undefined;
      if (found.has(key)) this.repeated ??= key;
      found.set(key, value);
      this.blanks();
    } while (this.take(","));
    return this.take("}") ? found : undefined;
  }

  /** @returns {Json[] | undefined} */
  array() {
    /** @type {Json[]} */
    const found = [];
    this.at++;
    this.blanks();
    if (this.take("]")) return found;
    do {
      const value = this.value();
      if (value === undefined) return undefined;
      found.push(value);
      this.blanks();
    } while (this.take(","));
    return this.take("]") ? found : undefined;
  }

  /** @returns {string | undefined} JSON.parse judges escapes and control characters of the one string */
  string() {
    const start = this.at;
    this.match(STRING);
    while (this.text[this.at] === "\\") {
      this.at += 2;
      while (this.at < this.text.length && this.text[this.at] !== '"' && this.text[this.at] !== "\\") this.at++;
    }
    if (!this.take('"')) return undefined;
    try {
      return JSON.parse(this.text.slice(start, this.at));
    } catch {
      return undefined;
    }
  }

  blanks() {
    this.match(BLANKS);
  }

  /** @param {string} word */
  take(word) {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  /** @param {RegExp} sticky */
  match(sticky) {
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }
}
