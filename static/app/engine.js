// Choosing who computes: this device's GPU, or, where that cannot be, the server; and loading a model there.
import { requestDevice } from "../gpu/device.js";
import { Model } from "../gpu/runtime.js";
import { loadConfig, loadWeights, stopIds, weightBytes } from "./models.js";
import { ServerEngine } from "./server_engine.js";
import { dismiss, notify, store } from "./state.js";

/** Sentences for each reason why there is no WebGPU, each with the way out. */
const REASONS = {
  insecure: "WebGPU needs a secure page: open it over https or as http://localhost.",
  absent: "This browser has no WebGPU; recent Chrome, Edge, Safari and Firefox do.",
  "no-adapter": "The browser found no GPU that WebGPU may use; its GPU settings or driver may forbid it.",
  limit: "This GPU's limits are smaller than WebGPU's defaults, which the kernels need.",
  lost: "The GPU device was lost twice.",
};

let losses = 0;
/** @type {Promise<any> | null} */
let device = null;

/** The GPU device, asked for once; null where there is none (a notice says why). */
export async function gpu() {
  if (losses >= 2) return null;
  device ??= requestDevice();
  try {
    const found = await device;
    store.set({ deviceWords: found.words });
    return found;
  } catch (error) {
    withoutGpu(/** @type {any} */ (error));
    return null;
  }
}

/** @param {{reason?: keyof typeof REASONS, message: string}} problem */
function withoutGpu({ reason, message }) {
  const sentence = (reason && REASONS[reason]) || message;
  store.set({ deviceWords: "no WebGPU: computing on the server" });
  notify({ id: "gpu", kind: "warning", text: `No WebGPU here, so the server computes the same views. ${sentence}` });
}

/**
 * Tells the page when the device goes away: once, the picture stays and the model is loaded again; twice, the server
 * takes over.
 * @param {any} found the device
 * @param {() => void} reload
 */
export function watchLoss(found, reload) {
  found.lost.then((/** @type {{reason?: string, message?: string} | undefined} */ info) => {
    if (info?.reason === "destroyed") return;
    losses += 1;
    device = null;
    if (losses >= 2) {
      withoutGpu({ reason: "lost", message: "" });
      reload();
      return;
    }
    const text = "The GPU device was lost (a driver restart or a sleeping laptop does that). The picture stays.";
    const run = () => (dismiss("gpu"), reload());
    notify({ id: "gpu", kind: "warning", text, action: { label: "Load the model again", run } });
  });
}

/**
 * @param {import("./state.js").ModelEntry} entry
 * @param {{signal: AbortSignal, onProgress: (done_mb: number, total_mb: number) => void, reload: () => void}} options
 *   reload: called when the device was lost and the model must come back
 * @returns {Promise<import("./state.js").Engine>}
 */
export async function loadEngine(entry, { signal, onProgress, reload }) {
  const found = await gpu();
  if (!found) return ServerEngine.load(entry);
  const total = weightBytes(entry) / 1e6;
  onProgress(0, total);
  const config = await loadConfig(entry);
  const source = await loadWeights(entry, { onBytes: (done) => onProgress(done / 1e6, total), signal });
  const model = await Model.load(found, { config, source }, { signal });
  watchLoss(found, reload);
  return {
    kind: "webgpu",
    run: (ids, options) => model.run(ids, options),
    generate: (ids, sampling) => model.generate(ids, sampling),
    visible: (layer) => ({ window: model.config.windows[layer] ?? 0, sinks: 0 }),
    stopIds: stopIds(config),
    destroy: () => model.destroy(),
  };
}
