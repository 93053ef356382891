/**
 * Reading one field of config.json: the right kind and range, or one sentence that names it.
 *
 * Null is read as absent. What JSON and JavaScript cannot tell apart is one thing: 4 and 4.0 are the same whole number.
 * Mirrors webgpu/config_fields.py word for word.
 * @module
 */

/** @typedef {Record<string, unknown>} Raw a parsed JSON object */
/** @typedef {readonly [number, number]} Span least and most, both allowed; reasons in webgpu/config_fields.py */

/** @type {Record<"EPSILON" | "BASE" | "FACTOR" | "MSCALE", Span>} */
export const SPANS = { EPSILON: [1e-30, 1], BASE: [1.01, 1e12], FACTOR: [1e-3, 1e6], MSCALE: [0.01, 100] };

/** A field of config.json that the kernels do not run exactly. */
export class UnsupportedConfig extends Error {
  /** @param {string} field @param {unknown} value @param {string} allowed */
  constructor(field, value, allowed) {
    const given = value == null ? `config.json has no ${field}` : `config.json has ${field} = ${show(value)}`;
    super(`${given}, and the kernels run ${allowed} there: choose another model.`);
    this.name = "UnsupportedConfig";
    this.code = "unsupported-config";
    this.field = field;
  }
}

/**
 * The field's value, undefined where the object has no such key of its own.
 * @param {Raw} raw @param {string} field
 */
export function get(raw, field) {
  return Object.hasOwn(raw, field) ? raw[field] : undefined;
}

/**
 * Whether a JSON value is a whole number (never a boolean).
 * @param {unknown} value @returns {value is number}
 */
export function isWhole(value) {
  return typeof value === "number" && Number.isInteger(value);
}

/**
 * A whole number from 1 to `most`; absent or null takes the fallback, and is refused without one.
 * @param {Raw} raw @param {string} field @param {number} most @param {number | null} fallback @param {string} prefix
 */
export function whole(raw, field, most, fallback = null, prefix = "") {
  const value = get(raw, field) ?? fallback;
  if (!isWhole(value) || value < 1 || value > most) {
    throw new UnsupportedConfig(prefix + field, value, `whole numbers from 1 to ${most}`);
  }
  return value;
}

/**
 * Like whole, but null means none while an absent field takes the family's default.
 * @param {Raw} raw @param {string} field @param {number | null} absent @returns {number | null}
 */
export function optionalWhole(raw, field, absent) {
  const value = get(raw, field);
  if (value === null || (value === undefined && absent === null)) return null;
  return whole(raw, field, 2 ** 24, absent);
}

/**
 * A number within `span`; absent or null takes the fallback, and is refused without one.
 * @param {Raw} raw @param {string} field @param {Span} span @param {number | null} fallback @param {string} prefix
 */
export function number(raw, field, span, fallback = null, prefix = "") {
  const value = get(raw, field) ?? fallback;
  if (typeof value !== "number" || !(value >= span[0] && value <= span[1])) {
    throw new UnsupportedConfig(prefix + field, value, `numbers from ${show(span[0])} to ${show(span[1])}`);
  }
  return value;
}

/**
 * true or false; absent or null takes the fallback.
 * @param {Raw} raw @param {string} field @param {boolean} fallback @param {string} prefix
 */
export function flag(raw, field, fallback, prefix = "") {
  const value = get(raw, field) ?? fallback;
  if (typeof value !== "boolean") throw new UnsupportedConfig(prefix + field, value, "true or false");
  return value;
}

/**
 * Refuse a field that is present, not null and not one of the values that leave the numbers alone.
 * @param {Raw} raw @param {string} field @param {readonly unknown[]} neutral @param {string} prefix
 */
export function refuseUnless(raw, field, neutral, prefix = "") {
  const value = get(raw, field);
  if (value != null && !neutral.includes(value)) {
    throw new UnsupportedConfig(prefix + field, value, neutral.length ? neutral.map(show).join(" or ") : "no such field");
  }
}

/**
 * One JSON value in at most about 60 characters of ASCII: containers are described, long strings are cut.
 * @param {unknown} value @returns {string}
 */
export function show(value) {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === "object") return "an object";
  if (typeof value === "number") return Math.abs(value) <= 2 ** 53 ? String(value) : "a number beyond 2^53";
  const escape = (/** @type {string} */ unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0");
  const text = JSON.stringify(value).replace(/[^ -~]/g, escape);
  return text.length <= 60 ? text : text.slice(0, 57) + "...";
}
