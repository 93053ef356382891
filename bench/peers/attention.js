/**
 * Attention as the peers compute it, on the tensors of static/bench/tensors.js and judged by the same float64.
 * Each kind lives in a tab of its own, since a package keeps the first device it sees.
 *
 *     ort-webgpu      onnxruntime-web GroupQueryAttention on WebGPU, the device it opens itself (with subgroups)
 *     ort-nosubgroups the same on a device without subgroups
 *     ort-wasm        the same on WebAssembly, two threads
 *     tfjs            tfjs-backend-webgpu: matMul, mask, softmax, matMul, heads repeated beforehand
 * Inputs and results stay on the device while time is taken, as ours do.
 * @module
 */
import { timed } from "/static/bench/ceilings.js";
import { Worst, attentionRow } from "/static/bench/reference.js";
import { numbers, sampled } from "/static/bench/tensors.js";
import { leastRuns, reading, runsInARow } from "/static/bench/timing.js";
import { openOrt } from "./ort.js";

const [N, K, H, TOLERANCE, SLOW_MS] = [9, 3, 64, 1e-5, 4000];

/** @type {Promise<any> | undefined} */
let opened;

/** The peer's package, loaded once a tab. @param {string} kind */
const open = (kind) => (opened ??= kind === "tfjs" ? openTfjs() : openOrt(kind));

async function openTfjs() {
  for (const name of ["core", "backend-cpu", "backend-webgpu"]) {
    await new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = resolve;
      script.onerror = () => reject(new Error(`tfjs ${name} did not load`));
      script.src = `/peers/node_modules/@tensorflow/tfjs-${name}/dist/tf-${name}.min.js`;
      document.head.append(script);
    });
  }
  const tf = /** @type {any} */ (globalThis).tf;
  await tf.setBackend("webgpu");
  await tf.ready();
  return tf;
}

/** Rows [S,heads,H] to [heads,S,H], each head `times` times. @param {Float32Array} x @param {number} S @param {number} heads @param {number} copies */
function byHead(x, S, heads, copies) {
  const out = new Float32Array(heads * copies * S * H);
  for (let n = 0; n < heads * copies; n++)
    for (let s = 0; s < S; s++) {
      const from = (s * heads + Math.floor(n / copies)) * H;
      out.set(x.subarray(from, from + H), (n * S + s) * H);
    }
  return out;
}

/** @param {any} tf @param {{q: Float32Array, k: Float32Array, v: Float32Array}} inputs @param {number} T @param {number} S */
function tfjsRun(tf, { q, k, v }, T, S) {
  const tensors = {
    q: tf.tensor3d(byHead(q, T, N, 1), [N, T, H]),
    k: tf.tensor3d(byHead(k, S, K, N / K), [N, S, H]),
    v: tf.tensor3d(byHead(v, S, K, N / K), [N, S, H]),
    mask: tf.tensor2d(Float32Array.from({ length: T * S }, (_, i) => (i % S <= Math.floor(i / S) + S - T ? 0 : -1e9)), [T, S]),
  };
  const once = () =>
    tf.tidy(() => {
      const scores = tf.mul(tf.matMul(tensors.q, tensors.k, false, true), H ** -0.5);
      return tf.matMul(tf.softmax(tf.add(scores, tensors.mask)), tensors.v);
    });
  const run = async (/** @type {number} */ count) => {
    for (let i = 1; i < count; i++) once().dispose();
    const last = once();
    await last.data(); // tfjs has no other fence
    last.dispose();
  };
  const read = async () => {
    const out = once();
    const data = await out.data(); // [N,T,H]
    out.dispose();
    const o = new Float32Array(data.length);
    for (let n = 0; n < N; n++) for (let t = 0; t < T; t++) o.set(data.subarray((n * T + t) * H, (n * T + t + 1) * H), (t * N + n) * H);
    return o;
  };
  return { run, read, free: () => Object.values(tensors).forEach((/** @type {any} */ tensor) => tensor.dispose()) };
}

/** The operation that takes turns. @type {{run: import("/static/bench/timing.js").Run, runs: number, free: () => void} | undefined} */
let begun;

/**
 * Check one attention operation of a peer; where it is right it is ready for its turns.
 * @param {{kind: string, op: "attention" | "decode", T: number}} asked
 * @returns {Promise<{ms?: null, runs?: number, max_error: number}>} ms null: the result is wrong
 */
export async function begin({ kind, op, T: S }) {
  const T = op === "decode" ? 1 : S;
  const inputs = { q: numbers(1, T * N * H), k: numbers(2, S * K * H), v: numbers(3, S * K * H) };
  const peer = await open(kind);
  const { run, read, free } = kind === "tfjs" ? tfjsRun(peer, inputs, T, S) : await peer.attention(inputs, { T, S, N, K, H });
  try {
    /** @type {Float32Array} */
    let o = new Float32Array();
    const first = await timed(async () => (o = await read()));
    const max_error = judge(o, inputs, { T, S, N, K, H });
    if (!(max_error <= TOLERANCE)) {
      free();
      return { ms: null, max_error: Number.isFinite(max_error) ? max_error : 1e30 };
    }
    // as many as ours would get; after a run of seconds nobody need ask whether several fill a batch
    const runs = first > SLOW_MS ? leastRuns(op) : await runsInARow(run, leastRuns(op));
    begun = { run, runs, free };
    return { runs, max_error };
  } catch (error) {
    free();
    throw error;
  }
}

/** One reading. */
export async function turn() {
  if (!begun) throw new Error("nothing has begun");
  return reading(begun.run, begun.runs);
}

/** Free what it held. */
export async function end() {
  begun?.free();
  begun = undefined;
  return null;
}

/** @param {Float32Array} o @param {any} inputs @param {{T: number, S: number, N: number, K: number, H: number}} shape */
function judge(o, inputs, shape) {
  const worst = new Worst();
  for (const t of sampled(shape.T)) for (let n = 0; n < N; n++) worst.add(o, (t * N + n) * H, attentionRow(inputs, shape, t, n).o);
  return worst.share;
}
