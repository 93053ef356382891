/**
 * Images that kernels write and read as texels of four f32, within one run: attention's queries, keys and values. Mirrors
 * webgpu/images.py, where it is explained.
 * @module
 */
import { MAX_IMAGE, NEAREST } from "./dispatch.js";
import { MEMORY } from "./scopes.js";

/** @type {GPUTextureFormat} */
const IMAGE_FORMAT = "rgba32float";
/** How a binding is declared in a bind group's layout, by the manifest's word for it. @type {Record<string, object>} */
export const IMAGE_LAYOUTS = {
  texels: { texture: { sampleType: "unfilterable-float" } },
  nearest: { sampler: { type: "non-filtering" } },
  write_texels: { storageTexture: { format: IMAGE_FORMAT, access: "write-only" } },
};

/** The images of one device; what is in them is left from whatever ran before. */
export class Images {
  /** @param {GPUDevice} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** @type {Map<string, GPUTexture>} */
    this.byName = new Map();
    this.nearest = gpu.createSampler({ label: NEAREST });
  }

  /**
   * What to bind for "name:width*height", an image of at least that size, or for "nearest".
   * @param {string} target @returns {GPUTextureView | GPUSampler}
   */
  resource(target) {
    if (target === NEAREST) return this.nearest;
    const [name, size] = target.split(":");
    const [width, height] = size.split("*").map(Number);
    let image = this.byName.get(name);
    if (!image || image.width < width || image.height < height) {
      const sides = image ? [grown(width, image.width), grown(height, image.height)] : [width, height];
      image = this.#make(name, sides);
    }
    return image.createView();
  }

  /**
   * An image that the device refuses fails the call that binds it, as a buffer does, and is not kept for the next.
   * @param {string} name @param {number[]} size
   */
  #make(name, size) {
    for (const filter of MEMORY) this.gpu.pushErrorScope(filter);
    const image = this.gpu.createTexture({ label: name, size, format: IMAGE_FORMAT, usage: 0x4 | 0x8 }); // TEXTURE | STORAGE
    this.byName.set(name, image);
    Promise.all(MEMORY.map(() => this.gpu.popErrorScope())).then(
      (errors) => errors.some((error) => error) && this.byName.get(name) === image && this.byName.delete(name),
      () => {}, // the device is lost
    );
    return image;
  }
}

/**
 * A side of the image that replaces one: as it was, or at least twice that, so that few are made as texts grow.
 * @param {number} needed @param {number} there
 */
function grown(needed, there) {
  return needed <= there ? there : Math.max(needed, Math.min(2 * there, MAX_IMAGE));
}
