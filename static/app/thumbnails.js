// Thumbnails of every head for the wall: asked for in few large questions, masked, and given out layer by layer with pauses
// in between, so that the page never stands still.
import { blockMasked } from "../lib/pattern.js";
import { cellsOfPixel } from "../lib/maths.js";

/** Work between two pauses. */
const SLICE_MS = 8;

/** @typedef {import("../lib/pattern.js").Rule} Rule */
/** @typedef {{layer: number, data: Float32Array}} Thumbnails one layer's N * out * out weights; NaN: masked */

/** The lens costs far more than the wall, so it waits for it, but not for the wall of a very long prompt. */
export const LENS_WAITS_MS = 4000;
/** @type {Promise<unknown>} */
let filling = Promise.resolve();

/** @param {Promise<unknown>} work the wall being filled; how it ends is for others to say */
export function fillingWall(work) {
  filling = work.catch(() => {});
}

/** Resolves when the wall has its thumbnails or has taken long. */
export const wallFilled = () => Promise.race([filling, new Promise((resolve) => setTimeout(resolve, LENS_WAITS_MS))]);

/** Lets the page react; resolves at the next turn of its event loop. */
export const pause = () => new Promise((resolve) => setTimeout(resolve));

/**
 * @param {import("./state.js").Trace} trace
 * @param {number} out pixels per side
 * @param {(layer: number) => Rule} rule
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Thumbnails>}
 */
export async function* thumbnails(trace, out, rule, signal) {
  const { N, T } = trace.shape;
  /** @type {Map<string, Uint32Array>} */
  const masks = new Map();
  for await (const { layer0, layers, data } of trace.thumbnails({ out, reduce: "max" }, signal)) {
    let since = performance.now();
    for (let i = 0; i < layers; i += 1) {
      const part = data.subarray(i * N * out * out, (i + 1) * N * out * out);
      const seen = rule(layer0 + i);
      const key = `${seen.window} ${seen.sinks}`;
      if (!masks.has(key)) masks.set(key, maskedPixels(T, out, seen));
      for (let n = 0; n < N; n += 1) for (const at of masks.get(key) ?? []) part[n * out * out + at] = NaN;
      yield { layer: layer0 + i, data: part };
      if (performance.now() - since < SLICE_MS) continue;
      await pause();
      signal.throwIfAborted();
      since = performance.now();
    }
  }
}

/**
 * The pixels of a whole pattern that show masked cells only.
 * @param {number} T
 * @param {number} out
 * @param {Rule} rule
 */
function maskedPixels(T, out, rule) {
  /** @type {number[]} */
  const masked = [];
  const edges = Array.from({ length: out }, (_, i) => cellsOfPixel(i, T, out));
  edges.forEach(([r0, r1], i) => {
    edges.forEach(([c0, c1], j) => {
      if (blockMasked(r0, r1, c0, c1, rule)) masked.push(i * out + j);
    });
  });
  return Uint32Array.from(masked);
}
