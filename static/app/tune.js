// Taking the variants that are quickest on this device: those that earlier visits found at once, the rest tried when the first
// prompt is drawn and the device is quiet, so that no trial stands before the first picture. Later prompts take the answer. Where
// a CPU stands in for a GPU nothing is tried.
import { recallVariants, sizesOf, tries, tryVariants } from "../gpu/trial.js";

/** How long after the first prompt: its wall and its prediction are drawn by then. */
const QUIET_MS = 2000;

/** What this browser remembers; asked for only when used, because a browser may forbid it. */
const MEMORY = {
  getItem: (/** @type {string} */ key) => localStorage.getItem(key),
  setItem: (/** @type {string} */ key, /** @type {string} */ value) => localStorage.setItem(key, value),
};

/**
 * @param {import("../gpu/runtime.js").Model} model
 * @param {{quietMs?: number, memory?: import("../gpu/trial.js").Memory, here?: boolean}} options here: whether to try at all
 * @returns {() => void} to be called after each prompt; the first call starts the clock
 */
export function tune(model, { quietMs = QUIET_MS, memory = MEMORY, here = tries(model.kernels.device) } = {}) {
  if (!here) return () => {};
  const { kernels, config, placed } = model;
  const sizes = sizesOf(config, placed);
  // A new object: what is being generated keeps the choice that it began with.
  const take = (/** @type {import("../gpu/variants.js").Choice} */ found) => void (model.choice = { ...model.choice, ...found });
  const lost = () => {}; // the device was lost, which is told elsewhere; the choice stays
  recallVariants(kernels, sizes, memory).then(take, lost);
  let begun = false;
  return () => {
    if (begun) return;
    begun = true;
    setTimeout(() => tryVariants(kernels, sizes, memory).then(take, lost), quietMs);
  };
}
