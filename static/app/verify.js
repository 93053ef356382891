// Comparing this device's kernels with the PyTorch oracle, intermediate by intermediate, for one prompt.
import { oracleTrace, pause, serverStatus } from "./api.js";
import { tensors } from "./server_engine.js";
import { WRITTEN_BY, largestError, toleranceOf } from "./tolerances.js";

const LAYER_NAMES = [
  "resid_pre",
  "attn_norm",
  "q_proj",
  "k_proj",
  "v",
  "q_normed",
  "k_normed",
  "q",
  "k",
  "lse",
  "z",
  "pattern",
  "attn_out",
  "resid_mid",
  "mlp_norm",
  "gate",
  "up",
  "act",
  "mlp_out",
  "resid_post",
];
const WAIT_MS = 2000;

/** @typedef {{name: string, kernel: string, layer: number | null, error: number, limit: number, relative: boolean, passed: boolean}} Check */
/** @typedef {{passed: boolean, largest: number, checks: Check[], tokens: number, model: string}} Report largest: the largest error over its tolerance's kind */

/**
 * Waits until the oracle can be asked.
 * @param {(sentence: string) => void} say
 * @param {AbortSignal} [signal]
 */
export async function oracleReady(say, signal) {
  for (;;) {
    const { oracle } = await serverStatus();
    if (oracle.state === "ready") return;
    if (oracle.state !== "installing") throw new Error(oracle.detail);
    const number = oracle.progress === null || oracle.detail.includes("%") ? "" : ` ${Math.floor(oracle.progress * 100)} %`;
    say(`${oracle.detail}${number}`);
    await pause(WAIT_MS, signal);
  }
}

/**
 * @param {import("./state.js").Engine} engine on the GPU
 * @param {import("./state.js").ModelEntry} entry
 * @param {number[]} ids
 * @param {{say?: (sentence: string) => void, onPart?: (part: number | null) => void, onCheck?: (check: Check) => void,
 *   signal?: AbortSignal}} [options] onPart: 0..1 of what was said last; null: nobody can tell
 * @returns {Promise<Report>}
 */
export async function verify(engine, entry, ids, { say = () => {}, onPart = () => {}, onCheck = () => {}, signal } = {}) {
  await oracleReady(say, signal);
  say("Running the prompt with every intermediate recorded.");
  const trace = await engine.run(ids, { record: true, signal, onProgress: onPart });
  /** @type {Check[]} */
  const checks = [];
  /** @param {string} name @param {number | null} layer @param {ArrayLike<number>} ours @param {ArrayLike<number>} truth */
  const compare = (name, layer, ours, truth) => {
    checks.push(checkOf(name, layer, largestError(ours, truth, toleranceOf(name).relative), trace));
    onCheck(checks[checks.length - 1]);
  };
  /** @param {string[]} include @param {{layers?: number[], positions?: number[]}} options */
  const oracle = async (include, options) => tensors(await oracleTrace({ model: entry.id, ids, include, ...options }, signal));
  try {
    const last = ids.length - 1;
    say("Waiting for PyTorch on the server, which reads the model before its first answer.");
    onPart(null);
    compare("embed", null, await trace.read("embed"), (await oracle(["embed"], { layers: [] })).embed.data);
    const names = LAYER_NAMES.filter((name) => !name.endsWith("_normed") || entry.family === "qwen3");
    for (let layer = 0; layer < trace.shape.L; layer += 1) {
      say(`Comparing layer ${layer}, ${layer + 1} of ${trace.shape.L}.`);
      onPart(layer / trace.shape.L);
      const truth = await oracle(names, { layers: [layer] });
      for (const name of names) compare(name, layer, await trace.read(name, layer), truth[name].data);
    }
    say("Comparing the prediction and the lens.");
    onPart(null);
    const end = await oracle(["final_norm", "logits", "lens_ids", "lens_logprobs"], { layers: [], positions: [last] });
    compare("final_norm", null, await trace.read("final_norm"), end.final_norm.data);
    compare("logits", null, await trace.logits(last), end.logits.data);
    compare("lens_logprobs", null, ...lensPairs(await trace.lens(), end));
  } finally {
    trace.destroy();
  }
  const largest = Math.max(...checks.map((check) => check.error));
  return { passed: checks.every((check) => check.passed), largest, checks, tokens: ids.length, model: entry.id };
}

/**
 * The verdict on an intermediate, and the kernel that wrote it.
 * @param {string} name @param {number | null} layer @param {number} error @param {import("./state.js").Trace} trace @returns {Check}
 */
function checkOf(name, layer, error, { attentionKernel }) {
  const { limit, relative } = toleranceOf(name);
  const written = WRITTEN_BY[/** @type {keyof typeof WRITTEN_BY} */ (name)];
  const kernel = written === "attention_fa2" ? (attentionKernel ?? written) : written; // the variant that ran
  return { name, kernel, layer, error, limit, relative, passed: error <= limit };
}

/**
 * Log-probabilities of the same tokens. Two tokens that are nearly equal may swap places, which is no error: each oracle
 * token is looked up among ours; one that fell off the end is compared with our last.
 * @param {{ids: ArrayLike<number>, logprobs: Float32Array}} ours
 * @param {Record<string, {data: Float32Array}>} truth
 * @returns {[number[], Float32Array]}
 */
function lensPairs(ours, truth) {
  const [ids, logprobs] = [truth.lens_ids.data, truth.lens_logprobs.data];
  const k = 10;
  const found = Array.from(ids, (id, i) => {
    const row = Math.floor(i / k) * k;
    for (let j = row; j < row + k; j += 1) if (ours.ids[j] === id) return ours.logprobs[j];
    return ours.logprobs[row + k - 1];
  });
  return [found, logprobs];
}

/**
 * The first check out of tolerance in the order the data flows: where the mistake is, for errors spread downstream.
 * @param {Check[]} checks
 */
export const firstFailure = (checks) => checks.find((check) => !check.passed) ?? null;
