"""RMSNorm and SwiGLU against PyTorch and their formulas; grouping of a multi-head model's heads.

Plan: both layers in both types; averaging by hand; a model whose grouped heads are equal keeps its function.
"""

import pytest
import torch

from python_ref import Attention, Model, RMSNorm, RoPE, SwiGLU, average_heads, load_model, mha_to_gqa
from python_ref.errors import UnevenGroups
from tests.checkpoints import checkpoint


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rmsnorm_matches_pytorch(dtype):
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0), dtype=dtype)
    norm = RMSNorm(12, eps=1e-3).to(dtype)
    torch.nn.init.uniform_(norm.weight)
    torch.testing.assert_close(norm(x), torch.nn.functional.rms_norm(x, (12,), norm.weight, 1e-3))


def test_rmsnorm_of_zeros_is_zero():
    assert torch.equal(RMSNorm(4)(torch.zeros(1, 4)), torch.zeros(1, 4))


@pytest.mark.parametrize("bias", [False, True])
def test_swiglu_matches_its_formula(bias):
    torch.manual_seed(0)
    mlp, x = SwiGLU(6, 10, bias), torch.randn(2, 3, 6)
    gate, up = mlp.w_gate(x), mlp.w_up(x)
    torch.testing.assert_close(mlp(x), mlp.w_down(gate * torch.sigmoid(gate) * up))


def test_average_heads_takes_consecutive_heads():
    rows = torch.arange(8.0)[:, None]  # four heads of two rows
    assert average_heads(rows, heads=4, groups=2).flatten().tolist() == [1.0, 2.0, 5.0, 6.0]
    assert average_heads(rows.flatten(), heads=4, groups=1).tolist() == [3.0, 4.0]


@pytest.mark.parametrize("groups", [0, 3, 8])
def test_uneven_groups_are_refused(groups):
    with pytest.raises(UnevenGroups, match="give a divisor of 4"):
        average_heads(torch.zeros(8, 1), 4, groups)


def test_attention_with_equal_heads_keeps_its_function():
    torch.manual_seed(0)
    grouped = Attention(12, 4, 2, 6, rope=RoPE(6), qk_norm=True, qkv_bias=True).requires_grad_(False)
    multi = Attention(12, 4, 4, 6, rope=RoPE(6), qk_norm=True, qkv_bias=True).requires_grad_(False)
    state = grouped.state_dict()
    for name in ("w_k.weight", "w_k.bias", "w_v.weight", "w_v.bias"):
        state[name] = state[name].unflatten(0, (2, 6)).repeat_interleave(2, 0).flatten(0, 1)
    multi.load_state_dict(state)
    x = torch.randn(1, 7, 12)
    torch.testing.assert_close(multi(x), grouped(x))  # control: they were the same to begin with
    made = mha_to_gqa(multi, 2)
    assert made.K == 2 and made.w_k.weight.shape == (12, 12)
    torch.testing.assert_close(made(x), grouped(x))
    assert multi.K == 4 and multi.w_k.weight.shape == (24, 12)  # the original is left alone


def test_whole_model_is_grouped():
    multi = load_model(checkpoint("llama-mha").folder, torch.float64)
    made = mha_to_gqa(multi, 2)
    assert isinstance(made, Model) and made.config.K == 2 and multi.config.K == 4
    old, new = multi.blocks[1].attn, made.blocks[1].attn
    torch.testing.assert_close(new.w_v.weight[:16], (old.w_v.weight[:16] + old.w_v.weight[16:32]) / 2)
    assert torch.equal(new.w_q.weight, old.w_q.weight)
    fresh = Model(made.config).double()
    fresh.load_state_dict(made.state_dict())  # the shapes are those of the new config
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(fresh(ids), made(ids))
