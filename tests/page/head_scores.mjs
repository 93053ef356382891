// Scores by static/lib/head_scores.js for the cases on standard input: [{ids, N, pattern}], as JSON.
import { scoredCells, scoresOfHeads } from "../../static/lib/head_scores.js";

let text = "";
for await (const part of process.stdin) text += part;
const answers = JSON.parse(text).map(({ ids, N, pattern }) => {
  const found = scoresOfHeads(Float32Array.from(pattern.flat(2)), N, scoredCells(ids));
  return Object.fromEntries(Object.entries(found).map(([name, values]) => [name, Array.from(values, (x) => (Number.isNaN(x) ? null : x))]));
});
console.log(JSON.stringify(answers));
