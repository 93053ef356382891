/**
 * Compiling while weights are on their way: the kernels that a first prompt, its wall, its prediction and its lens will run
 * are known as soon as the weights' formats are.
 *
 * Has no counterpart in webgpu/: there a prompt's kernels compile one after the other whenever it is.
 * @module
 */
import { FEW_TOKENS, QUAD_ROWS } from "./ops.js";
import { TRACE, prefill } from "./plan.js";
import { layersPerQuery, lens, logits, thumbnails } from "./queries.js";

/** @typedef {import("./kernels.js").Kernels} Kernels */

/** Which kernels run depends on whether there is one token, a few, some, or more, and not on how many. */
const TOKENS = [FEW_TOKENS, FEW_TOKENS + 1, QUAD_ROWS];

/**
 * The plans of a first prompt, in the order in which the page asks for them.
 * @param {import("./config.js").Config} config @param {import("./layout.js").Layout} placed
 * @param {import("./variants.js").Choice} choice
 */
export function firstPlans(config, placed, choice) {
  const T = FEW_TOKENS;
  /** @type {[number, number, number][]} */
  const sources = [[config.L, T - 1, 1]];
  const layers = layersPerQuery(config, T, T);
  return [
    ...TOKENS.flatMap((T) => prefill(config, placed, { T, capacity: T, keep: TRACE, choice })),
    thumbnails(config, placed, { layer0: 0, layers, T, out: T, reduce: "max", choice }),
    thumbnails(config, placed, { layer0: 0, layers, T, out: T / 2, reduce: "max", choice }), // more tokens than pixels
    logits(config, placed, { sources, choice }),
    ...(config.D % 8 ? [] : [1, ...TOKENS].map((rows) => lens(config, placed, { sources: [[config.L, 0, rows]], choice }))),
  ];
}

/**
 * Begin to compile what a first prompt needs, side by side; resolves when all of it is there. What fails here says so when it
 * is used.
 * @param {Kernels} kernels @param {import("./config.js").Config} config @param {import("./layout.js").Layout} placed
 * @param {import("./variants.js").Choice} choice
 */
export async function warm(kernels, config, placed, choice) {
  const dispatches = firstPlans(config, placed, choice).flatMap(({ steps }) => steps.flatMap((step) => step.dispatches));
  await Promise.allSettled(dispatches.map(({ kernel, overrides }) => kernels.pipeline(kernel, overrides)));
}
