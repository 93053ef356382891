// playground.bench: one operation of the kernels on the page's own device, by the modules of static/bench/.
import { Kernels } from "../gpu/kernels.js";
import { read } from "../bench/arguments.js";
import { BenchError } from "../bench/errors.js";
import { measure } from "../bench/timing.js";
import { gpu } from "./engine.js";

/** @type {WeakMap<import("../gpu/device.js").Device, Promise<Kernels>>} */
const kernelsOf = new WeakMap();

/** @param {import("./state.js").Engine} engine @param {unknown} asked */
export async function bench(engine, asked) {
  read(asked); // a wrong question is refused before anything is fetched
  const device = engine.kind === "webgpu" ? await gpu() : null;
  if (!device) throw new BenchError("unavailable", "The server computes here, so there are no kernels to time.");
  let kernels = kernelsOf.get(device);
  if (!kernels) {
    kernels = Kernels.load(device);
    kernelsOf.set(device, kernels);
    kernels.catch(() => kernelsOf.delete(device));
  }
  return measure(await kernels, asked);
}
