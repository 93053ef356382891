// From a chosen model and a typed prompt to a picture: loads, tokenises, runs; the newest wish always wins.
import { IdTokens } from "../lib/id_tokens.js";
import { boxText } from "../lib/permalink.js";
import { count, megabytes, partOf, plural } from "../lib/numbers.js";
import { inHand } from "./ahead.js";
import { announce } from "./dom.js";
import { loadEngine } from "./engine.js";
import { AT_ONCE } from "./long_text.js";
import { newEntry } from "./link.js";
import { keptWeightBytes, loadTokens, weightBytes } from "./models.js";
import { openingOf } from "./openings.js";
import { dismiss, notify, store, wish } from "./state.js";

const PAUSE_MS = 200;
/** A slow device has many submits, and where a CPU stands in for it, drawing a number takes from it. */
const PROGRESS_MS = 100;
/** Cutting up more than this would hold the page up for seconds; no model here takes nearly as many tokens. */
const MOST_CHARACTERS = 400_000;
const EXAMPLE_IDS = "1, 2, 3, 1, 2, 3";

/** @type {AbortController} */
let loading = new AbortController();
/** The run that is on its way. @type {AbortController | null} */
let running = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** Prompt or ids of the picture that is shown or being computed, so that the same one is not computed twice. */
let wanted = "";
/** A long text that is being cut into tokens. @type {Promise<void> | null} */
let cutting = null;
/** The last of those that were to be cut, whether it still is or not. @type {Promise<void>} */
let lastCut = Promise.resolve();

/** @param {unknown} error */
const aborted = (error) => error instanceof Error && error.name === "AbortError";
/** @param {unknown} error */
export const sentence = (error) => (error instanceof Error ? error.message : String(error));

/**
 * Refuses text that is too long to be cut into tokens.
 * @param {string} text
 */
export function checkLength(text) {
  if (text.length <= MOST_CHARACTERS) return;
  const sizes = `${count(text.length)} characters; the page takes at most ${count(MOST_CHARACTERS)}`;
  throw new RangeError(`This prompt has ${sizes}: shorten it.`);
}

/**
 * Loads a model: tokenizer first, so that chips appear at once, then the weights.
 * @param {string} id
 */
export async function chooseModel(id) {
  const entry = store.state.models.find((model) => model.id === id && model.files);
  if (!entry) throw new Error(`There is no model ${JSON.stringify(id)} here; the model menu lists those that are.`);
  loading.abort();
  giveWay();
  loading = new AbortController();
  const mine = loading;
  const fresh = store.state.entry?.id !== id;
  const { engine: replaced, trace: old } = store.state;
  replaced?.destroy();
  const none = { tokens: null, trace: null, shown: [], typed: [], stale: false, ...store.state.coming, coming: null };
  store.set({ entry, engine: null, ...(fresh ? none : { stale: true }) });
  if (fresh) old?.destroy();
  store.set({ model: id === store.state.defaultModel ? null : id, promptError: null });
  wanted = "";
  try {
    await loadInto(entry, mine);
  } catch (error) {
    if (mine !== loading) return;
    const resume = () => (dismiss("load"), chooseModel(id).catch(() => {}));
    const kept = await keptWeightBytes(entry);
    const text = aborted(error)
      ? `Loading stopped; ${partOf(kept, weightBytes(entry))} are kept here.`
      : `${entry.name} could not be loaded: ${sentence(error)}`;
    setModelState(id, aborted(error) ? `stopped at ${megabytes(kept)}` : "could not be loaded");
    notify({
      id: "load",
      kind: aborted(error) ? "info" : "warning",
      text,
      action: { label: aborted(error) ? "Resume" : "Try again", run: resume },
    });
    throw error;
  } finally {
    if (mine === loading) store.set({ progress: null });
  }
}

/**
 * A model chosen by a person: heads, tokens and cells of the old one mean nothing in it, and a prompt that was only the old
 * one's opening gives way to its own.
 * @param {string} id
 */
