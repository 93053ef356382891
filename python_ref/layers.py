"""The parts of a block that look at one position at a time: RMSNorm and SwiGLU.

    RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight                      Zhang & Sennrich 2019, equation 4
    SwiGLU(x)  = W_down (silu(W_gate x) * W_up x),  silu(a) = a sigmoid(a)   Shazeer 2020, equation 6
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from .tap import Tap, leave


class RMSNorm(nn.Module):
    """Divide each row by its root mean square. x: (..., width) -> the same shape."""

    def __init__(self, width: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class SwiGLU(nn.Module):
    """The gated feed-forward layer. x: (B, T, D) -> (B, T, D) through width F."""

    def __init__(self, D: int, F: int, bias: bool = False):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=bias)
        self.w_up = nn.Linear(D, F, bias=bias)
        self.w_down = nn.Linear(F, D, bias=bias)

    def forward(self, x: Tensor, tap: Tap = leave) -> Tensor:
        gate = tap("gate", self.w_gate(x))  # (B, T, F)
        up = tap("up", self.w_up(x))  # (B, T, F)
        act = tap("act", silu(gate) * up)  # (B, T, F)
        return tap("mlp_out", self.w_down(act))  # (B, T, D)
