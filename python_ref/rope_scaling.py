"""Stretched RoPE: how fast each pair turns, for contexts longer than the one a model was trained on.

Every rule maps (H, base, tokens) to
    frequencies [H/2]    radians per position for each pair, float64
    magnitude            a factor on cos and sin, 1 for every rule but YaRN
Conventions are those of Hugging Face `rope_parameters`; `tokens` is the length of the sequence, used by Dynamic alone.
Left out on purpose: longrope, proportional and partial rotation, which no supported family here uses.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Scaling(Protocol):
    """What every rule below provides."""

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]: ...


def plain_frequencies(H: int, base: float) -> Tensor:
    """base ** (-2i / H) radians per position for pair i, [H/2] float64. Su et al. 2021, section 3.2.2."""
    return base ** (-torch.arange(0, H, 2, dtype=torch.float64) / H)


@dataclass(frozen=True)
class Unscaled:
    """RoPE as trained."""

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]:
        return plain_frequencies(H, base), 1.0


@dataclass(frozen=True)
class Linear:
    """Position interpolation: everything turns `factor` times slower. Chen et al. 2023."""

    factor: float

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]:
        return plain_frequencies(H, base) / self.factor, 1.0


@dataclass(frozen=True)
class Dynamic:
    """Dynamic NTK: beyond the trained context the base grows with the length of the sequence, below it nothing changes.

    base' = base * (factor * tokens / trained - (factor - 1)) ** (H / (H - 2))
    The fastest pair keeps its speed, the slowest is slowed by the whole bracket. All positions of one sequence use the
    base of its full length, so the same prefix is rotated differently in a longer prompt.
    """

    factor: float
    trained_tokens: int

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]:
        tokens = max(tokens, self.trained_tokens)
        growth = self.factor * tokens / self.trained_tokens - (self.factor - 1)
        return plain_frequencies(H, base * growth ** (H / (H - 2))), 1.0


@dataclass(frozen=True)
class Llama3:
    """Llama 3.1: slow pairs are slowed by `factor`, fast pairs are kept, and those between are blended.

    A pair's wavelength is 2 pi / frequency tokens; r = trained_tokens / wavelength counts its turns in the trained
    context. r <= low: frequency / factor. r >= high: frequency. Between: weight (r - low) / (high - low).
    """

    factor: float
    low: float
    high: float
    trained_tokens: int

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]:
        frequencies = plain_frequencies(H, base)
        turns = self.trained_tokens * frequencies / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return kept * frequencies + (1 - kept) * frequencies / self.factor, 1.0


@dataclass(frozen=True)
class Yarn:
    """YaRN: as Llama3 but blended over the pair's index, and attention is sharpened. Peng et al. 2023, section 3.

    The pair that makes `turns` turns in the trained context has index
        H * log(trained_tokens / (2 pi turns)) / (2 log base)
    from beta_fast (kept, pairs before it) to beta_slow (slowed by factor, pairs after it), rounded outwards when
    `truncate`. `magnitude` multiplies cos and sin of queries and of keys, so scores grow by its square.
    """

    factor: float
    trained_tokens: int
    magnitude: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True

    def __call__(self, H: int, base: float, tokens: int) -> tuple[Tensor, float]:
        frequencies = plain_frequencies(H, base)
        first, last = self._pair(self.beta_fast, H, base), self._pair(self.beta_slow, H, base)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, H - 1)
        width = last - first if last != first else 0.001
        slowed = ((torch.arange(H // 2, dtype=torch.float64) - first) / width).clamp(0, 1)
        return (1 - slowed) * frequencies + slowed * frequencies / self.factor, self.magnitude

    def _pair(self, turns: float, H: int, base: float) -> float:
        """Index, not rounded, of the pair that makes so many turns in the trained context."""
        return H * math.log(self.trained_tokens / (2 * math.pi * turns)) / (2 * math.log(base))


def yarn_magnitude(factor: float, mscale: float = 1.0, mscale_all_dim: float = 0.0) -> float:
    """YaRN's factor on cos and sin when config.json does not state it: 0.1 log(factor) + 1, or a ratio of two such.

    Peng et al. 2023, equation 22; the two weights are DeepSeek's.
    """

    def grown(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    return grown(mscale) / grown(mscale_all_dim)
