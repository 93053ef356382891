// Brings a tokenizer.json and parses it beside the page's main thread; cuts long texts up there, too.
//
//   in   {url}
//   out  {part}          a part of it (lib/tokenizer_parts.js), in order
//        {done: true}    that was the last
//   in   {url, text, id}
//   out  {id, ids, missing}  as Tokens.encode and Tokens.missing give them
//        {failed: {...}} in place of any of these: an error's name, code and message
import { parts } from "../lib/tokenizer_parts.js";
import { askJson } from "./api.js";

/** @typedef {import("../lib/tokens.js").Tokens} Tokens */
/** @type {Map<string, Promise<Tokens>>} by address; built for the first long text */
const known = new Map();

/** @param {string} url */
async function tokensOf(url) {
  // @ts-ignore the package carries no types for its bundle
  const [{ Tokenizer }, { Tokens }] = await Promise.all([import("/vendor/tokenizers.mjs"), import("../lib/tokens.js")]);
  return Tokens.from(Tokenizer, await askJson(url));
}

/** @param {string} url @param {string} text @param {number} id */
async function cut(url, text, id) {
  known.set(url, known.get(url) ?? tokensOf(url));
  const tokens = await /** @type {Promise<Tokens>} */ (known.get(url));
  postMessage({ id, ids: tokens.encode(text), missing: tokens.missing(text) });
}

/** @param {string} url */
async function read(url) {
  for (const part of parts(await askJson(url))) postMessage({ part });
  postMessage({ done: true });
}

addEventListener("message", async ({ data: { url, text, id } }) => {
  try {
    await (text === undefined ? read(url) : cut(url, text, id));
  } catch (error) {
    const { name, code, message } = /** @type {Error & {code?: string}} */ (error);
    postMessage({ failed: { name, code, message } });
  }
});
