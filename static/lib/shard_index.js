// model.safetensors.index.json, which says in which shard each tensor stands. The same rules in the same order stand in
// weights/shard_index.py.
import { MAX_TENSORS, SafetensorsError } from "./safetensors.js";
import { JsonNumber, parseObject, quoted } from "./strict_json.js";

/** @typedef {import("./safetensors.js").Header} Header */
/** @typedef {{weightMap: Map<string, string>, totalSize: string | null, shards: string[]}} ShardIndex */

export const MAX_INDEX_BYTES = 8 * 1024 * 1024;
const SHARD = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}\.safetensors$/;

/**
 * @param {string} code
 * @param {string} message
 * @returns {never}
 */
function refuse(code, message) {
  throw new SafetensorsError(code, message);
}

/**
 * Checks and parses an index on its own.
 * @param {Uint8Array} bytes
 * @returns {ShardIndex}
 */
export function parseIndex(bytes) {
  if (bytes.length > MAX_INDEX_BYTES) refuse("index-too-large", `The shard index has more than ${MAX_INDEX_BYTES} bytes. Fetch it again.`);
  const value = parseObject(bytes, "index", 8);
  const map = value.get("weight_map");
  const metadata = value.has("metadata") ? value.get("metadata") : new Map();
  if (!(map instanceof Map) || ![...map.values()].every((shard) => typeof shard === "string") || !(metadata instanceof Map)) {
    refuse("index-fields", "The shard index must have a weight_map from tensor names to shard names.");
  }
  const weightMap = /** @type {Map<string, string>} */ (map);
  if (weightMap.size > MAX_TENSORS) refuse("too-many-tensors", `The index names ${weightMap.size} tensors; at most ${MAX_TENSORS} are allowed.`);
  for (const shard of weightMap.values()) {
    if (!SHARD.test(shard) || shard.includes("..")) {
      refuse("index-shard-path", `The index points at ${quoted(shard)}; a shard is a plain name in the folder that ends in .safetensors.`);
    }
  }
  const total = metadata.get("total_size") ?? null;
  const totalSize = total === null ? null : total instanceof JsonNumber ? total.text : "";
  return { weightMap, totalSize, shards: [...new Set(weightMap.values())].sort() };
}

/**
 * Checks the index against its shards' headers, one for every name in index.shards.
 * @param {ShardIndex} index
 * @param {Map<string, Header>} headers
 */
export function checkIndex(index, headers) {
  const home = homes(index, headers);
  for (const [name, shard] of index.weightMap) {
    if (!home.has(name)) refuse("index-tensor-missing", `The index names ${quoted(name)} in ${shard}, but no shard holds it.`);
    if (home.get(name) !== shard) refuse("index-wrong-shard", `The index names ${quoted(name)} in ${shard}, but it stands in ${home.get(name)}.`);
  }
  for (const [name, shard] of home) {
    if (!index.weightMap.has(name)) refuse("index-tensor-unlisted", `${shard} holds ${quoted(name)}, which the index does not name.`);
  }
  let total = 0;
  for (const { tensors } of headers.values()) for (const { begin, end } of tensors.values()) total += end - begin;
  if (index.totalSize !== null && index.totalSize !== String(total)) {
    refuse("index-total-size", `The index says total_size ${quoted(index.totalSize, 30)}; its tensors have ${total} bytes. Fetch it again.`);
  }
}

/**
 * The shard of every tensor.
 * @param {ShardIndex} index
 * @param {Map<string, Header>} headers
 */
function homes(index, headers) {
  /** @type {Map<string, string>} */
  const home = new Map();
  for (const shard of index.shards) {
    const header = headers.get(shard) ?? refuse("index-shard-missing", `The index names ${quoted(shard)}, which is not in the folder. Fetch it.`);
    for (const name of header.tensors.keys()) {
      if (home.has(name)) refuse("tensor-in-two-shards", `Tensor ${quoted(name)} stands in ${home.get(name)} and in ${shard}.`);
      home.set(name, shard);
    }
  }
  return home;
}
