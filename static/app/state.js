// What the page knows: the view that a link restores, and what is being computed.
import { DEFAULT_VIEW } from "../lib/permalink.js";
import { Store } from "./store.js";

/** @typedef {import("../lib/permalink.js").View} View */
/** @typedef {{L: number, N: number, K: number, T: number, H: number, D: number, V: number}} Shape */
/** @typedef {{id: number, bytes: Uint8Array, text: string, glyph: string, partial: boolean}} Piece */

/** @typedef {{layer: number, head: number, called: string[]} & Record<string, any>} HeadScores one number per name in `scores` */
/**
 * @typedef {{id: string, title: string, text: string, layer: number, head: number, query: number, keys: number[], weight: number,
 *   next: string, says: string}} OfferedPrompt
 */
/**
 * What was measured of a model, checked by the server (weights/report.py); lists are empty where nothing was.
 * @typedef {object} Report
 * @property {HeadScores[]} heads every head, layer by layer
 * @property {string[]} scores names of the scores that every head has
 * @property {Record<string, string>} measured_on what a score was measured on, where that is known
 * @property {OfferedPrompt[]} prompts
 * @property {Record<string, {agreement: number[], cross_entropy: number[]}>} depth for each text, L + 1 values
 * @property {{parameters?: number, training_minutes?: number, commit?: string, data?: string,
 *   lens?: string}} about lens: what training did to the logit lens
 * @property {string[]} problems why a file was left out
 */

/**
 * One entry of /api/models.
 * @typedef {object} ModelEntry
 * @property {string} id
 * @property {string} name
 * @property {string} about what it is, in a sentence; may be empty
 * @property {string} family
 * @property {string} licence
 * @property {string} source
 * @property {number} bytes
 * @property {string} hash
 * @property {Omit<Shape, "T">} shape
 * @property {number} max_tokens
 * @property {boolean} tied embedding and unembedding are one matrix
 * @property {{name: string, bytes: number, sha256: string, url: string}[]} files
 * @property {Report} report
 */

/**
 * What both engines give for one prompt: the GPU's Trace and the server's stand-in.
 * @typedef {object} Trace
 * @property {Shape} shape
 * @property {ArrayLike<number>} ids
 * @property {(layer: number, head: number) => Promise<Float32Array>} pattern
 * @property {(request: WindowRequest) => Promise<Float32Array>} window
 * @property {(asked: {out: number, reduce?: "max" | "mean"}, signal?: AbortSignal) => AsyncIterable<{layer0: number, layers: number,
 *   data: Float32Array}>} thumbnails whole patterns of all heads of some layers at a time, [layers*N*out*out]
 * @property {(position: number) => Promise<Float32Array>} logits
 * @property {(sources: [layer: number, row0: number, rows: number][], options?: {target?: number, signal?: AbortSignal}) =>
 *   Promise<LensRows>} lensAt rows of several layers, one after the other
 * @property {number} lensAtOnce how many of them to ask for at once while the lens fills
 * @property {() => Promise<{ids: Uint32Array | Int32Array, logprobs: Float32Array}>} lens
 * @property {"rows" | "columns"} [lensOrder] how the lens is filled fastest; rows when absent
 * @property {(position: number, target: number, turn?: Turn) => Promise<ArrayLike<number>>} ranks in pieces, each when it is its turn
 * @property {(name: string, layer?: number) => Promise<Float32Array | Int32Array>} read
 * @property {string} [attentionKernel] the kernel that attended
 * @property {() => void} destroy
 */

/** @typedef {<T>(ask: () => Promise<T>) => Promise<T>} Turn */

/**
 * Part of the patterns of some heads, reduced to outRows x outCols pixels.
 * @typedef {{layer: number, head0: number, heads: number, row0: number, rows: number, col0: number, cols: number, outRows: number,
 *   outCols: number, reduce: "max" | "mean"}} WindowRequest
 */
/**
 * Rows of the lens: the ten best of each row, its entropy in nats, and the target's place (0 is first).
 * @typedef {{ids: ArrayLike<number>, logprobs: ArrayLike<number>, entropy: ArrayLike<number>, targetLogprob?: ArrayLike<number>,
 *   targetRank?: ArrayLike<number>}} LensRows
 */
/**
 * @typedef {{maxTokens: number, temperature: number, topK: number, topP: number, seed: number, stopIds?: number[],
 *   signal?: AbortSignal}} Sampling
 */

