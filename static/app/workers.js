// Starting this folder's workers.
import { unreachable } from "./api.js";

/** @typedef {{createPolicy: (name: string, rules: {createScriptURL: (name: string) => string}) => {createScriptURL: (name: string) => string}}} Policies */
const policies = /** @type {{trustedTypes?: Policies}} */ (/** @type {unknown} */ (globalThis)).trustedTypes;

/** @type {Record<string, string>} */
const ADDRESSES = {
  weights: new URL("./weights_worker.js", import.meta.url).href,
  tokenizer: new URL("./tokenizer_worker.js", import.meta.url).href,
};
// The page's policy lets no text become a script; these addresses of our own are the exception that it can check.
const policy = policies?.createPolicy("workers", { createScriptURL: (name) => ADDRESSES[name] });

/** @param {"weights" | "tokenizer"} name */
export const startWorker = (name) =>
  new Worker(/** @type {string} */ (policy?.createScriptURL(name) ?? ADDRESSES[name]), { type: "module" });

/**
 * What ended a worker. An event without a message means that its script did not come.
 * @param {ErrorEvent} event
 */
export const workerFailure = ({ message }) => (message ? new Error(message) : unreachable());
