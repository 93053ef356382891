"""Rotary position embedding, half-split as in Hugging Face checkpoints. Su et al. 2021 (RoFormer), equation 34.

Dimension i of a head is paired with dimension i + H/2, i = 0 .. H/2 - 1. The pair is a point in the plane; at
position p it is turned counter-clockwise by
    angle(p, i) = p * base ** (-2i / H)                                   radians
    x_i       ->  x_i       cos(angle) - x_{i+H/2} sin(angle)
    x_{i+H/2} ->  x_{i+H/2} cos(angle) + x_i       sin(angle)
so that the score of a query at m with a key at n depends on m - n alone. Values are never rotated.
Angles are computed in float64 whatever the type of x: at position 8,191 a float32 angle is already wrong by 5e-4.
"""

import torch
from torch import Tensor, nn

from .rope_scaling import Scaling, Unscaled


class RoPE(nn.Module):
    """Rotate queries or keys by their positions.

    H: head dimension, even. base: `rope_theta`. scaling: one of rope_scaling.py. Raises ValueError when H is odd.
    """

    def __init__(self, H: int, base: float = 10_000.0, scaling: Scaling | None = None):
        super().__init__()
        if H < 2 or H % 2:
            raise ValueError(f"RoPE turns pairs of dimensions: the head dimension must be even and positive, not {H}.")
        self.H, self.base, self.scaling = H, base, scaling or Unscaled()

    def tables(self, T: int, offset: int = 0) -> tuple[Tensor, Tensor]:
        """cos and sin of every angle for positions offset .. offset + T - 1, each [T, H/2] float64."""
        frequencies, magnitude = self.scaling(self.H, self.base, offset + T)
        positions = torch.arange(offset, offset + T, dtype=torch.float64)
        angles = positions[:, None] * frequencies  # (T, H/2)
        return magnitude * angles.cos(), magnitude * angles.sin()

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        """Rotate x: (..., T, H) -> the same shape; row t stands at position offset + t."""
        cos, sin = (table.to(x) for table in self.tables(x.shape[-2], offset))
        first, second = x.chunk(2, dim=-1)  # (..., T, H/2) each
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
