"""Who sees whom: causal mask, sliding window, sinks, offsets; and the row that sees nobody.

Plan: visible_keys against one sentence per cell; attention with a window against the loop written out; a query without
keys is zero, not NaN.
"""

import math

import pytest
import torch

from python_ref import Attention, naive_attention, visible_keys
from tests import tolerances


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("sinks", [0, 2])
@pytest.mark.parametrize("window", [0, 1, 3, 50])
@pytest.mark.parametrize("T,S,offset", [(6, 6, 0), (2, 6, 4), (1, 9, 8), (3, 9, 2)])
def test_visible_keys_cell_by_cell(T, S, offset, window, sinks, causal):
    visible = visible_keys(T, S, offset=offset, causal=causal, window=window, sinks=sinks)
    for t in range(T):
        for s in range(S):
            position = offset + t
            near = window == 0 or position - s < window or s < sinks
            assert visible[t, s] == (near and (s <= position or not causal))


@pytest.mark.parametrize("sinks", [0, 1, 4])
@pytest.mark.parametrize("window", [0, 1, 4])
def test_attention_with_window_matches_the_loop(window, sinks):
    N, K, T, S, H = 4, 2, 3, 8, 6
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(1, heads, length, H, generator=generator, dtype=torch.float64)
        for heads, length in ((N, T), (K, S), (K, S))
    )
    z = naive_attention(q, k, v, window=window, sinks=sinks)  # offset by default S - T = 5
    for n in range(N):
        for t in range(T):
            seen = [s for s in range(S) if s <= 5 + t and (window == 0 or 5 + t - s < window or s < sinks)]
            weights = [math.exp(float(q[0, n, t] @ k[0, n // 2, s]) / math.sqrt(H)) for s in seen]
            wanted = sum(w * v[0, n // 2, s] for w, s in zip(weights, seen, strict=True)) / sum(weights)
            torch.testing.assert_close(z[0, n, t], wanted)


def test_query_without_keys_is_zero():
    """The first queries of a chunk placed before all keys see nothing; softmax alone would give NaN."""
    taken = {}
    q = torch.randn(1, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    z = naive_attention(q, q, q, offset=-1, tap=lambda name, x: taken.setdefault(name, x))
    assert torch.equal(z[0, 0, 0], torch.zeros(4))
    assert torch.equal(taken["pattern"][0, 0, 0], torch.zeros(3))
    assert taken["lse"][0, 0, 0] == -math.inf
    assert (taken["pattern"][0, 0, 1:].sum(-1) - 1).abs().max() <= tolerances.PATTERN_ROW_SUM


def test_lse_is_the_log_sum_of_exponentials():
    """exp(score - lse) is the pattern: what the heatmap kernel computes."""
    taken = {}
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 9, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    naive_attention(q, k, k, tap=lambda name, x: taken.setdefault(name, x))
    rebuilt = torch.exp(q @ k.mT / 2 - taken["lse"][..., None]).tril()
    torch.testing.assert_close(rebuilt, taken["pattern"])


def test_attention_layer_passes_window_and_sinks_on():
    torch.manual_seed(0)
    x, seen = torch.randn(1, 12, 8), {}
    attention = Attention(8, 2, window=3, sinks=1)
    attention(x, tap=lambda name, value: seen.setdefault(name, value))
    assert torch.equal(seen["pattern"][0, 0] > 0, visible_keys(12, 12, window=3, sinks=1))


def test_uneven_heads_are_refused():
    q, k = torch.zeros(1, 4, 2, 8), torch.zeros(1, 3, 2, 8)
    with pytest.raises(ValueError, match="4 query heads cannot share 3 key/value heads"):
        naive_attention(q, k, k)
    with pytest.raises(ValueError, match="must divide 4 query heads"):
        Attention(16, 4, 3)
    Attention(16, 4, 2)  # control


def test_replaced_z_reaches_the_output():
    """A tap may change what it sees: with z set to zero only the output's bias is left."""
    attention = Attention(8, 2, o_bias=True)
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    out = attention(x, tap=lambda name, value: torch.zeros_like(value) if name == "z" else value)
    torch.testing.assert_close(out, attention.w_o.bias.expand(1, 5, 8))
