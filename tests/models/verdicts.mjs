// Reads files (base64, JSON on standard input) with the page's readers and prints the code of each verdict, null for accepted.
//   {"files": ["..."], "folders": [{"name": "..."}]}  ->  {"files": [code | null, ...], "folders": [...], "messages": [...]}
import { readFileSync } from "node:fs";
import { checkWeights, parseHeader, SafetensorsError } from "../../static/lib/safetensors.js";
import { checkIndex, parseIndex } from "../../static/lib/shard_index.js";

const INDEX = "model.safetensors.index.json";
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const messages = [];

function verdict(read) {
  try {
    read();
    return null;
  } catch (error) {
    if (!(error instanceof SafetensorsError)) throw error;
    messages.push(error.message);
    return error.code;
  }
}

function readFolder(folder) {
  if (!(INDEX in folder)) return checkWeights(parseHeader(bytes(folder["model.safetensors"])).tensors);
  const index = parseIndex(bytes(folder[INDEX]));
  const headers = new Map();
  for (const shard of index.shards) if (shard in folder) headers.set(shard, parseHeader(bytes(folder[shard])));
  checkIndex(index, headers);
  checkWeights([...headers.values()].flatMap((header) => [...header.tensors]));
}

const input = JSON.parse(readFileSync(0, "utf8"));
const files = input.files.map((text) => verdict(() => parseHeader(bytes(text))));
const folders = input.folders.map((folder) => verdict(() => readFolder(folder)));
process.stdout.write(JSON.stringify({ files, folders, messages }));
