// Brings a tokenizer.json and parses it beside the page's main thread.
//
//   in   {url}
//   out  {part}          a part of it (lib/tokenizer_parts.js), in order
//        {done: true}    that was the last
//        {failed: {...}} in place of any of these: an error's name, code and message
import { parts } from "../lib/tokenizer_parts.js";
import { askJson } from "./api.js";

addEventListener("message", async ({ data }) => {
  try {
    const tokenizer = await askJson(data.url);
    for (const part of parts(tokenizer)) postMessage({ part });
    postMessage({ done: true });
  } catch (error) {
    const { name, code, message } = /** @type {Error & {code?: string}} */ (error);
    postMessage({ failed: { name, code, message } });
  }
});
