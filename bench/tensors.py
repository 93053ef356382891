"""Numbers that Python and JavaScript make alike, bit for bit, and that depend on nothing but a seed and a place.

    numbers(seed, count)[i] = (hash(i, seed) >> 8) / 2**22 - 2        in [-2, 2), exact in f32
    weights(seed, count)[i] = ((hash(i, seed) >> 24) - 128) / 1024    in [-1/8, 1/8), exact in f32, f16 and bf16
hash: the 32-bit finaliser "lowbias32" (Wellons 2018) of i * 0x9E3779B9 + seed * 0x85EBCA6B. Scores of heads of 64 such
numbers spread by 1.3, so a softmax over them is neither flat nor a single key. static/bench/tensors.js mirrors this.
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


def sampled(count: int) -> np.ndarray:
    """Which of `count` rows are compared with float64: all up to 128; beyond, the first, the last and one of each 16.

    The place within the sixteen moves by 5 from one to the next, so that every lane of every tile size is visited.
    """
    if count <= 128:
        return np.arange(count)
    blocks = np.arange(count // 16)
    return np.unique(np.concatenate([[0, count - 1], blocks * 16 + blocks * 5 % 16]))
