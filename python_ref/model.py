"""The decoder: embedding, L blocks, final norm, unembedding. What Llama, Qwen2, Qwen3, Mistral and SmolLM3 share.

    resid_mid  = resid_pre + Attention(RMSNorm(resid_pre))
    resid_post = resid_mid + SwiGLU(RMSNorm(resid_mid))
    logits     = W_U RMSNorm(resid_post of the last layer)

Left out on purpose: batching of unequal prompts, a key/value cache, dropout, training.
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from .attention import Attention
from .config import ModelConfig
from .layers import RMSNorm, SwiGLU
from .rope import RoPE
from .tap import Tap, leave

ModelTap = Callable[[int | None, str, Tensor], Tensor]  # as a Tap, told the layer too (None outside the blocks)


class Block(nn.Module):
    """One layer: attention and feed-forward, each added to the residual stream."""

    def __init__(self, config: ModelConfig, layer: int):
        super().__init__()
        rope = RoPE(config.H, config.rope_base, config.rope_scaling) if config.rotary[layer] else None
        self.attn_norm = RMSNorm(config.D, config.eps)
        self.attn = Attention(
            config.D,
            config.N,
            config.K,
            config.H,
            rope=rope,
            qk_norm=config.qk_norm,
            qkv_bias=config.qkv_bias,
            o_bias=config.o_bias,
            window=config.windows[layer],
            sinks=config.sinks,
            eps=config.eps,
        )
        self.mlp_norm = RMSNorm(config.D, config.eps)
        self.mlp = SwiGLU(config.D, config.F, config.mlp_bias)

    def forward(self, resid: Tensor, tap: Tap = leave) -> Tensor:
        """resid: (B, T, D) -> (B, T, D)."""
        resid = tap("resid_pre", resid)
        resid = resid + self.attn(tap("attn_norm", self.attn_norm(resid)), tap=tap)
        resid = tap("resid_mid", resid)
        resid = resid + self.mlp(tap("mlp_norm", self.mlp_norm(resid)), tap=tap)
        return tap("resid_post", resid)


class Model(nn.Module):
    """A language model: token ids in, logits of the next token out."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.V, config.D)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.L))
        self.final_norm = RMSNorm(config.D, config.eps)
        self.unembed = None if config.tied else nn.Linear(config.D, config.V, bias=False)

    def forward(self, ids: Tensor, tap: ModelTap | None = None) -> Tensor:
        """ids: (B, T) int64, each in 0 .. V - 1 -> logits (B, T, V)."""
        tap = tap or (lambda layer, name, x: x)
        resid = tap(None, "embed", self.embed(ids))  # (B, T, D)
        for layer, block in enumerate(self.blocks):
            resid = block(resid, partial(tap, layer))
        x = tap(None, "final_norm", self.final_norm(resid))
        return tap(None, "logits", self.logits(x))

    def logits(self, x: Tensor) -> Tensor:
        """Unembed normed rows: (..., D) -> (..., V)."""
        table = self.embed.weight if self.unembed is None else self.unembed.weight
        return x @ table.T
