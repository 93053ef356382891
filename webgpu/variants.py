"""The ways to compute one operation: the same result, written for different devices.

The first variant of an operation runs everywhere; a later one may be faster where the device has what it needs, and
"plain" compiles in a moment, for a short text that would otherwise wait for the compiler. `ops` functions take the name
(None: the first). A variant that does not serve a shape leaves it to the first. static/gpu/variants.js has the same
table, and a test holds both equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


class UnknownVariant(ValueError):
    """No variant of that name; the message lists those there are."""


@dataclass(frozen=True)
class Variant:
    """needs: features of the device; serves: for a size's letter the values it takes (a letter not named: all).

    tried: on which devices a trial times it: "everywhere", on "gpus", or "never";
    without: features with which another variant is the better of the two, so that a trial passes this one over.
    """

    name: str
    needs: tuple[str, ...] = ()
    serves: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tried: str = "everywhere"
    without: tuple[str, ...] = ()


UP_TO_128 = tuple(range(4, 129, 4))
SHORT = tuple(range(1, 257))  # keys: each product of q and k is made H / 4 times

VARIANTS: dict[str, tuple[Variant, ...]] = {
    # many queries, causal, grouped; in registers each load of a key or value meets eight rows; texels are loads of four
    # numbers at once, of images, which quads share among four invocations as well; a tile of
    # keys in workgroup memory is for GPUs; keys rounded to f16 may put patterns off by more than Verify allows: by name
    "attention": (
        Variant("fa2"),
        Variant("registers", (), {"H": UP_TO_128}, without=("subgroups",)),
        Variant("texels", ("subgroups",), {"H": UP_TO_128}),
        Variant("tile", (), {"H": UP_TO_128}, tried="gpus"),
        Variant("tile_f16", ("f16",), {"H": UP_TO_128}, tried="never"),
        Variant("plain", (), {"S": SHORT}, tried="never"),
    ),
    # windows of the pattern; quads share each load of a key among four invocations
    "cells": (
        Variant("rows"),
        Variant("quads", ("subgroups",), {"H": tuple(range(16, 129, 16))}),
        Variant("plain", tried="never"),
    ),
    # one query against a cache; "once" keeps all of a head in registers, so that every number is loaded once
    "decode": (
        Variant("split"),
        Variant("once", (), {"H": UP_TO_128}),
        Variant("plain", (), {"S": SHORT}, tried="never"),
    ),
    # many tokens times a matrix; quads share each load of x;
    # workgroups share a tile in their memory, and of few tokens a row of weights, which is for GPUs; plain takes each
    # token by itself
    "matmul": (
        Variant("registers"),
        Variant("quads", ("subgroups",)),
        Variant("groups", tried="gpus"),
        Variant("plain", tried="never"),
    ),
    # one token times a matrix; quads share each load of x, blocks are multiplied as integers (formats 3 and 4);
    # workgroups share rows of weights, so that neighbours read neighbouring words
    "matvec": (
        Variant("registers"),
        Variant("quads", ("subgroups",), {"fmt": (3, 4)}),
        Variant("groups", tried="gpus"),
    ),
    # RMSNorm; workgroups share a row
    "norm": (Variant("rows"), Variant("groups", tried="gpus")),
    # the unembedding; quads share each load of x (table of Q8_0 blocks, format 4); workgroups share the tiles of its
    # product, and then rows of logits
    "lens": (Variant("rows"), Variant("quads", ("subgroups",), {"fmt": (4,)}), Variant("groups", tried="gpus")),
}


def pick(operation: str, variant: str | None, **sizes: int) -> str:
    """The name of the variant that will run: the one asked for if it serves these sizes, else the first.

    Raises UnknownVariant for a name that the operation does not have.
    """
    every = VARIANTS[operation]
    if variant is None:
        return every[0].name
    for each in every:
        if each.name == variant:
            return variant if _serves(each, sizes) else every[0].name
    names = ", ".join(each.name for each in every)
    raise UnknownVariant(f"There is no variant {variant!r} of {operation}; there are {names}.")


def _serves(variant: Variant, sizes: Mapping[str, int]) -> bool:
    return all(sizes[letter] in values for letter, values in variant.serves.items())


def available(operation: str, features: Iterable[str]) -> list[str]:
    """The names of an operation's variants that a device with these features can run, in order."""
    return [each.name for each in VARIANTS[operation] if set(each.needs) <= set(features)]


def to_try(operation: str, features: Iterable[str], software: bool, **sizes: int) -> list[str]:
    """The names that a trial times on a device for these sizes, in order; software: a CPU stands in for a GPU."""
    where = {"everywhere"} if software else {"everywhere", "gpus"}
    fit = {
        each.name
        for each in VARIANTS[operation]
        if each.tried in where and _serves(each, sizes) and not set(each.without) & set(features)
    }
    return [name for name in available(operation, features) if name in fit]


def first_choice(features: Iterable[str], software: bool) -> dict[str, str]:
    """What a model begins with before anything was tried: operation -> variant.

    Where a CPU stands in for a GPU a load is dear and a swap between lanes is not; without lanes to swap with, rows in
    registers share it. Both compile about as fast as the first variants.
    On a GPU a product of 14 tokens and 576 columns is 144 invocations in registers, of one token again 144, each of
    which reads rows of its own, and a norm is one: the device would idle. Workgroups that share rows and tiles have
    many more, read neighbouring words and need nothing that a GPU lacks, so they begin.
    """
    if software:
        choice = {"attention": "texels"} | dict.fromkeys(("cells", "matmul", "matvec", "lens"), "quads")
    else:
        choice = dict.fromkeys(("matmul", "matvec", "norm", "lens"), "groups")
    choice = {operation: name for operation, name in choice.items() if name in available(operation, features)}
    return ({"attention": "registers", "decode": "once"} if software else {}) | choice
