// Answers questions about the page's host from Node.js: one JSON request a line on stdin, one JSON answer a line on stdout.
import { createInterface } from "node:readline";
import { parseConfig } from "../../static/gpu/config.js";
import { tensorShapes, checkFinite, checkNames, checkShape, checkTwin, place } from "../../static/gpu/layout.js";
import { Pace } from "../../static/gpu/pace.js";
import { CACHE, RECORD, TRACE, forward, prefill } from "../../static/gpu/plan.js";
import * as queries from "../../static/gpu/queries.js";
import { Replay } from "../../static/gpu/replay.js";
import { Model } from "../../static/gpu/runtime.js";
import { tables } from "../../static/gpu/rope.js";
import { VARIANTS, available, firstChoice, pick, toTry } from "../../static/gpu/variants.js";
import { batches } from "../../static/gpu/lens.js";
import { laterPlans, picturePlans, plainChoice } from "../../static/gpu/warm.js";
import { half, widen } from "../../static/gpu/widen.js";
import { candidatesOf, kept, sample, sampleFrom, seeded } from "../../static/lib/sampler.js";

const KEEP = { cache: CACHE, trace: TRACE, record: RECORD };

/** A plan as plain JSON. */
function plain(plan) {
  return { buffers: Object.fromEntries(plan.buffers), steps: plan.steps };
}

function placed(config, { dtype, most_bytes, changed = {} }) {
  const dtypes = new Map([...tensorShapes(config).keys()].map((name) => [name, changed[name] ?? dtype]));
  return place(config, dtypes, most_bytes);
}

/** A tensor whose bytes begin `shift` bytes into their buffer. */
function stored({ dtype, bytes }, shift = 0) {
  return { dtype, bytes: Uint8Array.from([...Array(shift).fill(255), ...bytes]).subarray(shift) };
}

