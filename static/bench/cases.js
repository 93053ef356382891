/**
 * One operation as data: inputs, dispatches, how much work it is, and how its result is judged. Touches no device.
 * Mirrors bench/cases.py, which says what is counted.
 * @module
 */
import { lens as lensDispatches, lensScratch } from "../gpu/lens_ops.js";
import * as ops from "../gpu/ops.js";
import { candidates } from "../gpu/trial.js";
import { VARIANTS, pick } from "../gpu/variants.js";
import { judgeLens } from "./judge_lens.js";
import { Worst, attentionRow, patternRow, productRow } from "./reference.js";
import { matrix, numbers, sampled } from "./tensors.js";

/** @typedef {import("./arguments.js").Asked} Asked */
/** @typedef {Asked & {variant: string}} Chosen with the variant that will run */
/** @typedef {Record<string, Float32Array>} Found the outputs by name, as 4-byte words (ids are seen through Uint32Array) */
/**
 * @typedef {{words: string, dispatches: import("../gpu/ops.js").Dispatch[],
 *   inputs: Record<string, import("./tensors.js").Stored>,
 *   outputs: Record<string, number>, scratch: Record<string, number>, flops: number, checked: string,
 *   zeroed?: boolean, read_bytes?: number, judge: (found: Found) => number}} Case
 * outputs: 4-byte words by name; scratch: bytes by name; zeroed: outputs must begin as zeros; read_bytes: what is needed
 * of the inputs where it is not all
 */

/** How the kernels know a format. @type {Record<string, number>} */
export const FORMATS = { f32: 0, f16: 1, bf16: 2, q4_1: 3, q8_0: 4 };
/** Share of the largest value. */
const TOLERANCE = 1e-5;
/** Keys and values rounded to f16: what a variant that needs f16 is held to instead. */
const F16_TOLERANCE = 2e-3;
export const TOP = 10;

/** @param {number[]} rows @param {number} T */
const rowsWords = (rows, T) => (rows.length === T ? `all ${T} rows` : `${rows.length} of ${T} rows, one in each 16`);

/** @param {Float32Array} values */
const finite = (values) => values.every(Number.isFinite);

/** Prefill of T tokens, or with op "decode" one token against T keys. @param {Chosen} asked @returns {Case} */
function attention({ op, T: S, N, K, H, variant }) {
  const T = op === "decode" ? 1 : S;
  const inputs = { q: numbers(1, T * N * H), k: numbers(2, S * K * H), v: numbers(3, S * K * H) };
  const shape = { T, S, N, K, H };
  const dispatches = ops.attention({
    q: "q", k: "k", v: "v", o: "o", lse: "lse", scratch: "scratch", ...shape, offset: S - T, window: 0, sinks: 0,
    scale: H ** -0.5, variant,
  });
  const rows = sampled(T);
  /** @param {Found} found */
  const judge = (found) => {
    if (!finite(found.o)) return Infinity;
    const [values, logs] = [new Worst(), new Worst()];
    for (const t of rows)
      for (let n = 0; n < N; n++) {
        const { o, lse } = attentionRow(inputs, shape, t, n);
        values.add(found.o, (t * N + n) * H, o);
        logs.add(found.lse, n * T + t, [lse]);
      }
    return Math.max(values.share, logs.share);
  };
  const pairs = T === 1 ? S : (T * (T + 1)) / 2;
  const words = `${T === 1 ? `1 token, ${S} keys` : `T ${T}`}, N ${N} K ${K} H ${H}`;
  const scratch = { scratch: ops.attentionScratch({ T, S, N, H }) };
  const outputs = { o: T * N * H, lse: N * T };
  return { words, dispatches, inputs, outputs, scratch, flops: 4 * N * H * pairs, judge, checked: rowsWords(rows, T) };
}

/** The last `window` rows and columns of one head's pattern: a pixel is its largest cell. @param {Chosen} asked @returns {Case} */
function heatmap({ T, N, K, H, window, pixels, variant }) {
  const [q, k, first, shape] = [numbers(1, T * N * H), numbers(2, T * K * H), T - window, { T, N, K, H }];
  const lse = new Float32Array(N * T);
  for (let t = first; t < T; t++) lse[t] = patternRow(q, k, shape, t).lse;
  const place = { head0: 0, heads: 1, row0: first, rows: window, col0: first, cols: window };
  const dispatches = ops.attentionProbs({
    q: "q", k: "k", lse: "lse", out: "out", ...shape, S: T, ...place, out_rows: pixels, out_cols: pixels,
    reduce: "max", offset: 0, window: 0, sinks: 0, scale: H ** -0.5, variant,
  });
  const rows = sampled(pixels);
  /** @param {Found} found */
  const judge = ({ out }) => {
    if (!finite(out)) return Infinity;
    const worst = new Worst();
    for (const i of rows) {
      const wanted = new Float64Array(pixels);
      const start = first + Math.floor((i * window) / pixels);
      const end = Math.max(first + Math.floor(((i + 1) * window) / pixels), start + 1);
      for (let t = start; t < end; t++) {
        const { cells } = patternRow(q, k, shape, t);
        for (let j = 0; j < pixels; j++) {
          const from = Math.floor((j * window) / pixels);
          const to = Math.max(Math.floor(((j + 1) * window) / pixels), from + 1);
          for (let s = from; s < to; s++) wanted[j] = Math.max(wanted[j], cells[first + s]);
        }
      }
      worst.add(out, i * pixels, wanted);
    }
    return worst.error;
  };
  const words = `${window} x ${window} cells of T ${T} on ${pixels} x ${pixels} pixels, H ${H}`;
  const checked = rowsWords(rows, pixels) + " of pixels";
  const [inputs, outputs, flops] = [{ q, k, lse }, { out: pixels * pixels }, window * (window + 1) * H];
  const read_bytes = 4 * window * (2 * H + 1); // q, k and lse of one head and of the window, not of the whole text
  return { words, dispatches, inputs, outputs, scratch: {}, zeroed: true, read_bytes, flops, judge, checked };
}