/**
 * A loaded model, on this GPU or on the server.
 * @typedef {object} Engine
 * @property {"webgpu" | "server"} kind
 * @property {(ids: number[], options?: {onProgress?: (part: number) => void, signal?: AbortSignal, record?: boolean}) => Promise<Trace>} run
 * @property {(ids: number[], sampling: Sampling) => AsyncIterable<{id: number, logprob: number}>} generate
 * @property {number[]} stopIds tokens after which generating ends
 * @property {(idle: () => Promise<void>) => Promise<void>} [warmAll] makes ready what the first picture did not need, piece by
 *   piece and each when idle() resolves; once is enough
 * @property {(layer: number) => {window: number, sinks: number}} visible which keys a layer's queries may see
 * @property {() => void} destroy
 */

/** @typedef {{what: string, done: number, total: number, unit: "bytes" | "%", since: number, cancel: (() => void) | null}} Progress */
/** @typedef {{verdict: "none" | "running" | "passed" | "failed", words: string}} Proof */
/** @typedef {{id: string, kind: "warning" | "info", text: string, action?: {label: string, run: () => void}}} Notice */

/**
 * @typedef {object} Running
 * @property {ModelEntry[]} models
 * @property {string | null} defaultModel
 * @property {ModelEntry | null} entry the chosen model
 * @property {any} tokens its tokenizer (static/lib/tokens.js or id_tokens.js)
 * @property {Engine | null} engine
 * @property {string} deviceWords
 * @property {Piece[]} typed tokens of what stands in the prompt box now
 * @property {string | null} promptError why the prompt cannot be computed
 * @property {string | null} promptNote what of the prompt the model does not see
 * @property {Trace | null} trace of the picture that is shown
 * @property {Piece[]} shown tokens of that picture
 * @property {boolean} stale the picture belongs to an older prompt
 * @property {Partial<View> | null} coming what of the view changes when the picture that is on its way is there
 * @property {Progress | null} progress
 * @property {boolean} due a prompt was typed, and computing it begins in a moment
 * @property {Proof} proof
 * @property {Notice[]} notices
 * @property {Record<string, string>} modelStates id -> what is known of its download, in words
 * @property {number} painted grows when the theme's colours change
 * @property {import("./lens_data.js").LensData | null} lens the cells of the logit lens so far
 * @property {number} lensGrown grows when the selected row of the lens gained cells, or the lens is stopped or goes on
 * @property {import("./prompt_scores.js").PromptScores | null} promptScores of every head on the shown prompt, once asked for
 * @property {{trace: Trace, position: number, best: {id: number, logprob: number}[]} | null} next likeliest next tokens at the position of the trace they were asked for
 */

/** @typedef {View & Running} State */

/** @type {State} */
const INITIAL = {
  ...DEFAULT_VIEW,
  models: [],
  defaultModel: null,
  entry: null,
  tokens: null,
  engine: null,
  deviceWords: "looking for a GPU",
  typed: [],
  promptError: null,
  promptNote: null,
  trace: null,
  shown: [],
  stale: false,
  coming: null,
  progress: null,
  due: false,
  proof: { verdict: "none", words: "not verified here" },
  notices: [],
  modelStates: {},
  painted: 0,
  lens: null,
  lensGrown: 0,
  promptScores: null,
  next: null,
};

/** What a person chooses meanwhile is chosen for the coming picture too. @extends {Store<State>} */
class ViewStore extends Store {
  /** @param {Partial<State>} patch */
  set(patch) {
    const { coming } = this.state;
    const kept = coming && !("coming" in patch) && Object.entries(coming).filter(([field]) => !(field in patch));
    super.set(kept ? { ...patch, coming: kept.length < Object.keys(coming).length ? Object.fromEntries(kept) : coming } : patch);
  }
}

export const store = new ViewStore(INITIAL);

/**
 * The view that was asked for: that of the prompt in the box, also while the picture is still the one before.
 * @param {State} state
 * @returns {State}
 */
export const wished = (state) => ({ ...state, ...state.coming });

/**
 * Asks for a view of the prompt in the box. While there is the picture of another prompt, that one keeps its own: its head or
 * its row moving first would say of the old prompt what was asked of the new one.
 * @param {Partial<View>} view
 */
export function wish(view) {
  const { trace, coming } = store.state;
  if (Object.keys(view).length === 0) return;
  store.set(trace ? { coming: { ...coming, ...view } } : view);
}

