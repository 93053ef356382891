/**
 * The GPU as the playground asks for it: default limits, one reason per failure, words for people.
 *
 * Two optional features are taken where the adapter has them, "subgroups" (quad operations too) and "f16": some kernels
 * have a variant that needs one (variants.js). Nothing assumes a lane count; `lanes` is what the adapter reports.
 * Mirrors webgpu/device.py. Needs no DOM: runs in a page and in a worker.
 * @module
 */

/** @typedef {"insecure" | "absent" | "no-adapter" | "limit" | "lost"} Reason */

/** WebGPU cannot be used; `reason` is one word, the message a sentence with the way out. */
export class NoWebGPU extends Error {
  /** @param {Reason} reason @param {string} message */
  constructor(reason, message) {
    super(message);
    this.name = "NoWebGPU";
    this.reason = reason;
    this.code = `webgpu-${reason}`;
  }
}

/** WebGPU's default limits that a compute kernel can meet. @type {Record<string, number>} */
export const DEFAULT_LIMITS = {
  maxBufferSize: 268_435_456,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupStorageSize: 16_384,
  maxComputeWorkgroupsPerDimension: 65_535,
  maxStorageBufferBindingSize: 134_217_728,
  maxStorageBuffersPerShaderStage: 8,
  maxUniformBufferBindingSize: 65_536,
};

/**
 * An open device: `gpu` the GPUDevice, `info` its adapter's description, `words` a name for people, `software` whether a
 * CPU stands in for a GPU, `features` those of FEATURES that it has,
 * `lanes` the fewest and most invocations of a subgroup ([0, 0] without), `lost` a promise of NoWebGPU("lost") that never
 * rejects.
 * @typedef {{gpu: GPUDevice, info: {vendor: string, architecture: string, device: string, description: string},
 *   words: string, software: boolean, features: Set<string>, lanes: [number, number], lost: Promise<NoWebGPU>}} Device
 */

/** Our name of a feature -> WebGPU's. @type {Record<string, GPUFeatureName>} */
const FEATURES = { subgroups: "subgroups", f16: "shader-f16" };

const LOSS_NOTICE_MS = 100;

const SOFTWARE = [
  ["swiftshader", "SwiftShader"],
  ["llvmpipe", "llvmpipe"],
  ["basic render", "Microsoft Basic Render Driver"],
];

/**
 * Name an adapter for people: `SwiftShader (a CPU stands in for a GPU)`, or the name of the card.
 * @param {{vendor: string, architecture: string, device: string, description: string}} info
 */
export function describe(info) {
  const text = `${info.vendor} ${info.architecture} ${info.device} ${info.description}`.toLowerCase();
  for (const [word, name] of SOFTWARE) {
    if (text.includes(word)) return { words: `${name} (a CPU stands in for a GPU)`, software: true };
  }
  const words = info.description || [info.vendor, info.architecture].filter(Boolean).join(" ") || "an unnamed adapter";
  return { words, software: false };
}

/** Open the default adapter with WebGPU's default limits. Throws NoWebGPU. @returns {Promise<Device>} */
export async function requestDevice() {
  if (globalThis.isSecureContext === false) {
    throw new NoWebGPU("insecure", "Browsers offer WebGPU only on https or localhost: open the page as http://localhost.");
  }
  const gpu = /** @type {GPU | undefined} */ (globalThis.navigator?.gpu);
  if (!gpu) throw new NoWebGPU("absent", "This browser has no WebGPU: use a current Chrome, Edge, Firefox or Safari.");
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) {
    const advice = "update the driver, or turn on hardware acceleration";
    throw new NoWebGPU("no-adapter", `The browser found no graphics adapter it trusts: ${advice}.`);
  }
  const { words, software } = describe(adapter.info);
  const limits = /** @type {Record<string, number>} */ (/** @type {unknown} */ (adapter.limits));
  for (const [name, wanted] of Object.entries(DEFAULT_LIMITS)) {
    if (limits[name] < wanted) {
      throw new NoWebGPU("limit", `${words} offers ${name} = ${limits[name]}; the kernels need WebGPU's default of ${wanted}.`);
    }
  }
  const features = new Set(Object.keys(FEATURES).filter((name) => adapter.features.has(FEATURES[name])));
  const requiredFeatures = [...features].map((name) => FEATURES[name]);
  const device = await adapter.requestDevice({ requiredFeatures, requiredLimits: DEFAULT_LIMITS }).catch((/** @type {unknown} */ error) => {
    const why = /** @type {Error} */ (error).message;
    throw new NoWebGPU("no-adapter", `${words} would not open (${why}): close other programs that use it.`);
  });
  const { vendor, architecture, device: name, description, subgroupMinSize = 0, subgroupMaxSize = 0 } = adapter.info;
  /** @type {[number, number]} */
  const lanes = features.has("subgroups") ? [subgroupMinSize, subgroupMaxSize] : [0, 0];
  const lost = device.lost.then(
    ({ message }) => new NoWebGPU("lost", `The connection to ${words} was lost (${message || "no reason given"}): try again.`),
  );
  return { gpu: device, info: { vendor, architecture, device: name, description }, words, software, features, lanes, lost };
}

/** @typedef {{error: Error | null, waiting: Set<(error: Error) => void>}} Loss */
/** @type {WeakMap<Device, Loss>} */
const losses = new WeakMap();

/**
 * Who waits on a device. Whatever is chained to `lost` stays there for as long as the device lives, so one chain serves all.
 * @param {Device} device @returns {Loss}
 */
function lossOf(device) {
  const known = losses.get(device);
  if (known) return known;
  /** @type {Loss} */
  const loss = { error: null, waiting: new Set() };
  losses.set(device, loss);
  void device.lost.then((error) => {
    loss.error = error;
    for (const fail of loss.waiting) fail(error);
  });
  return loss;
}

/**
 * The result of GPU work, or a rejection with NoWebGPU("lost") as soon as the device is gone.
 * @template T @param {Device} device @param {Promise<T>} work @returns {Promise<T>}
 */
export async function orLost(device, work) {
  const loss = lossOf(device);
  /** @type {(error: Error) => void} */
  let fail = () => {};
  /** @type {Promise<never>} */
  const gone = new Promise((_, reject) => (fail = reject));
  if (loss.error) fail(loss.error);
  loss.waiting.add(fail);
  try {
    return await Promise.race([work, gone]);
  } catch (error) {
    // A browser may fail the work first and announce the loss just after.
    const soon = new Promise((resolve) => setTimeout(resolve, LOSS_NOTICE_MS, null));
    throw (await Promise.race([device.lost, soon])) ?? error;
  } finally {
    loss.waiting.delete(fail);
  }
}
