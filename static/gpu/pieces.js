/**
 * Where a tensor's rows lie: in one buffer, in several, or behind those of other tensors in a buffer that they share.
 *
 * Mirrors webgpu/pieces.py, where it is explained what is stacked and what is not; a test holds both to the same layout.
 * @module
 */
import { NONE } from "./dispatch.js";
import { slices } from "./slices.js";

/**
 * Rows row0 .. row0+rows-1 of a tensor, from row `at` of a buffer of `bytes` on, and the scales of its blocks likewise ("none"
 * without).
 * @typedef {{buffer: string, row0: number, rows: number, bytes: number, scales: string, scale_bytes: number, at: number}} Piece
 */
/** @typedef {{shape: number[], fmt: number, pieces: Piece[]}} Placed a tensor on the GPU */
/** @typedef {Map<string, Placed>} Layout */
/** @typedef {{weight: string, scales: string, rows: number, fmt: number}} Run rows that one product takes, as it binds them */

/** By format: bytes of 32 weights of a row, and of the scales beside them. @type {[weights: number, scales: number][]} */
const BLOCK_BYTES = [[128, 0], [64, 0], [64, 0], [16, 4], [32, 2]];
const BINDING_STEP = 256; // bytes; WebGPU's default minStorageBufferOffsetAlignment
/** @type {Record<string, string[]>} */
export const STACKS = {
  "self_attn.qkv_proj": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
  "mlp.gate_up_proj": ["mlp.gate_proj", "mlp.up_proj"],
  "self_attn.qk_norm": ["self_attn.q_norm", "self_attn.k_norm"],
};

/**
 * Move what STACKS names together into shared buffers of at most `mostBytes`, where they fit.
 * @param {Layout} placed @param {number} layers @param {number} mostBytes
 */
export function stack(placed, layers, mostBytes) {
  for (let layer = 0; layer < layers; layer++) {
    for (const [together, parts] of Object.entries(STACKS)) {
      const at = `model.layers.${layer}.`;
      const kinds = [".weight", ".bias"].map((kind) => {
        const names = parts.map((part) => at + part + kind).filter((name) => placed.has(name));
        return { kind, tensors: new Map(names.map((name) => [name, /** @type {Placed} */ (placed.get(name))])) };
      });
      if (!fits(kinds.flatMap(({ tensors }) => [...tensors.values()]), mostBytes)) continue;
      for (const { kind, tensors } of kinds) share(placed, at + together + kind, tensors);
    }
  }
  return placed;
}

/**
 * Whether matrices, and their biases, can lie in one buffer where each can be bound alone; vectors always.
 * @param {Placed[]} tensors @param {number} mostBytes
 */
function fits(tensors, mostBytes) {
  const matrices = tensors.filter(({ shape }) => shape.length === 2);
  if (!matrices.length) return true;
  const whole = tensors.every(({ pieces }) => pieces.length === 1) && matrices.every(({ fmt }) => fmt === matrices[0].fmt);
  const ends = tensors.flatMap((tensor) => rowBytesOf(tensor).map((wide) => tensor.shape[0] * wide));
  const small = matrices.reduce((sum, { pieces }) => sum + pieces[0].bytes, 0) <= mostBytes;
  return whole && small && ends.every((end) => end % BINDING_STEP === 0);
}

/**
 * Put tensors, each of one piece, one behind the other into `buffer`.
 * @param {Layout} placed @param {string} buffer @param {Map<string, Placed>} tensors
 */
function share(placed, buffer, tensors) {
  const all = [...tensors.values()].reduce((sum, { shape }) => sum + shape[0], 0);
  let at = 0;
  for (const [name, tensor] of tensors) {
    const { shape, fmt } = tensor;
    const [wide, scalesWide] = rowBytesOf(tensor);
    const scales = scalesWide ? `${buffer}~scales` : NONE;
    const scale_bytes = scalesWide ? padded(all * scalesWide) : 0;
    placed.set(name, { shape, fmt, pieces: [{ buffer, row0: 0, rows: shape[0], bytes: padded(all * wide), scales, scale_bytes, at }] });
    at += shape[0];
  }
}

/**
 * The rows of tensors in order, those behind one another in a buffer at once, in slices of at most `mostRows` (slices.js).
 * @param {Placed[]} tensors @param {number} mostRows @param {number} [unit] @returns {Run[]}
 */
export function runs(tensors, mostRows, unit) {
  /** @type {{tensor: Placed, piece: Piece}[]} */
  const found = [];
  for (const tensor of tensors) {
    for (const piece of tensor.pieces) {
      const last = found[found.length - 1]?.piece;
      if (last && last.buffer === piece.buffer) found[found.length - 1] = { tensor, piece: { ...last, rows: last.rows + piece.rows } };
      else found.push({ tensor, piece });
    }
  }
  return found.flatMap(({ tensor, piece: { buffer, scales, at, rows: all, bytes, scale_bytes } }) => {
    const [wide, scalesWide] = rowBytesOf(tensor);
    return slices(all, mostRows, unit).map(([row0, rows]) => {
      const weight = bound(buffer, at + row0, rows, wide, bytes);
      return { weight, scales: bound(scales, at + row0, rows, scalesWide, scale_bytes), rows, fmt: tensor.fmt };
    });
  });
}

/**
 * The binding of some rows of a buffer.
 * @param {string} buffer @param {number} at @param {number} rows @param {number} wide bytes of a row @param {number} whole
 */
function bound(buffer, at, rows, wide, whole) {
  const size = padded(rows * wide);
  return buffer === NONE || size === whole ? buffer : `${buffer}@${at * wide}+${size}`;
}

/** Bytes of a row and of its scales; a row of a vector is one f32. @param {Placed} placed @returns {[number, number]} */
export function rowBytesOf({ shape, fmt }) {
  return shape.length === 2 ? rowBytes(fmt, shape[1]) : [4, 0];
}

/**
 * Bytes of a row of `width` weights in a storage format, and of its scales.
 * @param {number} fmt @param {number} width @returns {[weights: number, scales: number]}
 */
export function rowBytes(fmt, width) {
  const [weights, scales] = BLOCK_BYTES[fmt];
  return [Math.floor((width * weights) / 32), Math.floor((width * scales) / 32)];
}

/** Bytes rounded up to 16: kernels read whole vec4s. @param {number} countBytes */
export function padded(countBytes) {
  return Math.max(16, Math.ceil(countBytes / 16) * 16);
}
