// Scores of every head on the prompt that is shown, computed only when the wall is ordered by one: layer by layer, a newer
// prompt first, from the patterns that the engine gives. Long prompts are scored on their beginning, which sees nothing later.
import { scoredCells, scoresOfHeads } from "../lib/head_scores.js";
import { later } from "./later.js";
import { partsOf } from "./scores.js";
import { store } from "./state.js";

/** Tokens that are scored: N * 256 * 256 weights of a layer are a few MB. */
const MOST = 256;

/** @typedef {{trace: import("./state.js").Trace, tokens: number, done: boolean, layers: ReturnType<typeof scoresOfHeads>[]}} PromptScores */

/** Keeps the scores of the shown prompt up to date while an order asks for them. */
export function mountPromptScores() {
  store.on(["trace", "order"], ({ trace, order, promptScores }) => {
    if (!trace) return store.set({ promptScores: null });
    if (!order || partsOf(order).from !== "prompt" || promptScores?.trace === trace) return;
    void compute(trace);
  });
}

/** @param {import("./state.js").Trace} trace */
async function compute(trace) {
  const { L, N, T } = trace.shape;
  const tokens = Math.min(T, MOST);
  const cells = scoredCells(Array.from(trace.ids).slice(0, tokens));
  const region = { row0: 0, rows: tokens, col0: 0, cols: tokens, outRows: tokens, outCols: tokens };
  /** @type {PromptScores} */
  let found = { trace, tokens, done: false, layers: [] };
  store.set({ promptScores: found });
  try {
    for (let layer = 0; layer < L; layer += 1) {
      const asked = { layer, head0: 0, heads: N, ...region, reduce: /** @type {const} */ ("max") };
      const patterns = await later(() => (store.state.trace === trace ? trace.window(asked) : null));
      if (!patterns || store.state.trace !== trace) return;
      found = { ...found, layers: [...found.layers, scoresOfHeads(patterns, N, cells)], done: layer === L - 1 };
      store.set({ promptScores: found });
    }
  } catch {
    if (store.state.trace === trace) store.set({ promptScores: null }); // a lost device says so itself; the wall keeps its order
  }
}
