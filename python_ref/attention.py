"""Causal grouped-query attention, written out. Vaswani et al. 2017, equation 1; Ainslie et al. 2023 for the groups.

    scores  = q k^T / sqrt(H)             for every query head n and the key/value head n // G it shares, G = N / K
    pattern = softmax over the keys a query may see; the others are exactly zero
    z       = pattern v

Notation: B batch, T query positions, S key positions, D model width, N query heads, K key/value heads, H head
dimension. Heads come before positions, (B, N, T, H), so that one head is one matrix.
Left out on purpose: dropout, padding masks, a key/value cache; the [T, S] matrix is kept whole, as no kernel does.
"""

import math

import torch
from torch import Tensor, nn

from .layers import RMSNorm
from .rope import RoPE
from .tap import Tap, leave


def repeat_kv(x: Tensor, groups: int) -> Tensor:
    """Repeat each key/value head for the query heads that share it.

    x: (B, K, S, H) -> (B, K * groups, S, H). Head k lands on k*groups .. (k+1)*groups - 1, consecutive, never
    interleaved. Raises ValueError when groups < 1. Ainslie et al. 2023, section 2.2.
    """
    if groups < 1:
        raise ValueError(f"Each key/value head serves at least one query head; groups was {groups}.")
    B, K, S, H = x.shape
    return x[:, :, None].expand(B, K, groups, S, H).reshape(B, K * groups, S, H)


def visible_keys(T: int, S: int, *, offset: int = 0, causal: bool = True, window: int = 0, sinks: int = 0) -> Tensor:
    """Which keys each query may look at: [T, S], True where it may.

    Query t stands at position offset + t, key s at position s. causal: none later than the query. window: only the
    last `window` positions, the query's own included (0: no window). sinks: the first `sinks` keys stay visible
    however far the window has moved on. Xiao et al. 2023 (StreamingLLM) for the sinks.
    """
    query = torch.arange(offset, offset + T)[:, None]
    key = torch.arange(S)[None, :]
    visible = torch.ones(T, S, dtype=torch.bool)
    if window:
        visible &= (query - key < window) | (key < sinks)
    if causal:
        visible &= key <= query
    return visible


def naive_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = True,
    window: int = 0,
    sinks: int = 0,
    offset: int | None = None,
    tap: Tap = leave,
) -> Tensor:
    """Attention with every score computed and kept.

    q: (B, N, T, H); k, v: (B, K, S, H), K a divisor of N -> z (B, N, T, H). offset: position of the first query, by
    default S - T (the queries are the last positions). Taps `lse` (B, N, T), the natural log of the sum of exp(scores),
    and `pattern` (B, N, T, S). A query that sees no key has z = 0 and lse = -inf. Raises ValueError when K does not
    divide N.
    """
    N, T, H = q.shape[1:]
    K, S = k.shape[1:3]
    if N % K:
        raise ValueError(f"{N} query heads cannot share {K} key/value heads evenly.")
    k = repeat_kv(k, N // K)  # (B, N, S, H)
    v = repeat_kv(v, N // K)  # (B, N, S, H)
    offset = S - T if offset is None else offset
    hidden = ~visible_keys(T, S, offset=offset, causal=causal, window=window, sinks=sinks).to(q.device)
    scores = q @ k.transpose(-2, -1) / math.sqrt(H)  # (B, N, T, S)
    scores = scores.masked_fill(hidden, -math.inf)
    tap("lse", scores.logsumexp(-1))  # (B, N, T)
    pattern = scores.softmax(-1).masked_fill(hidden, 0.0)  # the fill matters only where a query sees nothing: no NaN
    return tap("pattern", pattern) @ v  # (B, N, T, H)


class Attention(nn.Module):
    """The attention layer: project, split into heads, norm, rotate, attend, merge, project.

    D: model width; N query heads share K key/value heads (default N) of H dimensions (default D / N). rope: None for
    a layer without positions. qk_norm: RMSNorm over H of every query and key before rotation (Qwen3). qkv_bias,
    o_bias: biases of the projections. causal, window, sinks: see visible_keys. Raises ValueError when K does not
    divide N, or when H is not given and N does not divide D.
    """

    def __init__(
        self,
        D: int,
        N: int,
        K: int | None = None,
        H: int | None = None,
        *,
        rope: RoPE | None = None,
        qk_norm: bool = False,
        qkv_bias: bool = False,
        o_bias: bool = False,
        causal: bool = True,
        window: int = 0,
        sinks: int = 0,
        eps: float = 1e-6,
    ):
        super().__init__()
        K = N if K is None else K
        if N % K or (H is None and D % N):
            raise ValueError(f"{K} key/value heads must divide {N} query heads, which without H must divide {D}.")
        self.D, self.N, self.K, self.H = D, N, K, H or D // N
        self.w_q = nn.Linear(D, N * self.H, bias=qkv_bias)
        self.w_k = nn.Linear(D, K * self.H, bias=qkv_bias)
        self.w_v = nn.Linear(D, K * self.H, bias=qkv_bias)
        self.w_o = nn.Linear(N * self.H, D, bias=o_bias)
        self.q_norm = RMSNorm(self.H, eps) if qk_norm else None
        self.k_norm = RMSNorm(self.H, eps) if qk_norm else None
        self.rope, self.causal, self.window, self.sinks = rope, causal, window, sinks

    def forward(self, x: Tensor, offset: int = 0, tap: Tap = leave) -> Tensor:
        """x: (B, T, D) -> (B, T, D); row t stands at position offset + t. Taps every step between, heads first."""
        B, T, _ = x.shape
        q = tap("q_proj", self.w_q(x).view(B, T, self.N, self.H).transpose(1, 2))  # (B, N, T, H)
        k = tap("k_proj", self.w_k(x).view(B, T, self.K, self.H).transpose(1, 2))  # (B, K, T, H)
        v = tap("v", self.w_v(x).view(B, T, self.K, self.H).transpose(1, 2))  # (B, K, T, H)
        if self.q_norm is not None:
            q, k = tap("q_normed", self.q_norm(q)), tap("k_normed", self.k_norm(k))
        if self.rope is not None:
            q, k = self.rope(q, offset), self.rope(k, offset)
        q, k = tap("q", q), tap("k", k)
        z = naive_attention(q, k, v, causal=self.causal, window=self.window, sinks=self.sinks, tap=tap)
        z = tap("z", z).transpose(1, 2).reshape(B, T, self.N * self.H)
        return tap("attn_out", self.w_o(z))  # (B, T, D)
