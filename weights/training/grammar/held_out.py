"""What the evaluation may use and training may not: one pair of words in eight, chosen by a hash, and the prompts'.

A text is held out when any two of its key words are a held-out pair. The pairs of the default prompts are among them,
so what the page shows on opening was never seen in this grammar.
"""

import zlib
from collections.abc import Iterable
from itertools import combinations

ONE_IN = 8
PROMPTS = {frozenset(pair) for pair in (("cat", "mat"), ("Mary", "John"), ("books", "cars"))}


def pair_is_held_out(a: str, b: str) -> bool:
    """Whether two words, in either order, are kept for the evaluation."""
    hashed = zlib.crc32(" ".join(sorted((a, b))).encode())
    return frozenset((a, b)) in PROMPTS or hashed % ONE_IN == 0


def is_held_out(words: Iterable[str]) -> bool:
    """Whether any pair among the words is kept for the evaluation."""
    return any(pair_is_held_out(a, b) for a, b in combinations(words, 2))
