/** A measurement that gives no figure; mirrors bench/errors.py. @module */

/** The message is one sentence: given, allowed, what to do. */
export class BenchError extends Error {
  /** @param {"bad-arguments" | "wrong-result" | "unavailable"} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = "BenchError";
    this.code = code;
  }
}
