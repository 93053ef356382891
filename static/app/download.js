// Fetching a model file in pieces that survive a cancelled download and a closed tab.
//
// Pieces of 16 MiB are asked for with Range and each is kept in the Cache API under the file's own address, which contains
// its SHA-256: a changed file has another address, so nothing stale can ever be used. The hash of the whole file is checked
// before a byte of it is trusted. Where the browser keeps nothing (no space, private window) the download still works.
import { ApiError, ask } from "./api.js";

const PIECE_BYTES = 16 * 1024 * 1024;
const CACHE = "attention-playground-models";

export class DamagedDownload extends Error {
  /** @param {string} name */
  constructor(name) {
    super(`${name} does not have the announced SHA-256; the kept pieces were thrown away, load the model again.`);
    this.name = "DamagedDownload";
  }
}

/** @typedef {{name: string, bytes: number, sha256: string, url: string}} FileInfo */

/** @returns {Promise<Cache | null>} null where the browser offers no cache */
async function openCache() {
  try {
    return await caches.open(CACHE);
  } catch {
    return null;
  }
}

/**
 * @param {FileInfo} file
 * @param {number} piece
 */
const pieceAddress = (file, piece) => `${file.url}?piece=${piece}`;

/** @param {number} bytes */
const pieceCount = (bytes) => Math.max(1, Math.ceil(bytes / PIECE_BYTES));

/**
 * How many bytes of a file are kept here already.
 * @param {FileInfo} file
 */
export async function keptBytes(file) {
  const cache = await openCache();
  if (!cache) return 0;
  const kept = new Set((await cache.keys()).map((request) => new URL(request.url).pathname + new URL(request.url).search));
  let bytes = 0;
  for (let piece = 0; piece < pieceCount(file.bytes); piece += 1) {
    if (kept.has(pieceAddress(file, piece))) bytes += Math.min(PIECE_BYTES, file.bytes - piece * PIECE_BYTES);
  }
  return bytes;
}

/**
 * The whole file, verified.
 * @param {FileInfo} file
 * @param {{onBytes?: (done: number) => void, onPiece?: (whole: Uint8Array<ArrayBuffer>, done: number) => void,
 *   signal?: AbortSignal}} [options] onBytes: bytes in hand so far; onPiece: the same with the bytes, not verified yet
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function download(file, { onBytes, onPiece, signal } = {}) {
  const cache = await openCache();
  const whole = new Uint8Array(file.bytes);
  for (let piece = 0; piece < pieceCount(file.bytes); piece += 1) {
    signal?.throwIfAborted();
    const start = piece * PIECE_BYTES;
    const end = Math.min(file.bytes, start + PIECE_BYTES);
    const kept = await readKept(cache, pieceAddress(file, piece), end - start);
    if (kept) {
      whole.set(kept, start);
      onBytes?.(end);
    } else {
      await fetchPiece(file, whole.subarray(start, end), start, (done) => onBytes?.(start + done), signal);
      await keep(cache, pieceAddress(file, piece), whole.slice(start, end));
    }
    onPiece?.(whole, end);
  }
  if (!(await matches(whole, file.sha256))) {
    for (let piece = 0; piece < pieceCount(file.bytes); piece += 1) await cache?.delete(pieceAddress(file, piece));
    throw new DamagedDownload(file.name);
  }
  return whole;
}

/**
 * @param {Cache | null} cache
 * @param {string} address
 * @param {number} bytes a kept piece of another length is not used
 */
async function readKept(cache, address, bytes) {
  const response = await cache?.match(address).catch(() => undefined);
  if (!response) return null;
  const kept = new Uint8Array(await response.arrayBuffer());
  return kept.length === bytes ? kept : null;
}

/**
 * @param {FileInfo} file
 * @param {Uint8Array} into
 * @param {number} start offset of the piece in the file
 * @param {(done: number) => void} onBytes
 * @param {AbortSignal} [signal]
 */
async function fetchPiece(file, into, start, onBytes, signal) {
  const range = `bytes=${start}-${start + into.length - 1}`;
  const whole = into.length === file.bytes;
  const response = await ask(file.url, { headers: whole ? {} : { Range: range }, signal, cache: "no-store" });
  if (!whole && response.status !== 206) throw new ApiError("no-range", "The server did not send the piece asked for.", 200);
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  let done = 0;
  for (;;) {
    const { value, done: ended } = await reader.read();
    if (ended) break;
    if (done + value.length > into.length) throw new DamagedDownload(file.name);
    into.set(value, done);
    done += value.length;
    onBytes(done);
  }
  if (done !== into.length) throw new ApiError("cut-short", `The download of ${file.name} was cut short; load the model again.`, 0);
}

/**
 * @param {Cache | null} cache
 * @param {string} address
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
async function keep(cache, address, bytes) {
  try {
    await cache?.put(address, new Response(bytes));
  } catch {
    // No space left or keeping is forbidden: the bytes are in hand, only the next visit downloads again.
  }
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {string} sha256 hexadecimal
 */
async function matches(bytes, sha256) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}