/**
 * The selected position of the picture that is shown: the chosen one, or the last.
 * @param {State} state
 */
export function position(state) {
  const last = state.shown.length - 1;
  return state.token === null ? last : Math.min(state.token, last);
}

/**
 * The selected key of the picture that is shown. A key of the prompt that is still to come is none of it.
 * @param {State} state
 * @returns {number | null}
 */
export function keyOf({ key, shown }) {
  return key !== null && key < shown.length ? key : null;
}

/**
 * The chosen head, clamped to the model. Without a choice: a head worth looking at, see DEFAULT_HEADS.
 * @param {State} state
 * @returns {{layer: number, head: number}}
 */
export function chosenHead(state) {
  const shape = state.trace?.shape ?? state.entry?.shape;
  if (!shape) return { layer: 0, head: 0 };
  const [layer, head] = DEFAULT_HEADS[state.entry?.id ?? ""] ?? [Math.floor(shape.L / 2), 0];
  return { layer: Math.min(state.layer ?? layer, shape.L - 1), head: Math.min(state.head ?? head, shape.N - 1) };
}

/** @type {Record<string, [number, number]>} L24 H4 of SmolLM2 carries the name in the default prompt. */
const DEFAULT_HEADS = { "smollm2-135m": [24, 4] };

/**
 * The selected lens row, 0..L; without a choice the one after the layer of the chosen head.
 * @param {State} state
 */
export function chosenDepth(state) {
  return Math.min(state.depth ?? chosenHead(state).layer + 1, state.trace?.shape.L ?? 0);
}

/**
 * What a token shows as.
 * @param {number} id
 * @returns {string} its glyph; the number where there is no tokenizer
 */
export function glyphOf(id) {
  return pieceOf(id).glyph;
}

/**
 * A token as it is shown.
 * @param {number} id
 * @returns {{glyph: string, text: string}} the number and no text where there is no tokenizer
 */
export function pieceOf(id) {
  return store.state.tokens?.pieces([id])[0] ?? { glyph: String(id), text: "" };
}

/** What the sentence of an empty panel depends on. */
export const WAITING_FOR = /** @type {const} */ (["trace", "prompt", "promptError", "engine", "notices"]);

/**
 * What a panel without a picture says: what it waits for.
 * @param {string} words said when there is no prompt
 */
export function waiting(words) {
  const { prompt, promptError, engine, notices } = store.state;
  if (prompt === "") return words;
  if (promptError) return "No picture: the prompt in the box cannot be computed.";
  if (engine) return "The prompt is being computed.";
  return notices.some(({ id }) => id === "load" || id === "start") ? "No picture: no model is loaded." : "The model is being loaded.";
}

/**
 * The token whose rank is followed: the chosen one, or the model's own first choice at the selected position.
 * @param {State} state
 * @returns {number | null} null while that choice is not known yet
 */
export function followed(state) {
  const { target, next, trace } = state;
  if (target !== null && trace && target < trace.shape.V) return target;
  return next && isCurrent(state) ? next.best[0].id : null;
}

/**
 * Whether the next tokens are those of the picture, and not of an older prompt or another position.
 * @param {State} state
 */
export const isCurrent = (state) => state.next?.trace === state.trace && state.next?.position === position(state);

/**
 * Resolves when no prompt is being run or about to be: what fills pictures piece by piece waits here, so that a newer prompt
 * is served first.
 * @returns {Promise<void>}
 */
export async function whenIdle() {
  while (store.state.progress || store.state.due) await new Promise((resolve) => setTimeout(resolve, 50));
}

/**
 * @param {Omit<Notice, "id"> & {id?: string}} notice an earlier notice with the same id is replaced
 */
export function notify({ id = "note", ...rest }) {
  store.set({ notices: [...store.state.notices.filter((old) => old.id !== id), { id, ...rest }] });
}

/** @param {string} id */
export function dismiss(id) {
  store.set({ notices: store.state.notices.filter((old) => old.id !== id) });
}

/**
 * Selects a position everywhere: chip, query row, lens column. The last position is "no choice", so that it stays the
 * last while the prompt grows.
 * @param {number} token
 * @param {number | null} [key] key column of the head
 */
export function select(token, key = null) {
  const last = store.state.shown.length - 1;
  store.set({ token: token >= last ? null : Math.max(0, token), key });
}
