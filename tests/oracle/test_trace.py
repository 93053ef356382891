"""Traces, the lens and greedy generation.

Plan: every name with its shape; includes and layers; one block alone equals its part of the whole; ties in the lens;
the lens at depth 0 by hand; generation; refusals.
"""

import pytest
import torch

from python_ref import generate, load_model, logit_lens, trace, trace_block, trace_names
from python_ref.errors import EmptyPrompt, UnknownLayer, UnknownName, UnknownTokenId
from python_ref.lens import top_ids
from python_ref.trace import MODEL_NAMES
from tests.checkpoints import checkpoint

IDS = [3, 1, 4, 1, 5, 9]


@pytest.fixture(scope="module")
def model():
    """Qwen3 with QK-norm: the family that has every name."""
    return load_model(checkpoint("qwen3").folder, torch.float64)


def test_every_name_has_its_shape(model):
    c, T = model.config, len(IDS)
    found = trace(model, IDS)
    heads = {"q": c.N, "k": c.K}
    wanted = {
        "token_ids": (T,), "embed": (T, c.D), "final_norm": (T, c.D), "logits": (T, c.V),
        "lens_ids": (c.L + 1, T, 10), "lens_logprobs": (c.L + 1, T, 10),
        "lse": (c.L, c.N, T), "pattern": (c.L, c.N, T, T), "z": (c.L, T, c.N, c.H), "v": (c.L, T, c.K, c.H),
        **{f"{x}{suffix}": (c.L, T, n, c.H) for x, n in heads.items() for suffix in ("", "_proj", "_normed")},
        **dict.fromkeys(("gate", "up", "act"), (c.L, T, c.F)),
        **dict.fromkeys(("resid_pre", "attn_norm", "attn_out", "resid_mid"), (c.L, T, c.D)),
        **dict.fromkeys(("mlp_norm", "mlp_out", "resid_post"), (c.L, T, c.D)),
    }  # fmt: skip
    assert {name: tuple(value.shape) for name, value in found.items()} == wanted
    assert found["token_ids"].dtype == found["lens_ids"].dtype == torch.int32
    assert found["token_ids"].tolist() == IDS


def test_intermediates_fit_together(model):
    """Each is what the next is made of."""
    found, c = trace(model, IDS), model.config
    assert torch.equal(found["resid_pre"][0], found["embed"])
    assert torch.equal(found["resid_pre"][1:], found["resid_post"][:-1])
    assert torch.equal(found["resid_mid"], found["resid_pre"] + found["attn_out"])
    assert torch.equal(found["resid_post"], found["resid_mid"] + found["mlp_out"])
    keys = found["k"].repeat_interleave(c.N // c.K, dim=2)
    scores = torch.einsum("ltnh,lsnh->lnts", found["q"], keys) / c.H**0.5
    torch.testing.assert_close((scores - found["lse"][..., None]).exp().tril(), found["pattern"])
    values = found["v"].repeat_interleave(c.N // c.K, dim=2)
    torch.testing.assert_close(torch.einsum("lnts,lsnh->ltnh", found["pattern"], values), found["z"])


def test_names_and_layers_are_chosen(model):
    whole = trace(model, IDS)
    found = trace(model, IDS, include=["z", "logits"], layers=[2, 0])
    assert list(found) == ["logits", "z"]
    assert torch.equal(found["z"], whole["z"][[2, 0]]) and torch.equal(found["logits"], whole["logits"])


def test_one_block_alone_equals_its_part_of_the_whole(model):
    whole = trace(model, IDS)
    alone = trace_block(model, 1, whole["resid_pre"][1])
    assert set(alone) == set(trace_names(model)) - set(MODEL_NAMES)
    for name, value in alone.items():
        assert torch.equal(value, whole[name][1]), name


def test_model_without_qk_norm_has_no_normed_names():
    plain = load_model(checkpoint("llama-gqa").folder)
    assert "q_normed" not in trace(plain, IDS)
    with pytest.raises(UnknownName, match="q_normed"):
        trace(plain, IDS, include=["q_normed"])


def test_lens_at_depth_zero_is_the_unembedded_embedding(model):
    found = trace(model, IDS, include=["lens_ids", "lens_logprobs"])
    x = model.embed.weight[IDS]
    x = x / (x.pow(2).mean(-1, keepdim=True) + model.config.eps).sqrt() * model.final_norm.weight
    wanted = (x @ model.embed.weight.T).log_softmax(-1).topk(10)
    assert torch.equal(found["lens_ids"][0].long(), wanted.indices)
    torch.testing.assert_close(found["lens_logprobs"][0], wanted.values)


def test_ties_go_to_the_lower_id():
    logits = torch.tensor([[0.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0], [0.0] * 7, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]])
    assert top_ids(logits, 4).tolist() == [[1, 4, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert top_ids(logits, 10).tolist()[0] == [1, 4, 2, 3, 5, 6, 0]  # fewer words than asked for: all of them


def test_lens_of_any_residual(model):
    ids, logprobs = logit_lens(model, torch.zeros(2, 3, model.config.D, dtype=torch.float64), k=4)
    assert ids.tolist() == [[[0, 1, 2, 3]] * 3] * 2  # a zero vector prefers nothing
    torch.testing.assert_close(logprobs.exp(), torch.full((2, 3, 4), 1 / model.config.V, dtype=torch.float64))


def test_generation_follows_the_likeliest_token(model):
    new = generate(model, IDS, 4)
    for step in range(4):
        logits = trace(model, IDS + new[:step], include=["logits"])["logits"]
        assert new[step] == int(logits[-1].argmax())
    stop = new.index(new[2])
    assert generate(model, IDS, 4, stop_ids={new[2]}) == new[: stop + 1]
    assert generate(model, IDS, 0) == []


@pytest.mark.parametrize("ids", [[321], [-1], [1.5], ["1"], [True], [None], [2**70]])
def test_ids_outside_the_vocabulary_are_refused(model, ids):
    with pytest.raises(UnknownTokenId, match=r"not in the vocabulary, 0\.\.320"):
        trace(model, [0, *ids])
    trace(model, [0, 320])  # control


def test_other_refusals(model):
    with pytest.raises(EmptyPrompt, match="at least one"):
        trace(model, [])
    with pytest.raises(UnknownName, match="attention"):
        trace(model, IDS, include=["attention"])
    for layer in (3, -1, 1.0, "0"):
        with pytest.raises(UnknownLayer, match=r"0\.\.2"):
            trace(model, IDS, layers=[layer])
