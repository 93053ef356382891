"""Whole models on this machine's Vulkan driver against transformers and the oracle, every family and variation.

Plan: patterns, residual streams, final norm, logits, lens, greedy continuation on each checkpoint of
tests/checkpoints.py; every named intermediate against the oracle where the families differ.
"""

import numpy as np
import pytest

from tests.checkpoints import NAMES, checkpoint
from tests.hosts.numbers import log_softmax, worst
from tests.tolerances import (
    HOST_HIDDEN_RELATIVE,
    HOST_INTERMEDIATE_RELATIVE,
    HOST_LENS_LOGPROB,
    HOST_LOGPROB,
    HOST_PATTERN,
    PATTERN_ROW_SUM,
)

pytestmark = pytest.mark.gpu

RECORDED = [
    "llama-biases",
    "llama-odd-sizes",
    "qwen2-sliding",
    "qwen3",
    "mistral-window",
    "smollm3",
    "llama-yarn-mscale",
    "llama-bf16",
]
INPUTS = ["resid_pre", "attn_norm", "q_proj", "k_proj", "v", "q_normed", "k_normed", "q", "k", "lse", "pattern", "z"]
PER_LAYER = [*INPUTS, "attn_out", "resid_mid", "mlp_norm", "gate", "up", "act", "mlp_out", "resid_post"]


@pytest.mark.parametrize("name", NAMES)
def test_model_agrees_with_transformers(name, load):
    expected = checkpoint(name)
    model = load(expected.folder)
    trace = model.run(expected.input_ids.tolist())
    L = trace.shape["L"]
    pattern = np.stack([trace.read("pattern", layer) for layer in range(L)])
    assert np.abs(pattern - expected.attentions).max() < HOST_PATTERN
    assert np.abs(pattern.sum(-1) - 1).max() < PATTERN_ROW_SUM
    for layer in range(L):
        assert worst(trace.read("resid_pre", layer), expected.hidden_states[layer]) < HOST_HIDDEN_RELATIVE
    assert worst(trace.read("final_norm"), expected.hidden_states[L]) < HOST_HIDDEN_RELATIVE
    logits = trace.read("logits")
    logprobs = log_softmax(logits)
    assert np.abs(logprobs - log_softmax(expected.logits)).max() < HOST_LOGPROB
    lens = trace.lens()
    np.testing.assert_array_equal(lens["ids"][L, :, 0], logits.argmax(-1))
    best = np.take_along_axis(logprobs, lens["ids"][L].astype(np.int64), -1)
    assert np.abs(lens["logprobs"][L] - best).max() < HOST_LENS_LOGPROB
    trace.destroy()


@pytest.mark.parametrize("name", RECORDED)
def test_every_intermediate_agrees_with_oracle(name, load):
    import torch

    from python_ref import load_model
    from python_ref import trace as oracle_trace

    expected = checkpoint(name)
    ids = expected.input_ids.tolist()
    wanted = oracle_trace(load_model(expected.folder, torch.float64), ids)
    model = load(expected.folder)
    trace = model.run(ids, record=True)
    names = [each for each in PER_LAYER if "normed" not in each or model.config.qk_norm]
    for each in names:
        for layer in range(trace.shape["L"]):
            ours = trace.read(each, layer)
            assert ours.shape == tuple(wanted[each][layer].shape)
            assert worst(ours, wanted[each][layer].numpy()) < HOST_INTERMEDIATE_RELATIVE, (each, layer)
    for each in ("embed", "final_norm", "logits"):
        assert worst(trace.read(each), wanted[each].numpy()) < HOST_INTERMEDIATE_RELATIVE, each
    np.testing.assert_array_equal(trace.lens()["ids"][..., 0], wanted["lens_ids"][..., 0])
    trace.destroy()


@pytest.mark.parametrize("name", ["llama-gqa", "qwen3-sliding", "mistral-window", "smollm3-list", "llama-f16"])
def test_generation_equals_oracle_and_full_recomputation(name, load):
    import torch

    from python_ref import generate, load_model

    expected = checkpoint(name)
    ids = expected.input_ids.tolist()
    model = load(expected.folder)
    chosen = list(model.generate(ids, 8))
    again = list(ids)
    for token, logprob in chosen:
        trace = model.run(again)
        logits = trace.logits(len(again) - 1)
        trace.destroy()
        assert int(logits.argmax()) == token
        assert log_softmax(logits)[token] == pytest.approx(logprob, abs=HOST_LENS_LOGPROB)
        again.append(token)
    theirs = generate(load_model(expected.folder, torch.float64), ids, max_new_tokens=8)
    assert again[len(ids) :] == list(theirs)[-8:]


def test_split_tensors_give_the_same_numbers(load):
    """Rows of every matrix, bias and vocabulary spread over many buffers, as a large model's are."""
    expected = checkpoint("llama-biases")
    ids = expected.input_ids.tolist()
    whole, split = load(expected.folder), load(expected.folder, most_bytes=6000)
    assert len(split.weights) > 3 * len(whole.weights)
    one, other = whole.run(ids), split.run(ids)
    np.testing.assert_array_equal(other.read("logits"), one.read("logits"))
    np.testing.assert_array_equal(other.lens()["ids"], one.lens()["ids"])
    np.testing.assert_array_equal(other.ranks(36, 5), one.ranks(36, 5))
    assert list(split.generate(ids, 3)) == list(whole.generate(ids, 3))
    one.destroy()
    other.destroy()
