"""The whole oracle against Hugging Face transformers, for every family and variation of tests/checkpoints.py.

Plan: every layer's pattern and residual stream, final norm, logits, in float64 and float32; the same model without its
feature is far off; then what must hold whatever the weights are: rows of a pattern sum to one, a later token changes
no earlier row, the lens ends in the logits.
"""

import re

import numpy as np
import pytest
import torch

from python_ref import RoPE, load_model, trace
from tests import tolerances
from tests.checkpoints import NAMES, checkpoint

FEATURES = "linear|dynamic$|old-config|llama3|yarn|window|sliding|smollm3"


def relative(ours, theirs: np.ndarray) -> float:
    """Largest difference, as a part of the largest value."""
    return float(np.abs(ours.double().numpy() - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_family_matches_transformers(name, dtype):
    expected = checkpoint(name)
    found = trace(load_model(expected.folder, dtype), expected.input_ids)
    assert found["pattern"].shape == expected.attentions.shape
    assert np.abs(found["pattern"].double().numpy() - expected.attentions).max() <= tolerances.ORACLE_TRANSFORMERS
    assert relative(found["resid_pre"], expected.hidden_states[:-1]) <= tolerances.ORACLE_TRANSFORMERS
    assert relative(found["final_norm"], expected.hidden_states[-1]) <= tolerances.ORACLE_TRANSFORMERS
    assert relative(found["logits"], expected.logits) <= tolerances.ORACLE_TRANSFORMERS


@pytest.mark.parametrize("name", [name for name in NAMES if re.search(FEATURES, name)])
def test_family_without_its_feature_is_far_off(name):
    """Control: the checkpoints are such that leaving out windows, scaling or layers without RoPE shows."""
    expected = checkpoint(name)
    model = load_model(expected.folder, torch.float64)
    for block in model.blocks:
        block.attn.window = 0
        block.attn.rope = RoPE(model.config.H, model.config.rope_base)
    pattern = trace(model, expected.input_ids, include=["pattern"])["pattern"]
    assert np.abs(pattern.numpy() - expected.attentions).max() > 1000 * tolerances.ORACLE_TRANSFORMERS


@pytest.mark.parametrize("name", NAMES)
def test_pattern_rows_sum_to_one(name):
    expected = checkpoint(name)
    pattern = trace(load_model(expected.folder), expected.input_ids, include=["pattern"])["pattern"]
    assert (pattern.sum(-1) - 1).abs().max() <= tolerances.PATTERN_ROW_SUM
    assert pattern.triu(1).abs().max() == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_later_token_changes_no_earlier_row(name):
    """Bit for bit. The length stays: a matrix product of another shape may round in another order."""
    expected = checkpoint(name)
    model, t = load_model(expected.folder), 20
    ids = expected.input_ids.tolist()
    before, after = trace(model, ids), trace(model, ids[:t] + [(token + 1) % model.config.V for token in ids[t:]])
    positions_axis = {"lse": -1, "pattern": -2, "token_ids": 0, **dict.fromkeys(("embed", "final_norm", "logits"), 0)}
    for key, value in before.items():
        axis = positions_axis.get(key, 1)
        assert torch.equal(value.narrow(axis, 0, t), after[key].narrow(axis, 0, t)), key
    assert not torch.equal(before["logits"][t:], after["logits"][t:])  # control: it is seen where it may be


@pytest.mark.parametrize("name", NAMES)
def test_lens_ends_in_the_logits(name):
    expected = checkpoint(name)
    model = load_model(expected.folder)
    found = trace(model, expected.input_ids, include=["lens_ids", "lens_logprobs", "logits"])
    assert found["lens_ids"].shape == (model.config.L + 1, len(expected.input_ids), 10)
    logprobs = found["logits"].log_softmax(-1)
    likeliest = logprobs.topk(10)
    assert torch.equal(found["lens_ids"][-1].long(), likeliest.indices)
    torch.testing.assert_close(found["lens_logprobs"][-1], likeliest.values)


def test_smollm2_names_mary(smollm2):
    """The real model: "... John gave a drink to" is continued with " Mary", probability 0.92."""
    from weights.tokens import load_tokenizer

    tokens = load_tokenizer(smollm2)
    ids = tokens.encode("When Mary and John went to the store, John gave a drink to")
    found = trace(load_model(smollm2), ids, include=["lens_ids", "lens_logprobs"])
    assert tokens.decode([int(found["lens_ids"][-1, -1, 0])]) == " Mary"
    assert found["lens_logprobs"][-1, -1, 0].exp().item() == pytest.approx(0.92, abs=tolerances.QUOTED_PROBABILITY)
