// The page's end of weights_worker.js: a model's tensors by name, each as soon as it has arrived.
import { startWorker, workerFailure } from "./workers.js";

/** @typedef {import("./download.js").FileInfo} FileInfo */
/** @typedef {{dtype: string, shape: number[], bytes: Uint8Array, scales?: any}} Tensor */

/**
 * Begins to bring the files; resolves when the tensors' names are known. `get` gives one when it has arrived; `verified`
 * rejects when a file does not have its announced hash, so nothing may be trusted before; `close` ends the worker.
 * @param {FileInfo[]} files
 * @param {{onBytes: (done: number) => void, signal: AbortSignal}} options
 */
export async function openWeights(files, { onBytes, signal }) {
  signal.throwIfAborted();
  const worker = startWorker("weights");
  /** @type {Map<number, (tensor: Tensor | undefined) => void>} */
  const asked = new Map();
  let next = 0;
  const [opened, verified, failed] = [deferred(), deferred(), deferred()];
  const close = () => {
    worker.terminate();
    signal.removeEventListener("abort", stop);
  };
  const stop = () => {
    close();
    failed.reject(signal.reason);
  };
  signal.addEventListener("abort", stop);
  worker.addEventListener("error", (event) => failed.reject(workerFailure(event)));
  worker.addEventListener("message", ({ data }) => {
    if (data.bytes !== undefined) onBytes(data.bytes);
    else if (data.opened) opened.resolve(new Map(data.opened));
    else if (data.verified) verified.resolve(null);
    else if (data.failed) failed.reject(Object.assign(new Error(data.failed.message), data.failed));
    else asked.get(data.id)?.(data.tensor);
  });
  worker.postMessage({ files });
  /** @template T @param {Promise<T>} wanted @returns {Promise<T>} */
  const orFailed = (wanted) => Promise.race([wanted, failed.promise]);
  try {
    const infos = /** @type {Map<string, {dtype: string, shape: number[]}>} */ (await orFailed(opened.promise));
    return {
      keys: () => infos.keys(),
      describe: (/** @type {string} */ name) => infos.get(name),
      get: (/** @type {string} */ name) => {
        const id = next++;
        worker.postMessage({ get: name, id });
        return orFailed(/** @type {Promise<Tensor | undefined>} */ (new Promise((resolve) => asked.set(id, resolve)))).finally(() => asked.delete(id));
      },
      verified: () => orFailed(verified.promise),
      close,
    };
  } catch (error) {
    close();
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
