// What can wait: the lens, ranks, scores and compiling ahead. A prompt comes first, then its picture (the open head, the
// prediction, the wall); only then do these take turns, one request at a time, so that a newer prompt waits for one at most.
import { store, whenIdle } from "./state.js";
import { wallFilled } from "./thumbnails.js";

/** @type {Promise<unknown>} */
let last = Promise.resolve();

/** Resolves when no prompt runs or is about to, and the wall has its thumbnails. */
export async function whenDrawn() {
  await whenIdle();
  await wallFilled();
  await whenIdle(); // a prompt may have come while the wall was filling
}

/** A kernel takes up to a second of a core to compile, and nothing can stop it: whoever tries prompt after prompt is let be. */
export const CALM_MS = 1000;
let busy = 0;
store.on(["due", "progress", "trace"], () => void (busy = performance.now()));

/** Resolves when the picture has been there for a while. */
export async function whenCalm() {
  do {
    await whenDrawn();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, busy + CALM_MS - performance.now())));
  } while (store.state.progress || store.state.due || performance.now() < busy + CALM_MS);
}

/**
 * Asks when it is its turn. What is no longer wanted by then should say so itself, in `ask`.
 * @template T
 * @param {() => T | Promise<T>} ask
 * @returns {Promise<T>}
 */
export function later(ask) {
  const mine = last.then(whenDrawn).then(ask);
  last = mine.catch(() => {});
  return mine;
}
