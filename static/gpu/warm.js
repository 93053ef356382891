/**
 * Compiling ahead, in the order in which things are needed. A first picture takes as few seconds of the compiler as it can:
 * a short prompt runs on variants that compile in a moment ("plain"), and the quick ones come after the picture.
 *
 *     picture   the prompt, its wall and its prediction          as soon as the weights' formats are known
 *     rest      the lens, longer prompts, generating             once the picture is there
 *
 * Has no counterpart in webgpu/: there a prompt's kernels compile one after the other whenever it is.
 * @module
 */
import { FEW_TOKENS, QUAD_ROWS } from "./ops.js";
import { CACHE, TRACE, forward, prefill } from "./plan.js";
import { layersPerQuery, lens, logits, thumbnails } from "./queries.js";

/** @typedef {import("./kernels.js").Kernels} Kernels */
/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./variants.js").Choice} Choice */

/** Which kernels run depends on whether there is one token, a few, some, or more, and not on how many. */
const TOKENS = [FEW_TOKENS, FEW_TOKENS + 1, QUAD_ROWS];
/** Products and sums that a plain variant does in the third of a second that it saves, on a CPU in place of a GPU. */
const PLAIN_PRODUCTS = 50_000_000;
const PLAIN_SCORES = 20_000_000;
/** A thumbnail has at least this many pixels a side, or one for each token. */
const LEAST_PIXELS = 24;

/**
 * The variants for a prompt of T tokens while the chosen ones are still being compiled: plain where little is to be done. A
 * GPU's products ("groups") are short texts already, and a GPU would idle on plain ones.
 * @param {Config} config @param {number} T @param {Choice} choice @returns {Choice}
 */
export function plainChoice({ L, D, F, N, K, H }, T, choice) {
  const products = T * L * D * (2 * N * H + 2 * K * H + 3 * F);
  const scores = L * T * T * N * H * (H / 4);
  return {
    ...choice,
    ...(products <= PLAIN_PRODUCTS && choice.matmul !== "groups" ? { matmul: "plain" } : {}),
    ...(scores <= PLAIN_SCORES ? { attention: "plain", decode: "plain", cells: "plain" } : {}),
  };
}

/**
 * The plans of a first prompt of T tokens, the longest to compile first; `choice` as plainChoice gives it.
 * @param {Config} config @param {Layout} placed @param {Choice} choice @param {number} T
 */
export function picturePlans(config, placed, choice, T) {
  return [
    ...walls(config, placed, choice, T > LEAST_PIXELS),
    ...prefill(config, placed, { T, capacity: T, keep: TRACE, choice }),
    logits(config, placed, { sources: [[config.L, T - 1, 1]], choice }),
  ];
}

/**
 * The plans of all that may follow, in the order in which the page asks for them.
 * @param {Config} config @param {Layout} placed @param {Choice} choice
 */
export function laterPlans(config, placed, choice) {
  const T = FEW_TOKENS;
  const step = { T: 1, offset: T, capacity: T + 1, keep: CACHE, logits: true, temperature: 0, choice };
  return [
    ...(config.D % 8 ? [] : [1, ...TOKENS].map((rows) => lens(config, placed, { sources: [[config.L, 0, rows]], choice }))),
    ...TOKENS.flatMap((T) => prefill(config, placed, { T, capacity: T, keep: TRACE, choice })),
    ...walls(config, placed, choice, true),
    forward(config, placed, step),
  ];
}

/**
 * Thumbnails with a pixel for each cell, and when `pooled` those with fewer.
 * @param {Config} config @param {Layout} placed @param {Choice} choice @param {boolean} pooled
 */
function walls(config, placed, choice, pooled) {
  const T = FEW_TOKENS;
  const asked = { layer0: 0, layers: layersPerQuery(config, T, T), T, reduce: "max", choice };
  return [T, ...(pooled ? [T / 2] : [])].map((out) => thumbnails(config, placed, { ...asked, out }));
}

/**
 * Begin to compile what these plans run, side by side; resolves when all of it is there. What fails here, sizes that no kernel
 * takes among it, says so when it is used.
 * @param {Kernels} kernels @param {() => import("./plan.js").Builder[]} plans
 */
export async function warm(kernels, plans) {
  await Promise.allSettled(dispatchesOf(plans).map(({ kernel, overrides }) => kernels.pipeline(kernel, overrides)));
}

/**
 * The same one by one: what somebody asks for meanwhile is not behind all of it, and a page that is closed leaves little.
 * @param {Kernels} kernels @param {() => import("./plan.js").Builder[]} plans @param {() => Promise<void>} [idle]
 */
export async function warmSlowly(kernels, plans, idle = async () => {}) {
  for (const { kernel, overrides } of dispatchesOf(plans)) {
    await idle();
    await kernels.pipeline(kernel, overrides).catch(() => {});
  }
}

/** What plans run; nothing for sizes that no kernel takes. @param {() => import("./plan.js").Builder[]} plans */
export function dispatchesOf(plans) {
  try {
    return plans().flatMap(({ steps }) => steps.flatMap((step) => step.dispatches));
  } catch {
    return [];
  }
}
