/**
 * The ways to compute one operation: the same result, written for different devices.
 *
 * Mirrors webgpu/variants.py, where it is explained; a test holds both tables equal.
 * @module
 */

/** @typedef {{name: string, needs: string[], serves: Record<string, number[]>, tried: string, without: string[]}} Variant */
/** @typedef {Partial<Record<string, string>>} Choice operation -> variant; what is not named runs on the first */

const UP_TO_128 = Array.from({ length: 32 }, (_, i) => 4 * i + 4);
const SHORT = Array.from({ length: 256 }, (_, i) => i + 1);

/**
 * @param {string} name @param {string[]} needs @param {Record<string, number[]>} serves
 * @param {"everywhere" | "gpus" | "never"} tried @param {string[]} without @returns {Variant}
 */
function variant(name, needs = [], serves = {}, tried = "everywhere", without = []) {
  return { name, needs, serves, tried, without };
}

/** @type {Record<string, Variant[]>} */
export const VARIANTS = {
  attention: [
    variant("fa2"),
    variant("registers", [], { H: UP_TO_128 }, "everywhere", ["subgroups"]),
    variant("texels", ["subgroups"], { H: UP_TO_128 }),
    variant("tile", [], { H: UP_TO_128 }, "gpus"),
    variant("tile_f16", ["f16"], { H: UP_TO_128 }, "never"),
    variant("plain", [], { S: SHORT }, "never"),
  ],
  cells: [
    variant("rows"),
    variant("quads", ["subgroups"], { H: [16, 32, 48, 64, 80, 96, 112, 128] }),
    variant("plain", [], {}, "never"),
  ],
  decode: [variant("split"), variant("once", [], { H: UP_TO_128 }), variant("plain", [], { S: SHORT }, "never")],
  matmul: [
    variant("registers"),
    variant("quads", ["subgroups"]),
    variant("groups", [], {}, "gpus"),
    variant("plain", [], {}, "never"),
  ],
  matvec: [variant("registers"), variant("quads", ["subgroups"], { fmt: [3, 4] }), variant("groups", [], {}, "gpus")],
  norm: [variant("rows"), variant("groups", [], {}, "gpus")],
  lens: [variant("rows"), variant("quads", ["subgroups"], { fmt: [4] }), variant("groups", [], {}, "gpus")],
};

/** No variant of that name; the message lists those there are. */
export class UnknownVariant extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "UnknownVariant";
    this.code = "unknown-variant";
  }
}

/**
 * The name of the variant that will run: the one asked for if it serves these sizes, else the first.
 * @param {string} operation @param {string | null | undefined} variant @param {Record<string, number>} sizes
 */
export function pick(operation, variant, sizes) {
  const every = VARIANTS[operation];
  if (variant === null || variant === undefined) return every[0].name;
  const found = every.find(({ name }) => name === variant);
  if (!found) {
    const names = every.map(({ name }) => name).join(", ");
    throw new UnknownVariant(`There is no variant '${variant}' of ${operation}; there are ${names}.`);
  }
  return serves(found, sizes) ? variant : every[0].name;
}

/** @param {Variant} variant @param {Record<string, number>} sizes */
function serves(variant, sizes) {
  return Object.entries(variant.serves).every(([letter, values]) => values.includes(sizes[letter]));
}

/**
 * The names of an operation's variants that a device with these features can run, in order.
 * @param {string} operation @param {Set<string>} features
 */
export function available(operation, features) {
  return VARIANTS[operation].filter(({ needs }) => needs.every((need) => features.has(need))).map(({ name }) => name);
}

/**
 * The names that a trial times on a device for these sizes, in order; software: a CPU stands in for a GPU.
 * @param {string} operation @param {Set<string>} features @param {boolean} software @param {Record<string, number>} sizes
 */
export function toTry(operation, features, software, sizes) {
  const here = software ? ["everywhere"] : ["everywhere", "gpus"];
  const fit = VARIANTS[operation].filter(({ tried, without }) => here.includes(tried) && !without.some((each) => features.has(each)));
  const names = fit.filter((each) => serves(each, sizes)).map(({ name }) => name);
  return available(operation, features).filter((name) => names.includes(name));
}

/**
 * What a model begins with before anything was tried; see webgpu/variants.py.
 * @param {Set<string>} features @param {boolean} software
 * @returns {Choice}
 */
export function firstChoice(features, software) {
  /** @type {Record<string, string>} */
  const choice = software
    ? { attention: "texels", cells: "quads", matmul: "quads", matvec: "quads", lens: "quads" }
    : { matmul: "groups", matvec: "groups", norm: "groups", lens: "groups" };
  const can = Object.entries(choice).filter(([operation, name]) => available(operation, features).includes(name));
  return { ...(software ? { attention: "registers", decode: "once" } : {}), ...Object.fromEntries(can) };
}
