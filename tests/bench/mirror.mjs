// Answers questions about static/bench from Node.js: one JSON request a line on stdin, one JSON answer a line on stdout.
import { createInterface } from "node:readline";
import { read } from "../../static/bench/arguments.js";
import { CASES, tried, usedVariant } from "../../static/bench/cases.js";
import { everyTurn, leastRuns, runsInARow, summary } from "../../static/bench/timing.js";
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
  summary: ({ readings }) => summary(readings),
  least: ({ op }) => leastRuns(op),
  turns: async ({ times, seconds }) => {
    let [now, count] = [0, 0];
    const turn = async () => {
      now += 1000 * seconds;
      return { ms: times[Math.min(count++, times.length - 1)] };
    };
    await everyTurn(turn, () => now);
    return count;
  },
  runs: async ({ singles, least }) => {
    const [real, left] = [performance.now, [...singles]];
    let now = 0;
    performance.now = () => now;
    try {
      return await runsInARow(async () => (now += left.length > 1 ? left.shift() : left[0]), least);
    } finally {
      performance.now = real;
    }
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { what, ...given } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ answer: await ANSWERS[what](given) }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
