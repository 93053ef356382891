/**
 * Weights on their way into a model's buffers, tensor by tensor.
 *
 * Part of runtime.js, as in webgpu/runtime.py.
 * @module
 */
import { HEAD, EMBED, checkFinite, checkNames, checkShape, checkTwin, tensorShapes } from "./layout.js";
import { rowBytesOf } from "./pieces.js";
import { widen } from "./widen.js";

/** @typedef {import("./config.js").Config} Config */
/** @typedef {import("./runtime.js").Model} Model */
/** @typedef {import("./runtime.js").Source} Source */
/** @typedef {import("./runtime.js").Tensor} Tensor */
/** @typedef {import("./runtime.js").Watch} Watch */

const UPLOAD_BYTES = 8 * 2 ** 20;

/** A checkpoint without a tensor that it named. */
export class TensorMissing extends Error {
  /** @param {string} name */
  constructor(name) {
    super(`The checkpoint lacks ${name}: fetch the model again.`);
    this.name = "RunError";
    this.code = "tensor-missing";
  }
}

/**
 * The format of each tensor of a checkpoint that is what its config says. Throws WeightsMismatch.
 * @param {Config} config @param {Source} source @returns {Promise<Map<string, string>>}
 */
export async function formatsOf(config, source) {
  checkNames(config, source.keys());
  /** @type {Map<string, string>} */
  const dtypes = new Map();
  for (const [name, shape] of tensorShapes(config)) {
    const { shape: given, dtype } = source.describe?.(name) ?? (await take(source, name));
    checkShape(name, given, shape);
    dtypes.set(name, dtype);
  }
  const head = config.tied && [...source.keys()].includes(HEAD) ? await source.get(HEAD) : undefined;
  if (head) {
    checkShape(HEAD, head.shape, [config.V, config.D]);
    checkTwin(await take(source, EMBED), head);
  }
  return dtypes;
}

/**
 * Copy all tensors into a model's buffers; resolves when every hash was right. Throws WeightsMismatch, or the signal's reason.
 * @param {Model} model @param {Source} source @param {Watch} watch
 */
export async function uploadAll(model, source, { onProgress, signal }) {
  let done = 0;
  for (const name of source.keys()) {
    if (!model.placed.has(name)) continue;
    signal?.throwIfAborted();
    const tensor = await take(source, name);
    if (!source.describe) checkFinite(name, tensor); // a source that describes its tensors has looked at them
    await upload(model, name, tensor);
    done += 1; // not among what is told: nobody may be listening
    onProgress?.(done / model.placed.size);
    if (done % 16 === 0) await model.kernels.fence(model.weights.scope); // uploads wait in memory until the device takes them
  }
  await source.verified?.();
  await model.weights.scope.taken();
}

/**
 * Copy one tensor into its pieces: matrices as they are, vectors as f32.
 * @param {Model} model @param {string} name @param {Tensor} tensor
 */
async function upload(model, name, tensor) {
  const placed = /** @type {import("./pieces.js").Placed} */ (model.placed.get(name));
  const bytes = placed.shape.length === 1 ? widen(tensor) : tensor.bytes;
  const [wide, scalesWide] = rowBytesOf(placed);
  for (const { buffer, row0, rows, scales, at } of placed.pieces) {
    await put(model, buffer, bytes.subarray(row0 * wide, (row0 + rows) * wide), at * wide);
    const part = tensor.scales?.bytes.subarray(row0 * scalesWide, (row0 + rows) * scalesWide);
    if (part) await put(model, scales, part, at * scalesWide);
  }
}

/**
 * Copy bytes into a buffer of weights from `start` on, many of them with pauses: a copy of 50 MB holds the page up.
 * @param {Model} model @param {string} buffer @param {Uint8Array} bytes @param {number} start
 */
async function put({ weights }, buffer, bytes, start) {
  for (let at = 0; at < bytes.length; at += UPLOAD_BYTES) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve));
    const part = /** @type {Uint8Array<ArrayBuffer>} */ (bytes.subarray(at, at + UPLOAD_BYTES));
    weights.write({ [buffer]: part }, start + at);
  }
}

/** @param {Source} source @param {string} name */
async function take(source, name) {
  const tensor = await source.get(name);
  if (!tensor) throw new TensorMissing(name);
  return tensor;
}
