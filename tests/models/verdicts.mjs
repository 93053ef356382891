// Reads files (base64, JSON on standard input) with the page's readers and prints the code of each verdict, null for accepted.
//   {"files": ["..."], "folders": [{"name": "..."}]}  ->  {"files": [code | null, ...], "folders": [...], "messages": [...]}
import { readFileSync } from "node:fs";
import { checkWeights, parseHeader, SafetensorsError } from "../../static/lib/safetensors.js";

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

const input = JSON.parse(readFileSync(0, "utf8"));
const files = input.files.map((text) => verdict(() => parseHeader(bytes(text))));
const folders = input.folders.map((folder) => verdict(() => checkWeights(parseHeader(bytes(folder["model.safetensors"])).tensors)));
process.stdout.write(JSON.stringify({ files, folders, messages }));
