/**
 * onnxruntime-web: sessions, tensors that stay on the device, fences.
 * @module
 */

const DIST = "/peers/node_modules/onnxruntime-web/dist/";

/** A WebGPU device without subgroups, with what else the adapter has. */
async function withoutSubgroups() {
  const adapter = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter());
  const features = [...adapter.features].filter((name) => !name.includes("subgroup"));
  const limits = /** @type {Record<string, number>} */ ({});
  for (const name of ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxStorageBuffersPerShaderStage", "maxComputeWorkgroupsPerDimension"])
    limits[name] = /** @type {any} */ (adapter.limits)[name];
  return adapter.requestDevice({ requiredFeatures: /** @type {GPUFeatureName[]} */ (features), requiredLimits: limits });
}

/** @param {string} kind @returns {Promise<any>} */
export async function openOrt(kind) {
  const wasm = kind === "ort-wasm";
  const ort = await import(DIST + (wasm ? "ort.wasm.min.mjs" : "ort.webgpu.min.mjs"));
  ort.env.wasm.wasmPaths = DIST;
  ort.env.wasm.numThreads = wasm ? 2 : 1;
  ort.env.logLevel = "error";
  const device = kind === "ort-nosubgroups" ? await withoutSubgroups() : null;
  return new Ort(ort, device ? { name: "webgpu", device } : wasm ? "wasm" : "webgpu", wasm, device);
}

class Ort {
  /** @param {any} ort @param {any} provider @param {boolean} wasm @param {GPUDevice | null} own */
  constructor(ort, provider, wasm, own) {
    this.own = own;
    this.ort = ort;
    this.provider = provider;
    this.wasm = wasm;
    /** @type {Map<string, Promise<any>>} */
    this.sessions = new Map();
  }

  /** @param {string} name of a model below /peers/models/ */
  session(name) {
    let made = this.sessions.get(name);
    if (!made) {
      const location = this.wasm ? "cpu" : "gpu-buffer";
      made = fetch(`/peers/models/${name}.onnx`)
        .then((answer) => answer.arrayBuffer())
        .then((bytes) => this.ort.InferenceSession.create(bytes, { executionProviders: [this.provider], preferredOutputLocation: location }));
      this.sessions.set(name, made);
    }
    return made;
  }

  /** The device that sessions run on; there after the first session. */
  async device() {
    return this.own ?? (await this.ort.env.webgpu.device);
  }

  /** Resolves when the device has done everything. */
  async fence() {
    if (!this.wasm) await (await this.device()).queue.onSubmittedWorkDone();
  }

  /** A tensor on the device of the session. @param {Float32Array} data @param {number[]} dims */
  async tensor(data, dims) {
    if (this.wasm || data.length === 0) return new this.ort.Tensor("float32", data, dims);
    const device = await this.device();
    const gpuBuffer = device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage: 0x80 | 0x4 | 0x8 });
    device.queue.writeBuffer(gpuBuffer, 0, data);
    return this.ort.Tensor.fromGpuBuffer(gpuBuffer, { dataType: "float32", dims, dispose: () => gpuBuffer.destroy() });
  }

  /** @param {number} number @param {number[]} dims */
  whole(number, dims) {
    return new this.ort.Tensor("int32", Int32Array.of(number), dims);
  }

  /**
   * GroupQueryAttention on these inputs: run(R), read(), free().
   * @param {{q: Float32Array, k: Float32Array, v: Float32Array}} inputs
   * @param {{T: number, S: number, N: number, K: number, H: number}} shape
   */
  async attention({ q, k, v }, { T, S, N, K, H }) {
    const session = await this.session(T === 1 ? "decode" : "attention");
    const past = S - T;
    /** @type {Record<string, any>} */
    const feeds = { seqlens: this.whole(S - 1, [1]), total: this.whole(S, []) };
    feeds.q = await this.tensor(q, [1, T, N * H]);
    feeds.k = await this.tensor(k.slice(past * K * H), [1, T, K * H]);
    feeds.v = await this.tensor(v.slice(past * K * H), [1, T, K * H]);
    if (T === 1) {
      feeds.past_key = await this.tensor(byHead(k, past, K, H), [1, K, past, H]);
      feeds.past_value = await this.tensor(byHead(v, past, K, H), [1, K, past, H]);
    }
    const once = () => session.run(feeds);
    const dispose = (/** @type {any} */ outputs) => Object.values(outputs).forEach((/** @type {any} */ out) => out.dispose());
    return {
      run: async (/** @type {number} */ count) => {
        for (let i = 0; i < count; i++) dispose(await once());
        await this.fence();
      },
      read: async () => {
        const outputs = await once();
        const found = Float32Array.from(await outputs.o.getData());
        dispose(outputs);
        return found;
      },
      free: () => dispose(feeds),
    };
  }
}

/** Rows [S,K,H] to a cache [K,S,H]. @param {Float32Array} x @param {number} S @param {number} K @param {number} H */
function byHead(x, S, K, H) {
  const out = new Float32Array(K * S * H);
  for (let head = 0; head < K; head++)
    for (let s = 0; s < S; s++) out.set(x.subarray((s * K + head) * H, (s * K + head + 1) * H), (head * S + s) * H);
  return out;
}
