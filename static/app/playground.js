// window.playground: the page for scripts and for the developer console. static/README.md documents it; keep both in step.
import { plural } from "../lib/numbers.js";
import { checkLength, switchModel } from "./session.js";
import { store } from "./state.js";
import { verify } from "./verify.js";

class PlaygroundTrace {
  /**
   * @param {import("./state.js").Engine} engine
   * @param {import("./state.js").Trace} trace
   * @param {import("./state.js").Piece[]} pieces
   */
  constructor(engine, trace, pieces) {
    let destroyed = false;
    const refuse = () => {
      if (destroyed) throw new Error("This trace was destroyed; playground.trace(prompt) makes another.");
      refuseReplaced(engine);
    };
    /** @template R @param {() => Promise<R>} ask */
    const asked = async (ask) => {
      refuse();
      return ask().catch((error) => (refuse(), Promise.reject(error)));
    };
    this.shape = trace.shape;
    this.tokens = pieces.map(({ id, text, bytes }) => ({ id, text, bytes }));
    this.ids = Array.from(trace.ids);
    /** @param {number} layer @param {number} head @returns {Promise<Float32Array>} [T*T], row-major */
    this.pattern = (layer, head) =>
      asked(async () => trace.pattern(whole("layer", layer, trace.shape.L), whole("head", head, trace.shape.N)));
    /** @param {number} position @returns {Promise<Float32Array>} [V] */
    this.logits = (position) => asked(async () => trace.logits(whole("position", position, trace.shape.T)));
    /** @returns {Promise<{ids: Uint32Array | Int32Array, logprobs: Float32Array}>} [(L+1)*T*10] each */
    this.lens = () => asked(() => trace.lens());
    this.destroy = () => {
      destroyed = true;
      trace.destroy();
    };
  }
}

/** A model that is loaded anew takes its traces with it. @param {import("./state.js").Engine} engine */
function refuseReplaced(engine) {
  if (store.state.engine !== engine)
    throw new Error("This trace's model was replaced; playground.trace(prompt) makes one with the model that is loaded now.");
}

/** @param {string} name @param {number} value @param {number} end */
function whole(name, value, end) {
  if (!Number.isInteger(value) || value < 0 || value >= end)
    throw new RangeError(`${name} is ${value}; this trace has ${name}s 0 to ${end - 1}.`);
  return value;
}

/**
 * The ids of a prompt. Throws in words for people where it is none for this model.
 * @param {string | {ids: number[]}} prompt
 * @param {import("./state.js").ModelEntry} entry
 * @param {any} tokens the model's tokenizer
 * @returns {Promise<number[]>}
 */
async function idsOf(prompt, entry, tokens) {
  if (typeof prompt === "string") checkLength(prompt);
  /** @type {number[]} */
  const ids = typeof prompt === "string" ? (await tokens.cut(prompt)).ids : Array.from(prompt?.ids ?? []);
  if (ids.length === 0) throw new RangeError("The prompt has no tokens; give some text or {ids: [...]}.");
  if (ids.length > entry.max_tokens)
    throw new RangeError(`The prompt has ${plural(ids.length, "token")}; ${entry.name} takes at most ${entry.max_tokens}.`);
  for (const id of ids)
    if (!Number.isInteger(id) || id < 0 || id >= entry.shape.V)
      throw new RangeError(`Token id ${id} is not one of this model's; they are 0 to ${entry.shape.V - 1}.`);
  return ids;
}

/** What is loaded, once the page is ready. @param {Promise<void>} ready */
async function loaded(ready) {
  await ready;
  const { engine, tokens, entry } = store.state;
  if (!engine || !entry || !tokens) throw new Error("No model is loaded; see playground.load(id).");
  return { engine, tokens, entry };
}

const REPLACED = "The model was replaced while it was being verified; playground.parity() verifies the one that is loaded now.";

/** @param {Promise<void>} ready */
export function exposePlayground(ready) {
  const playground = {
    /** Resolves when an adapter was found (or the server stands in) and the default model is loaded. */
    ready,
    load: async (/** @type {string} */ id) => {
      await ready.catch(() => {});
      if (store.state.entry?.id === id && store.state.engine) return;
      await switchModel(String(id));
    },
    /** @param {string | {ids: number[]}} prompt */
    async trace(prompt) {
      const { engine, tokens, entry } = await loaded(ready);
      const ids = await idsOf(prompt, entry, tokens);
      const trace = await engine.run(ids).catch((error) => (refuseReplaced(engine), Promise.reject(error)));
      return new PlaygroundTrace(engine, trace, tokens.pieces(ids));
    },
    /** Words about who computes; null before that is known. */
    get adapter() {
      return store.state.engine ? { kind: store.state.engine.kind, words: store.state.deviceWords } : null;
    },
    /** Kernels against the oracle for the prompt that is shown: {passed, largest, checks, tokens, model}. */
    async parity() {
      const { engine, entry } = await loaded(ready);
      const ids = store.state.shown.map((piece) => piece.id);
      if (engine.kind === "server") throw new Error("The server computes here, so there are no kernels to compare.");
      if (ids.length === 0) throw new Error("There is no prompt to compare on; type one first.");
      return verify(engine, entry, ids).catch((error) => Promise.reject(store.state.engine === engine ? error : new Error(REPLACED)));
    },
    /**
     * One operation on this device, checked and then timed; static/README.md lists operations, sizes and fields.
     * @param {unknown} asked {op, T, N, K, H, variant}
     */
    async bench(asked = {}) {
      const { engine, entry } = await loaded(ready);
      const { bench } = await import("./bench.js"); // seldom needed, so not loaded with the page
      return bench(engine, entry, asked);
    },
  };
  Object.defineProperty(window, "playground", { value: Object.freeze(playground), enumerable: true });
}
