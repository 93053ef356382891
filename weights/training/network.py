"""The model that is trained: the arithmetic of `python_ref`, with PyTorch's fused attention and norm.

    x_0 = E[ids];   x_{l+1} = x_l + attention(norm(x_l)) + SwiGLU(norm(...));   logits = norm(x_L) E^T

The oracle computes every score and keeps it, which is what an oracle is for and three times too slow to train with. A
test holds the two equal. Parameters have the names of a Hugging Face Qwen3 checkpoint, so that export is a copy.

Notation: B rows, T positions, D width, L layers, N query heads, K key/value heads, H head dimension, F feed-forward
width, V vocabulary. Unusual on purpose, at the start of training (README.md says why):
    every row of E holds one shared random vector: a constant direction for heads that look at positions alone
    queries and keys are normed with gain 2: sharp patterns from the first step on
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weights.training.shape import Shape

EMBEDDING_STD = 0.1
SHARED_STD = 0.1
QK_GAIN = 2.0


class Norm(nn.Module):
    """RMSNorm. x: (..., width) -> the same shape."""

    def __init__(self, width: int, eps: float, gain: float = 1.0):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.full((width,), gain))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE, half-split. x: (B, heads, T, H); cos, sin: (T, H/2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    """Grouped-query attention with normed queries and keys. x: (B, T, D) -> (B, T, D)."""

    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.D, s.N * s.H, bias=False)
        self.k_proj = nn.Linear(s.D, s.K * s.H, bias=False)
        self.v_proj = nn.Linear(s.D, s.K * s.H, bias=False)
        self.o_proj = nn.Linear(s.N * s.H, s.D, bias=False)
        self.q_norm = Norm(s.H, s.eps, QK_GAIN)
        self.k_norm = Norm(s.H, s.eps, QK_GAIN)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        B, T, _ = x.shape
        s, groups = self.s, self.s.N // self.s.K
        q = self.q_norm(self.q_proj(x).view(B, T, s.N, s.H)).transpose(1, 2)  # (B, N, T, H)
        k = self.k_norm(self.k_proj(x).view(B, T, s.K, s.H)).transpose(1, 2)  # (B, K, T, H)
        v = self.v_proj(x).view(B, T, s.K, s.H).transpose(1, 2)  # (B, K, T, H)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)  # (B, N, T, H)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(z.transpose(1, 2).reshape(B, T, s.N * s.H))


class SwiGLU(nn.Module):
    """The gated feed-forward layer. x: (B, T, D) -> (B, T, D)."""

    def __init__(self, s: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(s.D, s.F, bias=False)
        self.up_proj = nn.Linear(s.D, s.F, bias=False)
        self.down_proj = nn.Linear(s.F, s.D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """Attention, then SwiGLU, each on a normed copy and added to the stream."""

    def __init__(self, s: Shape):
        super().__init__()
        self.input_layernorm = Norm(s.D, s.eps)
        self.self_attn = Attention(s)
        self.post_attention_layernorm = Norm(s.D, s.eps)
        self.mlp = SwiGLU(s)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, feed_forward: bool) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x)) if feed_forward else x


class Network(nn.Module):
    """The decoder. Weights are drawn from torch's global generator: seed it first."""

    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.embed_tokens = nn.Embedding(s.V, s.D)
        self.layers = nn.ModuleList(Block(s) for _ in range(s.L))
        self.norm = Norm(s.D, s.eps)
        frequencies = s.rope_base ** (-torch.arange(0, s.H, 2, dtype=torch.float64) / s.H)
        angles = torch.arange(s.positions, dtype=torch.float64)[:, None] * frequencies
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self._draw()

    def _draw(self) -> None:
        nn.init.normal_(self.embed_tokens.weight, std=EMBEDDING_STD)
        with torch.no_grad():
            self.embed_tokens.weight.add_(torch.randn(self.s.D) * SHARED_STD)
        for name, parameter in self.layers.named_parameters():
            if parameter.ndim == 2:
                std = 1 / math.sqrt(parameter.shape[1])
                if "o_proj" in name:  # it adds to the stream, as the down_proj of every layer does: 2L times in all
                    std /= math.sqrt(2 * self.s.L)
                if "down_proj" in name:  # a layer that joins later must not disturb what is there
                    std = 0.0
                nn.init.normal_(parameter, std=std)

    def forward(self, ids: Tensor, feed_forward: bool = True) -> list[Tensor]:
        """ids: (B, T) -> the stream before every layer and after the last one: L + 1 times (B, T, D).

        feed_forward: whether the SwiGLU layers take part; without them a step costs a third.
        """
        x = self.embed_tokens(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        stream = [x]
        for block in self.layers:
            stream.append(block(stream[-1], cos, sin, feed_forward))
        return stream

    def logits(self, x: Tensor, V: int | None = None) -> Tensor:
        """x: (..., D), the stream at any depth -> (..., V): the final norm and the unembedding, as in the logit lens.

        V: only the first so many tokens (default all).
        """
        return self.norm(x) @ self.embed_tokens.weight[:V].t()

    def matrices(self, feed_forward: bool = True) -> list[nn.Parameter]:
        """Weights inside the blocks that turn vectors into vectors: what Muon steps. feed_forward: SwiGLU's too."""
        named = self.layers.named_parameters()
        return [weight for name, weight in named if weight.ndim == 2 and (feed_forward or ".mlp." not in name)]

    def others(self) -> list[nn.Parameter]:
        """Embedding and norms: what AdamW steps."""
        return [self.embed_tokens.weight, *(p for p in self.parameters() if p.ndim == 1)]
