// The safetensors header, read strictly: eight bytes of length, a JSON object, then the tensors' bytes.
//   u64 little-endian n | n bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} | data
// The tensors must cover the data exactly: no overlap, no hole, no trailing byte. The same rules in the same order stand in
// weights/safetensors_header.py; a test gives both readers the same files and wants the same code.
// Source: huggingface/safetensors, README, "Format". Left out on purpose: dtypes of less than a byte.
import { fold } from "./blocks.js";
import { JsonNumber, parseObject, quoted, SafetensorsError } from "./strict_json.js";

export { SafetensorsError };

const MAX_HEADER_BYTES = 8 * 1024 * 1024;
const MAX_TENSORS = 10_000;
const MAX_DEPTH = 8;
const MAX_NAME = 200;
const MAX_RANK = 8;
const TOO_BIG = Number.MAX_SAFE_INTEGER + 1;
/** @type {Record<string, number>} bytes of one element */
export const DTYPE_BYTES = {
  BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1, U16: 2, I16: 2, F16: 2, BF16: 2,
  U32: 4, I32: 4, F32: 4, U64: 8, I64: 8, F64: 8,
};
const RESERVED = new Set(["__proto__", "prototype", "constructor"]);
const INTEGER = /^(?:0|[1-9][0-9]*)$/;

/** @typedef {import("./strict_json.js").Json} Json */
/** @typedef {{dtype: string, shape: number[], begin: number, end: number}} TensorInfo begin and end count from dataStart */
/** @typedef {{tensors: Map<string, TensorInfo>, metadata: Map<string, string>, dataStart: number}} Header */

/**
 * @param {string} code
 * @param {string} message
 * @returns {never}
 */
function refuse(code, message) {
  throw new SafetensorsError(code, message);
}

/**
 * The header's length in bytes, from the file's first eight bytes.
 * @param {Uint8Array} first
 * @param {number} fileSize in bytes
 */
function headerLength(first, fileSize) {
  if (fileSize < 8 || first.length < 8) refuse("file-too-short", `The file has ${fileSize} bytes; a safetensors file has at least 8. Fetch it again.`);
  const length = Number(new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES) refuse("header-too-large", `The header claims ${length} bytes; at most ${MAX_HEADER_BYTES} are allowed. Is this a safetensors file?`);
  if (length > fileSize - 8) refuse("header-outside-file", `The header claims ${length} bytes but the file has ${fileSize - 8} after the length. Fetch it again.`);
  return length;
}

/**
 * Checks and parses a header. Throws SafetensorsError, one code per rule.
 * @param {Uint8Array} bytes the file's first bytes, at least through the header
 * @param {number} [fileSize] in bytes
 * @returns {Header}
 */
export function parseHeader(bytes, fileSize = bytes.length) {
  const length = headerLength(bytes, fileSize);
  const raw = bytes.subarray(8, 8 + length);
  if (raw.length < length) refuse("file-truncated", `The header has ${length} bytes but only ${raw.length} could be read. Fetch it again.`);
  if (raw[0] !== 0x7b) refuse("header-start", "The header must begin with '{', no blanks before it. Is this a safetensors file?");
  const entries = parseObject(raw, MAX_DEPTH);
  const metadata = takeMetadata(entries);
  if (entries.size > MAX_TENSORS) refuse("too-many-tensors", `The file names ${entries.size} tensors; at most ${MAX_TENSORS} are allowed.`);
  const dataBytes = fileSize - 8 - length;
  /** @type {Map<string, TensorInfo>} */
  const tensors = new Map();
  for (const [name, entry] of entries) tensors.set(name, tensorInfo(name, entry, dataBytes));
  checkCover(tensors, dataBytes);
  return { tensors, metadata, dataStart: 8 + length };
}

/**
 * All tensors of a whole file, as views of its bytes.
 * @param {Uint8Array} bytes
 * @returns {Map<string, {dtype: string, shape: number[], bytes: Uint8Array}>}
 */
export function openSafetensors(bytes) {
  const { tensors, dataStart } = parseHeader(bytes);
  return new Map(Array.from(tensors, ([name, { dtype, shape, begin, end }]) =>
    [name, { dtype, shape, bytes: bytes.subarray(dataStart + begin, dataStart + end) }]));
}

/**
 * A model's tensors exist and have a dtype that the kernels read exactly; gives them with block matrices put together.
 * @template {{dtype: string, shape: number[]}} Tensor
 * @param {Iterable<[string, Tensor]>} tensors of all shards
 */
export function checkWeights(tensors) {
  const weights = fold(new Map(tensors));
  if (weights.size === 0) refuse("no-tensors", "The file holds no tensors; a model has some.");
  for (const [name, { dtype, scales }] of weights) {
    if (!scales && !["F32", "F16", "BF16"].includes(dtype)) refuse("weight-dtype", `Tensor ${quoted(name)} has dtype ${dtype}; allowed: F32, F16, BF16. Convert it.`);
  }
  return weights;
}

/** @param {Map<string, Json>} entries */
function takeMetadata(entries) {
  const metadata = entries.get("__metadata__") ?? (entries.has("__metadata__") ? null : new Map());
  entries.delete("__metadata__");
  if (!(metadata instanceof Map) || ![...metadata.values()].every((value) => typeof value === "string")) {
    refuse("metadata-not-strings", "__metadata__ must map strings to strings; write other values as strings.");
  }
  return /** @type {Map<string, string>} */ (metadata);
}