export function switchModel(id) {
  const { entry, models, prompt } = store.state;
  const next = models.find((model) => model.id === id && model.files);
  if (entry && next && next !== entry) {
    newEntry();
    store.set({ layer: null, head: null, token: null, key: null, depth: null, target: null, zoom: null });
    if (prompt === openingOf(entry).prompt) store.set(openingOf(next));
  }
  return chooseModel(id);
}

/**
 * @param {import("./state.js").ModelEntry} entry
 * @param {AbortController} mine
 */
async function loadInto(entry, mine) {
  const since = performance.now();
  const cancel = () => mine.abort();
  const onProgress = (/** @type {number} */ done, /** @type {number} */ total) => {
    if (mine !== loading) return;
    store.set({ progress: { what: `Loading ${entry.name}`, done, total, unit: "bytes", since, cancel } });
    setModelState(entry.id, done < total ? partOf(done, total) : "verifying the hash");
  };
  const reload = () => chooseModel(entry.id).catch(() => {});
  const coming = loadEngine(entry, { signal: mine.signal, onProgress, reload }).then((engine) => {
    if (mine === loading && !mine.signal.aborted) return engine;
    engine.destroy();
    throw new DOMException("A newer choice replaced this one.", "AbortError");
  });
  coming.catch(() => {}); // waited for below; a tokenizer that cannot be read is told first
  const tokens = await loadTokens(entry).catch((error) => (mine.abort(), Promise.reject(error)));
  mine.signal.throwIfAborted();
  store.set({ tokens });
  // The example is text; a model that takes ids opens on ids instead of on a complaint.
  if (tokens instanceof IdTokens && store.state.prompt === openingOf(entry).prompt) {
    store.set({ prompt: EXAMPLE_IDS, layer: null, head: null, token: null, key: null });
  }
  tokenise();
  const engine = await coming;
  setModelState(entry.id, engine.kind === "server" ? "computed on the server" : "loaded, hash verified");
  dismiss("load");
  store.set({ engine, progress: null });
  await compute();
}

/**
 * @param {string} id
 * @param {string} words
 */
function setModelState(id, words) {
  store.set({ modelStates: { ...store.state.modelStates, [id]: words } });
}

/**
 * Takes what was written: chips at once, the picture after a pause, or `now` where the prompt came whole.
 * @param {string} prompt
 * @param {{now?: boolean, view?: Partial<import("./state.js").View>}} [options] view: how its picture is looked at
 */
export function setPrompt(prompt, { now = false, view = {} } = {}) {
  wish(view);
  store.set({ prompt: boxText(prompt) });
  tokenise();
  clearTimeout(timer);
  store.set({ due: true });
  if (now) return void compute();
  if (store.state.prompt !== wanted && !store.state.promptError && !cutting) giveWay();
  timer = setTimeout(() => void compute(), PAUSE_MS);
}

/** A run that nobody waits for ends after its submits, so that the device is free when the next one begins. */
function giveWay() {
  if (!running) return;
  running.abort();
  running = null;
  wanted = "";
  store.set({ progress: null });
}

/** Cuts up what stands in the box; what is no prompt for this model is refused, and the picture stays. */
function tokenise() {
  const { tokens, prompt, entry } = store.state;
  if (!tokens || !entry) return;
  cutting = null;
  try {
    checkLength(prompt);
    if (prompt.length > AT_ONCE) return cutLater(tokens, prompt);
    take(tokens.encode(prompt), tokens.missing(prompt));
  } catch (error) {
    refuse(error);
  }
}

/** @param {unknown} error why what stands in the box is no prompt */
const refuse = (error) => store.set({ typed: [], promptError: sentence(error), promptNote: null, stale: running !== null });

/**
 * A long text is cut up beside the page, one at a time and the newest next, or who types would wait for every letter's turn. The
 * picture waits for that, and a newer text replaces it.
 * @param {import("./tokenizer.js").PageTokens | IdTokens} tokens @param {string} prompt
 */