const ANSWERS = {
  config: ({ raw }) => parseConfig(raw),
  rope: ({ raw, start, count, total }) => {
    const config = parseConfig(raw);
    const { cos, sin } = tables(config.rope, config.H, start, count, total);
    return { cos: [...cos], sin: [...sin] };
  },
  layout: ({ raw, ...weights }) => Object.fromEntries(placed(parseConfig(raw), weights)),
  names: ({ raw, names }) => checkNames(parseConfig(raw), names) ?? null,
  shape: ({ name, shape, wanted }) => checkShape(name, shape, wanted) ?? null,
  twin: ({ embed, head }) => checkTwin(stored(embed), stored(head)) ?? null,
  finite: ({ name, shift, ...tensor }) => checkFinite(name, stored(tensor, shift)) ?? null,
  forward: ({ raw, keep, options, ...weights }) => {
    const config = parseConfig(raw);
    return plain(forward(config, placed(config, weights), { ...options, keep: KEEP[keep] }));
  },
  prefill: ({ raw, keep, options, ...weights }) => {
    const config = parseConfig(raw);
    return prefill(config, placed(config, weights), { ...options, keep: KEEP[keep] }).map(plain);
  },
  query: ({ raw, name, options, ...weights }) => {
    const config = parseConfig(raw);
    return plain(queries[name](config, placed(config, weights), options));
  },
  picture: ({ raw, choice, T, ...weights }) => {
    const config = parseConfig(raw);
    return picturePlans(config, placed(config, weights), choice, T).map(plain);
  },
  later: ({ raw, choice, ...weights }) => {
    const config = parseConfig(raw);
    return laterPlans(config, placed(config, weights), choice).map(plain);
  },
  plain_choice: ({ raw, T, choice }) => plainChoice(parseConfig(raw), T, choice),
  /** What a model compiles, how many at once, and what it runs a prompt on before and after. */
  warming: async ({ raw, choice, T, ...weights }) => {
    const config = parseConfig(raw);
    const seen = { picture: [], all: [], most: { picture: 0, all: 0 }, unasked: 0 };
    let [running, stage, idle] = [0, "picture", false];
    const pipeline = async (kernel) => {
      seen.most[stage] = Math.max(seen.most[stage], ++running);
      seen[stage].push(kernel);
      if (stage === "all" && !idle) seen.unasked += 1;
      idle = false;
      await new Promise((resolve) => setTimeout(resolve));
      running -= 1;
      if (kernel === "attention_merge") throw new Error("does not compile"); // is no reason to stop
    };
    const model = Object.assign(Object.create(Model.prototype), { config, choice, warmed: false, warming: false });
    Object.assign(model, { placed: placed(config, weights), kernels: { pipeline } });
    await model.warmPicture(T);
    const before = model.choiceFor(T);
    stage = "all";
    const whenIdle = async () => void (idle = true);
    await Promise.all([model.warmAll(whenIdle), model.warmAll(whenIdle)]);
    return { ...seen, before, after: model.choiceFor(T) };
  },
  pace: ({ runs }) => {
    const pace = new Pace();
    return runs.map((submits) => {
      for (const [flops, ms] of submits) pace.note(flops, ms);
      pace.settle();
      return pace.flops;
    });
  },
  replay: ({ runs }) => {
    const replay = new Replay(null);
    let made = 0;
    return runs.map((dispatches) => dispatches.map((dispatch, place) => replay.group(place, dispatch, () => made++)));
  },
  /** For parameters of these sizes one after the other: the number of the buffer and of the group's; which are freed at the end. */
  uniforms: ({ sizes }) => {
    const made = [];
    const createBuffer = ({ size }) => {
      made.push({ number: made.length, size, freed: false, destroy: () => (made.find((each) => each.size === size).freed = true) });
      return made.at(-1);
    };
    const writeBuffer = (buffer, start, bytes) => {
      if (buffer.freed || start + bytes.byteLength > buffer.size) throw new Error("written beyond a buffer");
    };
    const replay = new Replay({ gpu: { createBuffer, queue: { writeBuffer } } });
    const used = sizes.map((size) => {
      const { number } = replay.fill(new ArrayBuffer(size));
      return [number, replay.group(0, { kernel: "rmsnorm", bindings: { x: "a" } }, () => number)];
    });
    replay.destroy();
    return { used, freed: made.map(({ freed }) => freed) };
  },
  variants: () => VARIANTS,
  pick: ({ operation, variant, sizes }) => pick(operation, variant, sizes),
  available: ({ operation, features }) => available(operation, new Set(features)),
  to_try: ({ operation, features, software, sizes }) => toTry(operation, new Set(features), software, sizes),
  first: ({ features, software }) => firstChoice(new Set(features), software),
  rows: ({ raw }) => queries.rowsPerQuery(parseConfig(raw)),
  layers: ({ raw, T, out }) => queries.layersPerQuery(parseConfig(raw), T, out),
  batches: ({ sources, most }) => batches(sources, most),
  halves: ({ bits }) => bits.map((each) => String(half(each))),
  widen: ({ dtype, bytes }) => [...new Float32Array(widen({ dtype, bytes: Uint8Array.from(bytes) }).buffer)],
  kept: ({ logits, temperature, topK, topP }) => kept(Float32Array.from(logits), temperature, topK, topP),
  candidates: ({ words, temperature }) => candidatesOf(Uint32Array.from(words).buffer, temperature),
  /** Ids drawn from the whole row, and from what is left of it; null where that cannot tell. */
  drawn: ({ logits, candidates, sampling, points }) => {
    const row = Float32Array.from(logits);
    const whole = points.map((point) => sample(row, sampling, () => point).id);
    return { whole, few: points.map((point) => sampleFrom(candidates, sampling, point)?.id ?? null) };
  },
  samples: ({ logits, sampling, seed, count }) => {
    const random = seeded(seed);
    return Array.from({ length: count }, () => sample(Float32Array.from(logits), sampling, random));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { ask, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: await ANSWERS[ask](given) };
  } catch (error) {
    answer = { error: { name: error.name, code: error.code ?? null, message: error.message } };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
