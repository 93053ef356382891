"""What a dispatch is, and the sizes every operation shares. Nothing here touches a device.

Notation as everywhere: T queries, S keys, D width, N query heads, K key/value heads, H head dimension, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE = "none"
MAX_GROUPS = 65_535  # WebGPU: workgroups per dimension
MAX_TURNS = 32_768  # loop turns per invocation; llvmpipe silently stops at 65,535
MAX_HEAD_DIM = 256
MAX_IMAGE = 8192  # WebGPU: texels of an image a dimension
NEAREST = "nearest"  # bound where a kernel reads images through a sampler


class UnsupportedShape(ValueError):
    """A size no kernel takes; the message names it and what is allowed."""


@dataclass(frozen=True)
class Dispatch:
    """One kernel call: overrides and parameters are numbers, bindings map the kernel's names to buffer names.

    An image is bound as "name:width*height", the texels needed: the host makes it (webgpu/kernels.py).
    """

    kernel: str
    overrides: dict
    params: dict
    grid: tuple[int, int, int]
    bindings: dict


def fold(groups: int) -> tuple[int, int, int]:
    """Fold a count of workgroups into two dimensions of at most 65,535."""
    x = max(1, min(groups, MAX_GROUPS))
    return (x, max(1, ceil_div(groups, x)), 1)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def head_dim(H: int) -> int:
    """H, if the kernels take it."""
    if H % 4 or not 4 <= H <= MAX_HEAD_DIM:
        raise UnsupportedShape(f"head dimension is {H}; the kernels take multiples of 4 up to {MAX_HEAD_DIM}.")
    return H


def check_groups(N: int, K: int) -> None:
    """Refuse query heads that cannot share their key/value heads evenly."""
    if K < 1 or N % K:
        raise UnsupportedShape(f"{N} query heads cannot share {K} key/value heads; N must be a multiple of K.")
