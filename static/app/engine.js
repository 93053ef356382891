// Choosing who computes: this device's GPU, or, where that cannot be, the server; and loading a model there.
import { requestDevice } from "../gpu/device.js";
import { Model } from "../gpu/runtime.js";
import { firstDevice, guessTokens } from "./early.js";
import { loadConfig, loadWeights, stopIds, weightBytes } from "./models.js";
import { ServerEngine } from "./server_engine.js";
import { dismiss, notify, store } from "./state.js";
import { tune } from "./tune.js";

let losses = 0;
/** @typedef {import("../gpu/device.js").Device} Device */
/** @type {Promise<Device> | null} */
let device = firstDevice;

/** The GPU device, asked for once; null where there is none (a notice says why, the top bar who computes instead). */
export async function gpu() {
  if (losses >= 2) return null;
  device ??= requestDevice();
  try {
    const found = await device;
    store.set({ deviceWords: `${found.words} · WebGPU${found.software ? ", expect seconds" : ""}` });
    return found;
  } catch (error) {
    withoutGpu(/** @type {Error} */ (error).message);
    return null;
  }
}

/** @param {string} why a sentence with the way out */
function withoutGpu(why) {
  store.set({ deviceWords: "no WebGPU: computing on the server" });
  notify({ id: "gpu", kind: "warning", text: `No WebGPU here, so the server computes the same views. ${why}` });
}

/** @type {WeakSet<Device>} */
const watched = new WeakSet();

/**
 * Tells the page when the device goes away: once, the picture stays and one button loads the model again; twice, the
 * server takes over.
 * @param {Device} found
 * @param {() => void} reload
 */
function watchLoss(found, reload) {
  reloadNow = reload;
  if (watched.has(found)) return;
  watched.add(found);
  void found.lost.then(() => {
    losses += 1;
    device = null;
    if (losses >= 2) {
      withoutGpu("The GPU device was lost twice; reloading the page tries it again.");
      return reloadNow();
    }
    const text = "The GPU device was lost (a driver restart or a sleeping laptop does that). The picture stays.";
    const run = () => (dismiss("gpu"), reloadNow());
    notify({ id: "gpu", kind: "warning", text, action: { label: "Load the model again", run } });
  });
}

/** Loads the model that is chosen at the time. */
let reloadNow = () => {};

/**
 * @param {import("./state.js").ModelEntry} entry
 * @param {{signal: AbortSignal, onProgress: (done_bytes: number, total_bytes: number) => void, reload: () => void}} options
 *   reload: called when the device was lost and the model must come back
 * @returns {Promise<import("./state.js").Engine>}
 */
export async function loadEngine(entry, { signal, onProgress, reload }) {
  const found = await gpu();
  if (!found) return ServerEngine.load(entry);
  const total = weightBytes(entry);
  onProgress(0, total);
  const config = await loadConfig(entry);
  const source = await loadWeights(entry, { onBytes: (done) => onProgress(done, total), signal });
  const tokens = store.state.typed.length || guessTokens(store.state.prompt);
  const model = await Model.load(found, { config, source }, { signal, tokens }).finally(() => source.close());
  watchLoss(found, reload);
  const drawn = tune(model);
  return {
    kind: "webgpu",
    run: async (ids, options) => {
      const trace = await model.run(ids, options);
      drawn();
      return trace;
    },
    generate: (ids, sampling) => model.generate(ids, sampling),
    visible: (layer) => ({ window: model.config.windows[layer] ?? 0, sinks: 0 }),
    stopIds: stopIds(config),
    warmAll: (idle) => model.warmAll(idle),
    destroy: () => model.destroy(),
  };
}
