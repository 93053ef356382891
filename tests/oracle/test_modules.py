"""The building blocks, each against its definition.

Plan: scale; agreement with PyTorch's own attention; grouping of heads; RoPE's length, identity, relative positions and
pairing; causality. Every test takes the implementation from the module that PYTHON_REF_IMPL names (default
`python_ref`), so that the same tests judge an exercise; tests/oracle/mistakes shows which mistake fails which test.
"""

import importlib
import os
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests import tolerances

SHAPES = [(1, 1, 1, 1, 4), (2, 4, 4, 7, 8), (2, 4, 2, 15, 16), (1, 4, 1, 33, 8), (1, 9, 3, 16, 6)]  # B, N, K, T, H


@pytest.fixture
def impl() -> ModuleType:
    """The implementation under test."""
    return importlib.import_module(os.environ.get("PYTHON_REF_IMPL", "python_ref"))


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def as_complex(x: Tensor) -> Tensor:
    """(..., H) -> (..., H/2) complex: dimension i is the real part of pair i, dimension i + H/2 the imaginary part."""
    first, second = x.double().chunk(2, dim=-1)
    return torch.complex(first, second)


def turned(x: Tensor, base: float, offset: int = 0) -> Tensor:
    """RoPE by complex numbers: pair i of row t times e^(i angle), angle = (offset + t) base^(-2i/H)."""
    T, H = x.shape[-2:]
    angles = torch.arange(offset, offset + T).double()[:, None] * base ** (-torch.arange(0, H, 2).double() / H)
    pairs = as_complex(x) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], dim=-1)


def layer(impl: ModuleType, D: int, N: int, K: int, H: int, rope: bool = True):
    """An attention layer with seeded weights, float32."""
    torch.manual_seed(1)
    return impl.Attention(D, N, K, H, rope=impl.RoPE(H) if rope else None).requires_grad_(False)


def test_attention_scale_is_one_over_sqrt_head_dim(impl):
    for H in (2, 4, 16, 64):
        # The values are one-hot, so z is the pattern; key 0 scores 0.5 * H before scaling and all others score 0.
        q, k, v = torch.full((1, 1, H, H), 0.5), torch.zeros(1, 1, H, H), torch.eye(H)[None, None]
        k[..., 0, :] = 1.0
        z = impl.naive_attention(q, k, v)[0, 0, -1]
        torch.testing.assert_close((z[0] / z[1]).log(), torch.tensor(0.5 * H / H**0.5))

        attention = layer(impl, H, 1, 1, H, rope=False)
        for projection in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
            projection.weight.copy_(torch.eye(H))
        x = random(1, 5, H)
        weights = (x[0] @ x[0, -1] / H**0.5).softmax(-1)
        torch.testing.assert_close(attention(x)[0, -1], weights @ x[0])


def test_naive_attention_matches_pytorch(impl):
    for B, N, K, T, H in SHAPES:
        q, k, v = random(B, N, T, H, seed=1), random(B, K, T, H, seed=2), random(B, K, T, H, seed=3)
        wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        assert (impl.naive_attention(q, k, v) - wanted).abs().max() <= tolerances.ORACLE_SDPA


def test_attention_layer_matches_pytorch(impl):
    """Projections, grouping, rotation and output, put together by hand around PyTorch's attention."""
    for B, N, K, T, H in SHAPES:
        D = 10
        attention, x = layer(impl, D, N, K, H), random(B, T, D)
        q, k, v = (
            projection(x).unflatten(-1, (-1, H)).movedim(2, 1)
            for projection in (attention.w_q, attention.w_k, attention.w_v)
        )
        q, k = turned(q, 10_000.0).float(), turned(k, 10_000.0).float()
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        wanted = attention.w_o(z.movedim(1, 2).flatten(-2))
        assert (attention(x) - wanted).abs().max() <= tolerances.ORACLE_SDPA


def test_repeat_kv_groups_correctly(impl):
    B, K, S, H = 2, 3, 5, 4
    x = random(B, K, S, H)
    for groups in (1, 2, 4):
        repeated = impl.repeat_kv(x, groups)
        assert repeated.shape == (B, K * groups, S, H)
        for n in range(K * groups):  # query head n reads key/value head n // G
            assert torch.equal(repeated[:, n], x[:, n // groups])


def test_rope_preserves_norm(impl):
    for H in (2, 8, 64):
        x = random(2, 3, 40, H)
        rotated = impl.RoPE(H)(x, 1000)
        torch.testing.assert_close(as_complex(rotated).abs(), as_complex(x).abs(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1))


def test_rope_is_identity_at_position_zero(impl):
    for H in (2, 8, 64):
        x = random(2, 3, 4, H)
        assert torch.equal(impl.RoPE(H)(x)[..., 0, :], x[..., 0, :])
        assert not torch.allclose(impl.RoPE(H)(x, 1)[..., 0, :], x[..., 0, :])  # control: position one turns


def test_rope_makes_attention_relative(impl):
    """A score depends on m - n alone, exactly as Re sum_i q_i conj(k_i) e^(i (m - n) theta_i); values stay put."""
    H, base = 8, 10_000.0
    rope, theta = impl.RoPE(H, base), base ** (-torch.arange(0, H, 2).double() / H)
    q, k = random(1, H, seed=1, dtype=torch.float64), random(1, H, seed=2, dtype=torch.float64)
    for m, n in [(0, 0), (5, 5), (3, 1), (103, 101), (7, 0), (4007, 4000), (2, 9)]:
        pairs = as_complex(q[0]) * as_complex(k[0]).conj()
        wanted = (pairs * torch.polar(torch.ones_like(theta), (m - n) * theta)).real.sum()
        torch.testing.assert_close((rope(q, m) @ rope(k, n).T)[0, 0], wanted)

    attention, x = layer(impl, 12, 4, 2, H).double(), random(1, 9, 12, dtype=torch.float64)
    torch.testing.assert_close(attention(x, 0), attention(x, 100))


def test_rope_turns_half_split_pairs_counter_clockwise(impl):
    """Dimension i is paired with i + H/2; at position p the pair turns by p * base^(-2i/H) radians."""
    for H, base, offset in [(2, 10_000.0, 1), (8, 500_000.0, 0), (64, 100_000.0, 777)]:
        x = random(2, 6, H, dtype=torch.float64)
        torch.testing.assert_close(impl.RoPE(H, base)(x, offset), turned(x, base, offset))


def test_attention_is_causal(impl):
    """Changing later tokens changes no earlier row by a single bit; the length stays, for matmuls round by shape."""
    for B, N, K, T, H in SHAPES:
        q, k, v = random(B, N, T, H, seed=1), random(B, K, T, H, seed=2), random(B, K, T, H, seed=3)
        attention, x = layer(impl, 10, N, K, H), random(B, T, 10)
        for t in range(1, T, 5):
            before = impl.naive_attention(q, k, v), attention(x)
            k2, v2, x2 = k.clone(), v.clone(), x.clone()
            for changed in (k2, v2):
                changed[:, :, t:] += 1.0
            x2[:, t:] += 1.0
            after = impl.naive_attention(q, k2, v2), attention(x2)
            assert torch.equal(before[0][:, :, :t], after[0][:, :, :t])
            assert torch.equal(before[1][:, :t], after[1][:, :t])
            assert not torch.equal(before[1][:, t:], after[1][:, t:])  # control: the change is seen where it may be
