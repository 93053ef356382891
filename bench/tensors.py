"""Numbers that Python and JavaScript make alike, bit for bit, and that depend on nothing but a seed and a place.

    numbers(seed, count)[i] = (hash(i, seed) >> 8) / 2**22 - 2        in [-2, 2), exact in f32
    weights(seed, count)[i] = ((hash(i, seed) >> 24) - 128) / 1024    in [-1/8, 1/8), exact in f32, f16 and bf16
hash: the 32-bit finaliser "lowbias32" (Wellons 2018) of i * 0x9E3779B9 + seed * 0x85EBCA6B. Scores of heads of 64 such
numbers spread by 1.3, so a softmax over them is neither flat nor a single key. Matrices come in every format that
kernels read (weights/blocks.py describes the blocks); storing loses nothing. static/bench/tensors.js mirrors this.
"""

import numpy as np


def hashes(seed: int, count: int) -> np.ndarray:
    """uint32 [count]."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x7FEB352D)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


def numbers(seed: int, *shape: int) -> np.ndarray:
    """float32 of this shape, in [-2, 2)."""
    count = int(np.prod(shape, dtype=np.int64))
    return ((hashes(seed, count) >> np.uint32(8)).astype(np.float32) / np.float32(2**22) - np.float32(2)).reshape(shape)


def weights(seed: int, *shape: int) -> np.ndarray:
    """float32 of this shape, in [-1/8, 1/8), eight bits each."""
    count = int(np.prod(shape, dtype=np.int64))
    return (((hashes(seed, count) >> np.uint32(24)).astype(np.float32) - 128) / 1024).reshape(shape)


def matrix(seed: int, rows: int, width: int, form: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A weight matrix as float32 [rows,width], and the buffers that keep it: `weight`, and for blocks `scales`.

    Q8_0 keeps `weights`; Q4_1 keeps (q - 8) / 64 with the hash's first four bits as q.
    """
    if form == "q4_1":
        nibbles = (hashes(seed, rows * width) >> np.uint32(28)).reshape(rows, -1, 8)
        quants = (nibbles << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
        scales = np.tile(np.array([1 / 64, -8 / 64], np.float16), (rows, width // 32, 1))
        values = (nibbles.astype(np.float32) - 8) / 64
        return values.reshape(rows, width), {"weight": quants, "scales": scales}
    values = weights(seed, rows, width)
    if form == "q8_0":
        scales = np.full((rows, width // 32), 1 / 1024, np.float16)
        return values, {"weight": (values * 1024).astype(np.int8), "scales": scales}
    if form == "bf16":
        return values, {"weight": (values.view(np.uint32) >> 16).astype(np.uint16)}
    return values, {"weight": values.astype({"f32": np.float32, "f16": np.float16}[form])}


def sampled(count: int) -> np.ndarray:
    """Which of `count` rows are compared with float64: all up to 128; beyond, the first, the last and one of each 16.

    The place within the sixteen moves by 5 from one to the next, so that every lane of every tile size is visited.
    """
    if count <= 128:
        return np.arange(count)
    blocks = np.arange(count // 16)
    return np.unique(np.concatenate([[0, count - 1], blocks * 16 + blocks * 5 % 16]))
