// What a new picture shows first is asked for before it is shown, so that the open head, the prediction and the wall change
// together: panels that change one after another show the words of one prompt beside the numbers of another.

/** @typedef {import("./state.js").State} State */
/** @typedef {(state: State) => Promise<unknown>} Ask of a state whose trace is not shown yet; resolves when the answer is in hand */

/** What is in hand by then is shown; what is not keeps its old picture, dimmed, until it comes. */
export const LONGEST_MS = 300;
/** In this order the device is asked. */
const PANELS = /** @type {const} */ (["head", "prediction", "wall"]);

/** @type {Map<string, Ask>} */
const asks = new Map();

/**
 * @param {typeof PANELS[number]} panel
 * @param {Ask} ask called before a picture is replaced; keeps its answer for the moment when it is
 */
export function askAhead(panel, ask) {
  asks.set(panel, ask);
}

/**
 * Resolves when the panels have what they show first of a state, or have been waited for long enough.
 * @param {State} state
 */
export async function inHand(state) {
  const all = PANELS.map((panel) => asks.get(panel)?.(state));
  await Promise.race([Promise.allSettled(all), new Promise((resolve) => setTimeout(resolve, LONGEST_MS))]);
}