function cutLater(tokens, prompt) {
  store.set({ promptError: null, promptNote: "This text is being cut into tokens.", stale: store.state.trace !== null });
  /** @type {Promise<void>} */
  const mine = lastCut
    .then(() => (mine === cutting ? tokens.cut(prompt) : null))
    .then(
      (cut) => void (cut && mine === cutting && take(cut.ids, cut.missing)),
      (error) => void (mine === cutting && refuse(error)),
    );
  cutting = lastCut = mine;
}

/** @param {number[]} ids of what stands in the box @param {string[]} lost its characters that no token stands for */
function take(ids, lost) {
  const { tokens, entry } = store.state;
  if (!tokens || !entry) return;
  const typed = tokens.pieces(ids);
  const over = typed.length > entry.max_tokens;
  const promptError = over
    ? `This prompt has ${plural(typed.length, "token")}; ${entry.name} takes at most ${count(entry.max_tokens)}. Shorten it.`
    : null;
  const shown = store.state.shown.map((piece) => piece.id);
  const stale = store.state.trace !== null && !over && (wanted === "" || ids.join() !== shown.join());
  const promptNote = lost.length ? `This model has no tokens for ${lost.slice(0, 8).join(" ")}; they are left out.` : null;
  store.set({ typed, promptError, promptNote, stale });
}

/** Computes the picture of the prompt that stands in the box, unless it is there already. */
export async function compute() {
  await allCut();
  store.set({ due: false });
  const { engine, typed, promptError, prompt, trace, tokens, coming } = store.state;
  if (!engine || promptError || !tokens) return;
  if (prompt === wanted && trace) return void (running ? 0 : store.set({ ...coming, coming: null })); // its picture is there
  giveWay();
  wanted = prompt;
  if (typed.length === 0) {
    trace?.destroy();
    store.set({ ...coming, coming: null, trace: null, shown: [], stale: false, progress: null });
    return;
  }
  const mine = new AbortController();
  running = mine;
  store.set({ stale: true });
  try {
    const next = await runTimed(
      engine,
      typed.map((piece) => piece.id),
      mine,
    );
    if (trace && mine === running) await inHand(withPicture(next, typed));
    if (mine !== running || mine.signal.aborted) next.destroy();
    if (mine !== running) return;
    mine.signal.throwIfAborted();
    running = null;
    const { trace: old, coming } = store.state;
    store.set({ ...coming, coming: null, trace: next, shown: typed, stale: cutting !== null, progress: null });
    announce(`Computed ${plural(typed.length, "token")}.`);
    dismiss("run");
    old?.destroy();
  } catch (error) {
    if (mine !== running) return;
    [running, wanted] = [null, ""];
    store.set({ progress: null });
    tellUncomputed(error);
  }
}

/** Waits until what stands in the box is cut into tokens. */
async function allCut() {
  while (cutting) {
    const now = cutting;
    await now;
    if (now === cutting) cutting = null;
  }
}

/** @param {unknown} error why there is no picture */
function tellUncomputed(error) {
  const text = aborted(error)
    ? `Computing was cancelled; ${store.state.trace ? "the picture is the one before" : "there is no picture yet"}.`
    : `This prompt could not be computed: ${sentence(error)}`;
  notify({ id: "run", kind: aborted(error) ? "info" : "warning", text, action: { label: "Compute again", run: () => void compute() } });
}

/**
 * What the page is about to show.
 * @param {import("./state.js").Trace} trace @param {import("./state.js").Piece[]} shown @returns {import("./state.js").State}
 */
const withPicture = (trace, shown) => ({ ...store.state, ...store.state.coming, coming: null, trace, shown });

/**
 * @param {import("./state.js").Engine} engine
 * @param {number[]} ids
 * @param {AbortController} mine
 */
function runTimed(engine, ids, mine) {
  const since = performance.now();
  const cancel = () => mine.abort();
  const what = `Computing ${plural(ids.length, "token")}`;
  let said = -Infinity;
  const onProgress = (/** @type {number} */ part) => {
    const now = performance.now();
    if (mine !== running || now < said + PROGRESS_MS) return;
    said = now;
    store.set({ progress: { what, done: part, total: 1, unit: "%", since, cancel } });
  };
  onProgress(0);
  return engine.run(ids, { onProgress, signal: mine.signal });
}
