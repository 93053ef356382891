// Runs the page's tokenizer: {"tokenizer": path, "texts": [...]} on standard input -> ids, decoded text, pieces, time per text.
import { readFileSync } from "node:fs";
import { Tokenizer } from "../../static/node_modules/@huggingface/tokenizers/dist/tokenizers.min.mjs";
import { Tokens } from "../../static/lib/tokens.js";

const input = JSON.parse(readFileSync(0, "utf8"));
const tokens = Tokens.from(Tokenizer, JSON.parse(readFileSync(input.tokenizer, "utf8")));
const results = input.texts.map((text) => {
  const since = performance.now();
  const ids = tokens.encode(text);
  const encodeMs = performance.now() - since;
  const pieces = tokens.pieces(ids).map((piece) => ({ ...piece, bytes: Array.from(piece.bytes) }));
  return { ids, encodeMs, pieceMs: performance.now() - since - encodeMs, text: tokens.decode(ids), pieces, missing: tokens.missing(text) };
});
process.stdout.write(JSON.stringify({ size: tokens.size, special: tokens.special(0), results }));
