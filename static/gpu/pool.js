/**
 * Buffers that are free for the next who needs one of that size: a prompt and its questions ask for the same sizes again and
 * again. Holds at most HELD_BYTES, the longest unused go first. Their contents are whatever was left in them. Mirrors
 * webgpu/pool.py.
 * @module
 */

const HELD_BYTES = 64 * 2 ** 20;

/** Free buffers of one device. */
export class Pool {
  /** @param {number} most bytes to hold */
  constructor(most = HELD_BYTES) {
    this.most = most;
    this.heldBytes = 0;
    /** @type {Set<GPUBuffer>} in the order in which they became free */
    this.free = new Set();
  }

  /** A free buffer of exactly this size, if there is one. @param {number} bytes @returns {GPUBuffer | undefined} */
  take(bytes) {
    for (const buffer of this.free) {
      if (buffer.size !== bytes) continue;
      this.free.delete(buffer);
      this.heldBytes -= bytes;
      return buffer;
    }
    return undefined;
  }

  /** Keep a buffer that nobody uses any more, or free it. @param {GPUBuffer} buffer */
  give(buffer) {
    this.free.add(buffer);
    this.heldBytes += buffer.size;
    for (const oldest of this.free) {
      if (this.heldBytes <= this.most) return;
      this.free.delete(oldest);
      this.heldBytes -= oldest.size;
      oldest.destroy();
    }
  }
}
