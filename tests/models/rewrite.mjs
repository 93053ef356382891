// node rewrite.mjs IN OUT: reads a safetensors file with the page's reader and writes it again with the page's writer.
import { readFileSync, writeFileSync } from "node:fs";
import { openSafetensors, parseHeader, serialize } from "../../static/lib/safetensors.js";

const [from, to] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(from));
writeFileSync(to, serialize(openSafetensors(bytes), Object.fromEntries(parseHeader(bytes).metadata)));
process.stdout.write("null");