/** x [T,d_in] times a weight matrix [d_out,d_in]. @param {Chosen} asked @returns {Case} */
function matmul({ T, d_in, d_out, format, variant }) {
  const [x, { values: weight, buffers }] = [numbers(1, T * d_in), matrix(2, d_out, d_in, format)];
  const scales = buffers.scales ? { scales: "scales" } : {};
  const dispatches = ops.matmul({
    x: "x", weight: "weight", bias: null, out: "out", T, d_in, d_out, fmt: FORMATS[format], ...scales,
    variant,
  });
  const rows = sampled(T);
  /** @param {Found} found */
  const judge = ({ out }) => {
    if (!finite(out)) return Infinity;
    const worst = new Worst();
    for (const t of rows) worst.add(out, t * d_out, productRow(x, weight, d_in, d_out, t));
    return worst.share;
  };
  return {
    words: `T ${T}, ${d_in} to ${d_out}, ${format}`, dispatches: [dispatches].flat(),
    inputs: { x, ...buffers }, outputs: { out: T * d_out }, scratch: {},
    flops: 2 * T * d_in * d_out, judge, checked: rowsWords(rows, T),
  };
}

/** Logit lens of T rows: ten best tokens, log-sum-exp, entropy, a target's rank. @param {Chosen} asked @returns {Case} */
function lens({ T, D, V, format, variant }) {
  const [x, { values: table, buffers }] = [numbers(1, T * D), matrix(2, V, D, format)];
  const targets = Uint32Array.from({ length: T }, (_, row) => (row * 7919) % V);
  /** @type {import("../gpu/ops.js").Table[]} */
  const tables = [buffers.scales ? ["weight", 0, V, "scales"] : ["weight", 0, V]];
  const scratch = lensScratch(tables, { rows: T, D, V, fmt: FORMATS[format], k: TOP, variant });
  const names = Object.fromEntries(["ids", "logits", "stats", "targets", ...Object.keys(scratch)].map((name) => [name, name]));
  const call = { x: "x", tables, ...names, rows: T, D, V, fmt: FORMATS[format], k: TOP, variant };
  const dispatches = lensDispatches(/** @type {any} */ (call));
  const rows = sampled(T);
  /** @param {Found} found */
  const judge = ({ ids, logits, stats }) => {
    const all = new Uint32Array(ids.buffer);
    const errors = rows.map((t) =>
      judgeLens(productRow(x, table, D, V, t), targets[t], {
        ids: all.subarray(t * TOP, (t + 1) * TOP),
        logits: logits.subarray(t * TOP, (t + 1) * TOP),
        stats: stats.subarray(4 * t, 4 * t + 4),
      }),
    );
    return Math.max(...errors);
  };
  return {
    words: `${T} rows, D ${D}, V ${V}, ${format}`, dispatches,
    inputs: { x, ...buffers, targets }, outputs: { ids: T * TOP, logits: T * TOP, stats: T * 4 },
    scratch, flops: 2 * T * D * V, judge, checked: rowsWords(rows, T),
  };
}

/** What the variant that runs is held to. @param {Asked} asked */
export function tolerance(asked) {
  const rounds = VARIANTS[varied(asked)].some(({ name, needs }) => name === asked.variant && needs.includes("f16"));
  return rounds ? F16_TOLERANCE : TOLERANCE;
}

/** The operation's name in variants.js. @param {Asked} asked */
export function varied({ op, T }) {
  return op === "matmul" && T === 1 ? "matvec" : op === "heatmap" ? "cells" : op;
}

/**
 * The sizes under the letters by which variants.js and trial.js know them.
 * @param {Asked} asked @returns {import("../gpu/trial.js").Sizes & Record<string, number>}
 */
export function letters(asked) {
  const widths = asked.op === "matmul" ? { D: asked.d_in, F: asked.d_out } : {};
  return /** @type {any} */ ({ ...asked, S: asked.T, ...widths, fmt: FORMATS[asked.format] });
}

/** The variant that will run. Throws UnknownVariant. @param {Asked} asked */
export function usedVariant(asked) {
  return pick(varied(asked), asked.variant, letters(asked));
}

/**
 * The variants among which the product chooses on this device.
 * @param {Asked} asked @param {{features: Set<string>, software: boolean}} device
 */
export function tried(asked, device) {
  return candidates(varied(asked), device, letters(asked));
}

/** @type {Record<string, (asked: Chosen) => Case>} */
export const CASES = { attention, decode: attention, heatmap, matmul, lens };
