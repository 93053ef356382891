// Answers questions about static/bench from Node.js: one JSON request a line on stdin, one JSON answer a line on stdout.
import { createInterface } from "node:readline";
import { read } from "../../static/bench/arguments.js";
import { CASES, tried, usedVariant } from "../../static/bench/cases.js";
import { hash, matrix, numbers, sampled } from "../../static/bench/tensors.js";

/** A few places of a long list, and its length. */
const some = (values) => [values.length, ...[0, 1, 7 % values.length, values.length - 1].map((i) => values[i])];

const ANSWERS = {
  read: ({ given }) => read(given),
  case: ({ given }) => {
    const asked = read(given);
    asked.variant = usedVariant(asked);
    const { words, dispatches, inputs, outputs, scratch, flops, checked, read_bytes = null } = CASES[asked.op](asked);
    const kept = Object.fromEntries(Object.entries(inputs).map(([name, array]) => [name, some(array)]));
    return { words, dispatches, inputs: kept, outputs, scratch, flops, checked, read_bytes };
  },
  tried: ({ given, features, software }) => tried(read(given), { features: new Set(features), software }),
  hashes: ({ seed, count }) => Array.from({ length: count }, (_, i) => hash(seed, i)),
  numbers: ({ seed, count }) => [...numbers(seed, count)],
  matrix: ({ format }) => {
    const { values, buffers } = matrix(5, 3, 64, format);
    return { values: [...values], buffers: Object.fromEntries(Object.entries(buffers).map(([name, array]) => [name, [...array]])) };
  },
  sampled: ({ count }) => sampled(count),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { what, ...given } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ answer: ANSWERS[what](given) }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
