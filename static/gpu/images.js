/**
 * Images that kernels write and read as texels of four f32, within one run: attention's keys and values. Mirrors
 * webgpu/images.py, where it is explained.
 * @module
 */
import { MAX_IMAGE } from "./dispatch.js";

/** @type {GPUTextureFormat} */
export const IMAGE_FORMAT = "rgba32float";

/** The images of one device; what is in them is left from whatever ran before. */
export class Images {
  /** @param {GPUDevice} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** @type {Map<string, GPUTexture>} */
    this.byName = new Map();
  }

  /** What to bind for "name:width*height": an image of at least that size. @param {string} target */
  view(target) {
    const [name, size] = target.split(":");
    const [width, height] = size.split("*").map(Number);
    let image = this.byName.get(name);
    if (!image || image.width < width || image.height < height) {
      const sides = image ? [grown(width, image.width), grown(height, image.height)] : [width, height];
      image = this.gpu.createTexture({ label: name, size: sides, format: IMAGE_FORMAT, usage: 0x4 | 0x8 }); // TEXTURE | STORAGE
      this.byName.set(name, image);
    }
    return image.createView();
  }
}

/**
 * A side of the image that replaces one: as it was, or at least twice that, so that few are made as texts grow.
 * @param {number} needed @param {number} there
 */
function grown(needed, there) {
  return needed <= there ? there : Math.max(needed, Math.min(2 * there, MAX_IMAGE));
}
