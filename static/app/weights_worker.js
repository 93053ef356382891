// Brings a model's weights into the page beside its main thread: downloads, keeps, hashes, parses and checks them, and hands
// tensors over while the rest is still coming.
//
//   in   {files}                     begin; later {get: name, id} for each tensor
//   out  {bytes}                     how many are in hand
//        {opened: [[name, info]]}    the tensors there are, as soon as the last file has its header
//        {id, tensor}                one tensor, its bytes transferred; numbers that are not finite are refused
//        {verified: true}            every file has its announced hash: only then is the model good
//        {failed: {...}}             in place of any of these: an error's name, code and message
import { checkFinite } from "../gpu/layout.js";
import { checkWeights, openSafetensors } from "../lib/safetensors.js";
import { download } from "./download.js";

const TELL_MS = 50;

/** @typedef {{dtype: string, shape: number[], bytes: Uint8Array<ArrayBuffer>, scales?: {bytes: Uint8Array<ArrayBuffer>}}} Tensor */
/** @typedef {import("./download.js").FileInfo} FileInfo */

/** Bytes of a file that are in hand, and who waits for more. */
class Arrival {
  /** @param {Uint8Array} whole */
  constructor(whole) {
    this.whole = whole;
    this.done = 0;
    /** @type {{end: number, resolve: () => void}[]} */
    this.waiting = [];
  }

  /** @param {number} done */
  reach(done) {
    this.done = done;
    this.waiting = this.waiting.filter(({ end, resolve }) => done < end || resolve());
  }

  /** Resolves when a view of this file is filled. @param {Uint8Array} view */
  async filled(view) {
    const end = view.byteOffset + view.byteLength;
    if (this.done < end) await new Promise((resolve) => this.waiting.push({ end, resolve: () => resolve(null) }));
  }
}

/** @type {Map<ArrayBufferLike, Arrival>} each file's bytes, by the buffer they lie in */
const arrivals = new Map();
/** @type {Map<string, Tensor>} */
let weights = new Map();
/** @type {Promise<void>} */
let verified = Promise.resolve();

/** @param {FileInfo[]} files */
async function bring(files) {
  /** @type {Map<string, Tensor>} */
  const found = new Map();
  let before = 0;
  for (const [index, file] of files.entries()) {
    /** @type {Arrival | null} */
    let arrival = null;
    const onPiece = (/** @type {Uint8Array<ArrayBuffer>} */ whole, /** @type {number} */ done) => {
      if (!arrival) {
        arrival = new Arrival(whole);
        arrivals.set(whole.buffer, arrival);
        for (const [name, tensor] of openSafetensors(whole)) found.set(name, /** @type {Tensor} */ (tensor));
        if (index === files.length - 1) open(found);
      }
      arrival.reach(done);
    };
    const start = before;
    let told = 0;
    const onBytes = (/** @type {number} */ done) => {
      if (performance.now() - told < TELL_MS) return;
      told = performance.now();
      postMessage({ bytes: start + done });
    };
    await download(file, { onBytes, onPiece });
    before += file.bytes;
    postMessage({ bytes: before });
  }
  postMessage({ verified: true });
}

/** @param {Map<string, Tensor>} found */
function open(found) {
  weights = /** @type {Map<string, Tensor>} */ (checkWeights(found));
  const opened = Array.from(weights, ([name, { dtype, shape }]) => [name, { dtype, shape }]);
  postMessage({ opened });
}

/** @param {string} name @param {number} id */
async function give(name, id) {
  const tensor = weights.get(name);
  if (!tensor) return postMessage({ id, tensor: undefined });
  const views = tensor.scales ? [tensor.bytes, tensor.scales.bytes] : [tensor.bytes];
  for (const view of views) await arrivals.get(view.buffer)?.filled(view);
  try {
    checkFinite(name, tensor);
  } catch (error) {
    await verified; // a damaged download is told as that
    throw error;
  }
  const copy = { ...tensor, bytes: tensor.bytes.slice() };
  if (tensor.scales) copy.scales = { ...tensor.scales, bytes: tensor.scales.bytes.slice() };
  const transfer = [copy.bytes.buffer, ...(copy.scales ? [copy.scales.bytes.buffer] : [])];
  /** @type {(message: unknown, transfer: ArrayBuffer[]) => void} */ (postMessage)({ id, tensor: copy }, transfer);
}

/** @param {unknown} error */
function fail(error) {
  const { name, code, message } = /** @type {Error & {code?: string}} */ (error);
  postMessage({ failed: { name, code, message } });
}

addEventListener("message", ({ data }) => {
  if (data.files) {
    verified = bring(data.files);
    verified.catch(fail);
  } else {
    give(data.get, data.id).catch(fail);
  }
});
