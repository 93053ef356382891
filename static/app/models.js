// Bringing a model into this page: its small files, its tokenizer, its weights.
import { IdTokens } from "../lib/id_tokens.js";
import { askJson } from "./api.js";
import { keptBytes } from "./download.js";
import { openTokenizer } from "./tokenizer.js";
import { openWeights } from "./weights.js";

/** @typedef {import("./state.js").ModelEntry} ModelEntry */

/**
 * @param {ModelEntry} entry
 * @param {string} name
 */
const fileOf = (entry, name) => entry.files.find((file) => file.name === name) ?? null;

/**
 * @param {ModelEntry} entry
 * @param {string} name
 * @returns {Promise<any>} parsed JSON; null when the model has no such file
 */
async function readJson(entry, name) {
  const file = fileOf(entry, name);
  return file ? askJson(file.url) : null;
}

/**
 * The tokenizer, which is there long before the weights are; a model without one takes its ids as they are.
 * @param {ModelEntry} entry
 * @returns {Promise<import("./tokenizer.js").PageTokens | IdTokens>}
 */
export async function loadTokens(entry) {
  const file = fileOf(entry, "tokenizer.json");
  return file ? openTokenizer(file) : new IdTokens(entry.shape.V);
}

/** @param {ModelEntry} entry */
export const loadConfig = (entry) => readJson(entry, "config.json");

/**
 * Ids after which generating stops.
 * @param {{eos_token_id?: number | number[] | null}} config parsed config.json
 * @returns {number[]}
 */
export const stopIds = (config) => [config.eos_token_id ?? []].flat();

/** @param {ModelEntry} entry */
const weightFiles = (entry) => entry.files.filter((file) => file.name.endsWith(".safetensors"));

/** @param {ModelEntry} entry */
export const weightBytes = (entry) => weightFiles(entry).reduce((sum, file) => sum + file.bytes, 0);

/**
 * Bytes of the weights that an earlier visit left here.
 * @param {ModelEntry} entry
 */
export async function keptWeightBytes(entry) {
  let bytes = 0;
  for (const file of weightFiles(entry)) bytes += await keptBytes(file);
  return bytes;
}

/**
 * Begins to download the weights, in a worker, and gives access to their tensors by name as they arrive.
 * @param {ModelEntry} entry
 * @param {{onBytes: (done: number) => void, signal: AbortSignal}} options
 */
export const loadWeights = (entry, options) => openWeights(weightFiles(entry), options);