/**
 * @param {string} name
 * @param {Json} entry
 * @param {number} dataBytes
 * @returns {TensorInfo}
 */
function tensorInfo(name, entry, dataBytes) {
  checkName(name);
  if (!(entry instanceof Map) || entry.size !== 3 || !["dtype", "shape", "data_offsets"].every((key) => entry.has(key))) {
    refuse("entry-fields", `Tensor ${quoted(name)} must have exactly dtype, shape and data_offsets.`);
  }
  const dtype = entry.get("dtype");
  if (typeof dtype !== "string" || !Object.hasOwn(DTYPE_BYTES, dtype)) {
    refuse("unknown-dtype", `Tensor ${quoted(name)} has dtype ${quoted(dtype)}; allowed: ${Object.keys(DTYPE_BYTES).join(", ")}. Convert the file.`);
  }
  const { shape, size } = readShape(name, entry.get("shape"), DTYPE_BYTES[dtype]);
  const [begin, end] = readOffsets(name, entry.get("data_offsets"), dataBytes);
  if (end - begin !== size) refuse("size-mismatch", `Tensor ${quoted(name)} has ${end - begin} bytes; ${dtype} of shape [${shape}] needs ${size}.`);
  return { dtype, shape, begin, end };
}

/**
 * Refuses names that could pass for something else: a path, a control sequence, a prototype key.
 * @param {string} name
 */
function checkName(name) {
  if (name.includes("/") || name.includes("\\") || name.includes("..")) refuse("name-path", `Tensor name ${quoted(name)} looks like a path; use dots between words.`);
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) refuse("name-characters", `Tensor name ${quoted(name)} has characters that are not allowed; use letters, digits, '_', '.' and '-'.`);
  if (name.length > MAX_NAME) refuse("name-too-long", `Tensor name ${quoted(name)} has ${name.length} characters; at most ${MAX_NAME}.`);
  if (name.split(".").some((part) => RESERVED.has(part))) refuse("name-reserved", `Tensor name ${quoted(name)} has a reserved part; rename it.`);
}

/**
 * @param {string} name
 * @param {Json | undefined} value
 * @param {number} itemBytes
 */
function readShape(name, value, itemBytes) {
  if (!Array.isArray(value) || !value.every((size) => size instanceof JsonNumber)) {
    refuse("shape-not-integers", `Tensor ${quoted(name)}: shape must be a list of integers.`);
  }
  if (value.length > MAX_RANK) refuse("shape-rank", `Tensor ${quoted(name)} has ${value.length} dimensions; at most ${MAX_RANK} are allowed.`);
  const shape = [];
  // Two sizes below 2^53 multiply exactly only as BigInt; each partial product is compared before the next one.
  let total = BigInt(itemBytes);
  for (const { text } of /** @type {JsonNumber[]} */ (value)) {
    if (/^-[0-9]+$/.test(text)) refuse("shape-negative", `Tensor ${quoted(name)}: size ${text.slice(0, 20)} is negative; sizes start at 0.`);
    if (!INTEGER.test(text)) refuse("shape-not-integers", `Tensor ${quoted(name)}: size ${text.slice(0, 20)} is not an integer.`);
    const size = integer(text);
    total *= BigInt(size);
    if (size >= TOO_BIG || total >= BigInt(TOO_BIG)) refuse("shape-overflow", `Tensor ${quoted(name)}: its shape needs more than ${Number.MAX_SAFE_INTEGER} bytes.`);
    shape.push(size);
  }
  return { shape, size: Number(total) };
}

/**
 * @param {string} name
 * @param {Json | undefined} value
 * @param {number} dataBytes
 */
function readOffsets(name, value, dataBytes) {
  if (!Array.isArray(value) || value.length !== 2 || !value.every((number) => number instanceof JsonNumber && INTEGER.test(number.text))) {
    refuse("offsets-not-integers", `Tensor ${quoted(name)}: data_offsets must be two integers, zero or more.`);
  }
  const [begin, end] = /** @type {JsonNumber[]} */ (value).map(({ text }) => integer(text));
  if (begin > end) refuse("offsets-reversed", `Tensor ${quoted(name)} begins at ${begin} and ends at ${end}; begin comes first.`);
  if (end > dataBytes) refuse("offsets-outside-file", `Tensor ${quoted(name)} ends at byte ${end} but the file has ${dataBytes} bytes of data. Fetch it again.`);
  return [begin, end];
}

/**
 * A number beyond 2^53 - 1 becomes 2^53, which no file reaches.
 * @param {string} text
 */
function integer(text) {
  return text.length <= 16 ? Math.min(Number(text), TOO_BIG) : TOO_BIG;
}

/**
 * The tensors, in the order of their bytes, must cover the data exactly once.
 * @param {Map<string, TensorInfo>} tensors
 * @param {number} dataBytes
 */
function checkCover(tensors, dataBytes) {
  let position = 0;
  let before = "the header";
  const inOrder = [...tensors].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  for (const [name, { begin, end }] of inOrder) {
    if (begin < position) refuse("overlap", `Tensor ${quoted(name)} shares bytes with ${before}; each byte belongs to one tensor.`);
    if (begin > position) refuse("hole", `${begin - position} bytes before tensor ${quoted(name)} belong to no tensor.`);
    position = end;
    before = quoted(name);
  }
  if (position < dataBytes) refuse("trailing-bytes", `${dataBytes - position} bytes after the last tensor belong to no tensor.`);
}
