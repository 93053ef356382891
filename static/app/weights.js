// The page's end of weights_worker.js: a model's tensors by name, each as soon as it has arrived.
import { startWorker, workerFailure } from "./workers.js";

/** @typedef {import("./download.js").FileInfo} FileInfo */
/** @typedef {{dtype: string, shape: number[], bytes: Uint8Array, scales?: any}} Tensor */

/** Tensors of files that a worker brings. `openWeights` makes one. */
class Weights {
  #next = 0;
  #worker = startWorker("weights");
  /** @type {Map<number, (tensor: Tensor | undefined) => void>} */
  #asked = new Map();
  #opened = deferred();
  #verified = deferred();
  #failed = deferred();
  /** @type {Map<string, {dtype: string, shape: number[]}>} */
  #infos = new Map();
  #signal;

  /** @param {FileInfo[]} files @param {(done: number) => void} onBytes @param {AbortSignal} signal */
  constructor(files, onBytes, signal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#stop);
    this.#worker.addEventListener("error", (event) => this.#failed.reject(workerFailure(event)));
    this.#worker.addEventListener("message", ({ data }) => {
      if (data.bytes !== undefined) onBytes(data.bytes);
      else if (data.opened) this.#opened.resolve(new Map(data.opened));
      else if (data.verified) this.#verified.resolve(null);
      else if (data.failed) this.#failed.reject(Object.assign(new Error(data.failed.message), data.failed));
      else this.#asked.get(data.id)?.(data.tensor);
    });
    this.#worker.postMessage({ files });
  }

  /** Resolves when the tensors' names are known. */
  async opened() {
    this.#infos = await this.#orFailed(this.#opened.promise);
  }

  keys() {
    return this.#infos.keys();
  }

  /** @param {string} name */
  describe(name) {
    return this.#infos.get(name);
  }

  /** A tensor when it has arrived. @param {string} name @returns {Promise<Tensor | undefined>} */
  get(name) {
    const id = this.#next++;
    this.#worker.postMessage({ get: name, id });
    const answer = /** @type {Promise<Tensor | undefined>} */ (new Promise((resolve) => this.#asked.set(id, resolve)));
    return this.#orFailed(answer).finally(() => this.#asked.delete(id));
  }

  /** Rejects when a file does not have its announced hash, so nothing may be trusted before. */
  verified() {
    return this.#orFailed(this.#verified.promise);
  }

  /** Ends the worker. */
  close() {
    this.#worker.terminate();
    this.#signal.removeEventListener("abort", this.#stop);
  }

  #stop = () => {
    this.close();
    this.#failed.reject(this.#signal.reason);
  };

  /** @template T @param {Promise<T>} wanted @returns {Promise<T>} */
  #orFailed(wanted) {
    return Promise.race([wanted, this.#failed.promise]);
  }
}

/**
 * Begins to bring the files; resolves when the tensors' names are known.
 * @param {FileInfo[]} files
 * @param {{onBytes: (done: number) => void, signal: AbortSignal}} options
 */
export async function openWeights(files, { onBytes, signal }) {
  signal.throwIfAborted();
  const weights = new Weights(files, onBytes, signal);
  try {
    await weights.opened();
    return weights;
  } catch (error) {
    weights.close();
    throw error;
  }
}

/** A promise and its two ends; one that nobody waits for is no error. */
function deferred() {
  /** @type {(value: any) => void} */
  let resolve = () => {};
  /** @type {(reason: unknown) => void} */
  let reject = () => {};
  /** @type {Promise<any>} */
  const promise = new Promise((...ends) => ([resolve, reject] = ends));
  promise.catch(() => {});
  return { promise, resolve, reject };
}
