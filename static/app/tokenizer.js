// A model's tokenizer, a large one read by tokenizer_worker.js and taken over part by part.
// @ts-ignore the package carries no types for its bundle
import { Tokenizer } from "/vendor/tokenizers.mjs";
import { parts } from "../lib/tokenizer_parts.js";
import { Tokens } from "../lib/tokens.js";
import { askJson } from "./api.js";
import { AT_ONCE, Cutter } from "./long_text.js";
import { startWorker, workerFailure } from "./workers.js";

/** Below this, reading takes less time here than a worker takes to start. */
const WORKER_BYTES = 250_000;

/** The page's tokenizer: short texts are cut up here and now, long ones beside the page. */
export class PageTokens extends Tokens {
  /** @param {string} url of its tokenizer.json */
  constructor(url) {
    super(Tokenizer);
    this.cutter = new Cutter(url);
  }

  /** @param {string} text @returns {Promise<import("./long_text.js").Cut>} */
  async cut(text) {
    const here = () => ({ ids: this.encode(text), missing: this.missing(text) });
    return text.length > AT_ONCE ? this.cutter.cut(text).catch(here) : here(); // without a worker the page waits
  }
}

/**
 * @param {{url: string, bytes: number}} file a tokenizer.json
 * @returns {Promise<PageTokens>}
 */
export async function openTokenizer({ url, bytes }) {
  const tokens = new PageTokens(url);
  if (bytes >= WORKER_BYTES) await fromWorker(url, (part) => tokens.add(part));
  else for (const part of parts(await askJson(url))) tokens.add(part);
  tokens.finish();
  return tokens;
}

/**
 * Each part comes as a message and so as a task of its own.
 * @param {string} url
 * @param {(part: import("../lib/tokenizer_parts.js").Part) => void} onPart
 * @returns {Promise<void>}
 */
async function fromWorker(url, onPart) {
  const worker = startWorker("tokenizer");
  try {
    await new Promise((resolve, reject) => {
      worker.addEventListener("error", (event) => reject(workerFailure(event)));
      worker.addEventListener("message", ({ data }) => {
        if (data.failed) reject(Object.assign(new Error(data.failed.message), data.failed));
        if (data.done) resolve(null);
        try {
          if (data.part) onPart(data.part);
        } catch (error) {
          reject(error);
        }
      });
      worker.postMessage({ url });
    });
  } finally {
    worker.terminate();
  }
}
