// playground.bench: one operation of the kernels, or the loaded model whole, by the modules of static/bench/.
import { read } from "../bench/arguments.js";
import { ceilings } from "../bench/ceilings.js";
import { BenchError } from "../bench/errors.js";
import { judgeTokens, measureModel, someIds } from "../bench/model.js";
import { measure } from "../bench/timing.js";
import { requestDevice } from "../gpu/device.js";
import { Kernels } from "../gpu/kernels.js";
import { openSafetensors } from "../lib/safetensors.js";
import { oracleTrace } from "./api.js";
import { gpu } from "./engine.js";
import { oracleReady } from "./verify.js";

/** Nats that float32 may put between the kernels and the oracle after all layers. */
const LOGPROB_TOLERANCE = 2e-3;

/** @type {Promise<Kernels> | null} */
let opened = null;

/** Kernels on a device of their own: one that is lost under a measurement must not be the model's. @returns {Promise<Kernels>} */
function ownKernels() {
  if (opened) return opened;
  const mine = requestDevice().then((device) => {
    void device.gpu.lost.then(() => opened === mine && (opened = null));
    return Kernels.load(device);
  });
  mine.catch(() => (opened = null));
  return (opened = mine);
}

/** @param {import("./state.js").Engine} engine @param {import("./state.js").ModelEntry} entry @param {unknown} given */
export async function bench(engine, entry, given) {
  const asked = read(given); // a wrong question is refused before anything is fetched
  if (engine.kind !== "webgpu" || !(await gpu())) throw new BenchError("unavailable", "The server computes here, so there are no kernels to time.");
  const kernels = await ownKernels();
  return asked.op === "model" ? model(engine, entry, asked, kernels) : measure(kernels, asked);
}

/**
 * The loaded model: every generated token must be the oracle's, with its log-probability.
 * @param {import("./state.js").Engine} engine @param {import("./state.js").ModelEntry} entry
 * @param {import("../bench/arguments.js").Asked} asked @param {Kernels} kernels
 */
async function model(engine, entry, { op, T, tokens }, kernels) {
  const { V } = entry.shape;
  const ids = someIds(T, V);
  const { logits: _, generated, logprobs, ...found } = await measureModel(engine, ids, tokens);
  await oracleReady(() => {});
  const positions = generated.map((_id, i) => T - 1 + i);
  const all = [...ids, ...generated.slice(0, -1)];
  const told = openSafetensors(await oracleTrace({ model: entry.id, ids: all, include: ["logits"], positions }));
  const bytes = /** @type {{bytes: Uint8Array}} */ (told.get("logits")).bytes;
  const max_error = judgeTokens(generated, logprobs, new Float32Array(bytes.slice().buffer), V);
  if (!(max_error <= LOGPROB_TOLERANCE))
    throw new BenchError("wrong-result", `${entry.name} is off by ${max_error} nats; a wrong model has no speed.`);
  const shape = `${entry.name}, prompt of ${T} tokens, ${tokens} generated`;
  const [adapter, limits] = [kernels.device.words, await ceilings(kernels)];
  const verdict = { max_error, tolerance: LOGPROB_TOLERANCE };
  return { op, shape, ms: found.prefill_ms, ...found, generated, ...verdict, ceilings: limits, adapter };
}
