"""Matrices kept as blocks of 32 weights, exactly the values of the file they come from; about 5 or 8.5 bits a weight.

    Q4_1   w = d * q + m, q in 0 .. 15      NAME.q4_1    U32 [rows, width/8]: element i of a row in bits 4 (i mod 8) ..
                                            NAME.scales  F16 [rows, width/32, 2]: d and m of each block
    Q8_0   w = d * q, q in -128 .. 127      NAME.q8_0    I8 [rows, width]
                                            NAME.scales  F16 [rows, width/32]: d of each block
A row is whole blocks, in order, and its words are aligned, so that a kernel reads eight weights with one word. The two
tensors of a pair stand for one matrix NAME [rows, width]. `static/lib/blocks.js` has the same rules in the same order.
Source: ggml, ggml-quants (block_q4_1, block_q8_0); there a block's scale stands before its quants, which is unaligned.
"""

import re
from dataclasses import dataclass

import numpy as np

from weights import errors
from weights.errors import quoted
from weights.safetensors_header import TensorInfo

BLOCK = 32  # weights that share a scale
_QUANTS = re.compile(r"(.+)\.(q[0-9]+_[0-9a-z]+)")
_SCALES = ".scales"


@dataclass(frozen=True)
class Kind:
    """How a block type is stored: its dtype in files, weights per stored element, numbers per block in `scales`."""

    name: str
    dtype: str
    packed: int
    numbers: tuple[int, ...]


KINDS = {"q4_1": Kind("Q4_1", "U32", 8, (2,)), "q8_0": Kind("Q8_0", "I8", 1, ())}
BLOCK_TYPES = tuple(kind.name for kind in KINDS.values())


@dataclass(frozen=True)
class Weight:
    """A tensor of a model: its dtype (F32, F16, BF16 or a block type), shape, and the stored tensors it is made of."""

    dtype: str
    shape: tuple[int, ...]
    stored: str
    scales: str | None = None


@dataclass(frozen=True)
class Blocks:
    """A matrix as it is stored. quants: uint32 [rows, width/8] or int8 [rows, width]; scales: float16, see above."""

    dtype: str
    quants: np.ndarray
    scales: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width) of the matrix."""
        return self.quants.shape[0], self.quants.shape[1] * (8 if self.dtype == "Q4_1" else 1)

    def values(self) -> np.ndarray:
        """The matrix [rows, width] in float64, exact."""
        rows, width = self.shape
        if self.dtype == "Q8_0":
            quants = self.quants.reshape(rows, -1, BLOCK).astype(np.float64)
            return (self.scales.astype(np.float64)[..., None] * quants).reshape(rows, width)
        nibbles = self.quants[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
        d, m = np.moveaxis(self.scales.astype(np.float64), -1, 0)
        return (d[..., None] * nibbles.reshape(rows, -1, BLOCK) + m[..., None]).reshape(rows, width)


def fold(tensors: dict[str, TensorInfo]) -> dict[str, Weight]:
    """Put the two tensors of each block matrix together; others stay as they are, in the order of the file.

    Raises BlockKind, BlockTwice, BlockPair, BlockShape.
    """
    weights = {}
    for name, tensor in tensors.items():
        if found := _QUANTS.fullmatch(name):
            weights[found[1]] = _pair(found[1], found[2], tensors)
        elif name.endswith(_SCALES):
            if not any(f"{name.removesuffix(_SCALES)}.{kind}" in tensors for kind in KINDS):
                raise errors.BlockPair(
                    f"Tensor {quoted(name)} holds scales of no block matrix. Convert the file again."
                )
        else:
            weights[name] = Weight(tensor.dtype, tensor.shape, name)
    return weights


def _pair(base: str, suffix: str, tensors: dict[str, TensorInfo]) -> Weight:
    """The matrix `base` of quants `base.suffix` and `base.scales`, checked."""
    name, scales_name = f"{base}.{suffix}", base + _SCALES
    if suffix not in KINDS:
        raise errors.BlockKind(f"Tensor {quoted(name)} holds blocks of type {suffix}; allowed: {', '.join(KINDS)}.")
    if base in tensors or sum(f"{base}.{kind}" in tensors for kind in KINDS) > 1:
        raise errors.BlockTwice(f"Matrix {quoted(base)} is stored in more than one way; keep one of them.")
    if scales_name not in tensors:
        raise errors.BlockPair(f"Tensor {quoted(name)} has no {quoted(scales_name)} beside it. Convert the file again.")
    kind, quants, scales = KINDS[suffix], tensors[name], tensors[scales_name]
    rows, width = quants.shape[0] if quants.shape else 0, quants.shape[-1] * kind.packed if quants.shape else 0
    if quants.dtype != kind.dtype or len(quants.shape) != 2 or width % BLOCK:
        raise errors.BlockShape(
            f"Tensor {quoted(name)} is {quants.dtype} {list(quants.shape)}; {suffix} is {kind.dtype} of two sizes, "
            f"its rows whole blocks of {BLOCK} weights."
        )
    wanted = [rows, width // BLOCK, *kind.numbers]
    if scales.dtype != "F16" or list(scales.shape) != wanted:
        raise errors.BlockShape(
            f"Tensor {quoted(scales_name)} is {scales.dtype} {list(scales.shape)}; {quoted(name)} needs F16 {wanted}."
        )
    return Weight(kind.name, (rows, width), name, scales_name)
