/**
 * The ways to compute one operation: the same result, written for different devices.
 *
 * Mirrors webgpu/variants.py, where it is explained; a test holds both tables equal.
 * @module
 */

/** @typedef {{name: string, needs: string[], serves: Record<string, number[]>}} Variant */
/** @typedef {Partial<Record<string, string>>} Choice operation -> variant; what is not named runs on the first */

const UP_TO_128 = Array.from({ length: 32 }, (_, i) => 4 * i + 4);

/** @type {Record<string, Variant[]>} */
export const VARIANTS = {
  attention: [
    { name: "fa2", needs: [], serves: {} },
    { name: "quads", needs: ["subgroups"], serves: { H: UP_TO_128 } },
  ],
  cells: [
    { name: "rows", needs: [], serves: {} },
    { name: "quads", needs: ["subgroups"], serves: { H: [16, 32, 48, 64, 80, 96, 112, 128] } },
  ],
  decode: [
    { name: "split", needs: [], serves: {} },
    { name: "once", needs: [], serves: { H: UP_TO_128 } },
  ],
  matmul: [
    { name: "registers", needs: [], serves: {} },
    { name: "quads", needs: ["subgroups"], serves: { fmt: [3] } },
  ],
  matvec: [
    { name: "registers", needs: [], serves: {} },
    { name: "quads", needs: ["subgroups"], serves: { fmt: [3, 4] } },
  ],
  lens: [
    { name: "rows", needs: [], serves: {} },
    { name: "quads", needs: ["subgroups"], serves: { fmt: [4] } },
  ],
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
  const serves = Object.entries(found.serves).every(([letter, values]) => values.includes(sizes[letter]));
  return serves ? variant : every[0].name;
}

/**
 * The names of an operation's variants that a device with these features can run, in order.
 * @param {string} operation @param {Set<string>} features
 */
export function available(operation, features) {
  return VARIANTS[operation].filter(({ needs }) => needs.every((need) => features.has(need))).map(({ name }) => name);
}

/**
 * What a model begins with before anything was tried; see webgpu/variants.py.
 * @param {Set<string>} features @param {boolean} software @param {string} words the device's name for people
 * @returns {Choice}
 */
export function firstChoice(features, software, words = "") {
  /** @type {Record<string, string>} */
  const choice = software ? { cells: "quads", matmul: "quads", matvec: "quads", lens: "quads" } : {};
  if (words.startsWith("SwiftShader")) Object.assign(choice, { attention: "quads", decode: "once" });
  return Object.fromEntries(Object.entries(choice).filter(([operation, name]) => available(operation, features).includes(name)));
}
