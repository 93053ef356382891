// Long texts are cut into tokens by tokenizer_worker.js: 5,000 characters take 40 ms, and a book seconds.
import { startWorker, workerFailure } from "./workers.js";

/** Up to so many characters are cut up at once, for less than asking a worker would take. */
export const AT_ONCE = 2000;
/** The worker holds a vocabulary of its own, so it goes when it is not asked for so long. */
const IDLE_MS = 20_000;

/** @typedef {{ids: number[], missing: string[]}} Cut as Tokens.encode and Tokens.missing give them */

/** Cuts texts up by one tokenizer.json. */
export class Cutter {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
    this.next = 0;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Map<number, {resolve: (cut: Cut) => void, reject: (error: Error) => void}>} */
    this.asked = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** @param {string} text @returns {Promise<Cut>} rejects where the worker or what it needs cannot be had */
  cut(text) {
    clearTimeout(this.timer);
    const id = this.next++;
    const worker = (this.worker ??= this.#start());
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      worker.postMessage({ url: this.url, text, id });
    });
  }

  #start() {
    const worker = startWorker("tokenizer");
    worker.addEventListener("error", (event) => this.#fail(workerFailure(event)));
    worker.addEventListener("message", ({ data }) => {
      if (data.failed) return this.#fail(Object.assign(new Error(data.failed.message), data.failed));
      this.asked.get(data.id)?.resolve(data);
      this.asked.delete(data.id);
      if (this.asked.size === 0) this.timer = setTimeout(() => this.close(), IDLE_MS);
    });
    return worker;
  }

  /** @param {Error} error */
  #fail(error) {
    for (const { reject } of this.asked.values()) reject(error);
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.worker?.terminate();
    this.worker = null;
    this.asked.clear();
  }
}
