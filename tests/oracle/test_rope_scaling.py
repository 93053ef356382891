"""Stretched RoPE against transformers' own frequencies, over more settings than the checkpoints have.

Plan: linear, dynamic at several lengths, llama3, yarn with every option; YaRN's magnitude; what the rules promise.
"""

import math
import warnings

import pytest
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from python_ref.config_fields import Fields
from python_ref.config_rope import read_rope
from python_ref.rope_scaling import Dynamic, Linear, Llama3, Unscaled, Yarn, plain_frequencies
from tests import tolerances

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
CASES = [
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 8.0, "rope_theta": 500_000.0},
    {"rope_type": "llama3", "factor": 8.0, "rope_theta": 500_000.0, **LLAMA3},
    {"rope_type": "llama3", "factor": 32.0, "rope_theta": 500_000.0, **LLAMA3},
    {"rope_type": "llama3", "factor": 4.0, **LLAMA3, "high_freq_factor": 2.0, "original_max_position_embeddings": 256},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "yarn", "factor": 1.0},
    {"rope_type": "yarn", "factor": 16.0, "rope_theta": 1e6, "original_max_position_embeddings": 1024},
    {"rope_type": "yarn", "factor": 4.0, "truncate": False},
    {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0, "beta_slow": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "mscale": 0.707, "mscale_all_dim": 1.2},
    {"rope_type": "yarn", "factor": 4.0, "mscale": 0.707},
    {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.3, "mscale": 0.7, "mscale_all_dim": 1.2},
    {"rope_type": "yarn", "factor": 4.0, "beta_fast": 1.0001, "beta_slow": 1.0},
]


def theirs(settings: dict, H: int, tokens: int) -> tuple[torch.Tensor, float]:
    """What transformers computes. The settings are copied: it writes defaults into them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers.utils.logging.set_verbosity_error()
        config = transformers.LlamaConfig(
            hidden_size=4 * H, num_attention_heads=4, max_position_embeddings=2048, rope_parameters=dict(settings)
        )
        return ROPE_INIT_FUNCTIONS[settings["rope_type"]](config, seq_len=tokens)


@pytest.mark.parametrize("tokens", [1, 2048, 2049, 9000])
@pytest.mark.parametrize("H", [4, 64, 128])
@pytest.mark.parametrize("settings", CASES, ids=lambda settings: "-".join(map(str, settings.values())))
def test_scaling_matches_transformers(settings, H, tokens):
    base, scaling = read_rope(Fields({"rope_parameters": settings}), 10_000.0, H, 2048)
    frequencies, magnitude = scaling(H, base, tokens)
    wanted, wanted_magnitude = theirs(settings, H, tokens)
    torch.testing.assert_close(frequencies.float(), wanted.float(), rtol=tolerances.FLOAT32_FREQUENCY, atol=0.0)
    assert magnitude == pytest.approx(wanted_magnitude, rel=1e-12)


def test_unscaled_pairs_turn_from_one_radian_down():
    frequencies, magnitude = Unscaled()(8, 10_000.0, 5)
    torch.testing.assert_close(frequencies, torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=torch.float64))
    assert magnitude == 1.0


def test_dynamic_changes_nothing_within_the_trained_context():
    within, beyond = Dynamic(2.0, 100)(8, 10_000.0, 100)[0], Dynamic(2.0, 100)(8, 10_000.0, 101)[0]
    assert torch.equal(within, plain_frequencies(8, 10_000.0))
    assert beyond[0] == within[0] and (beyond[1:] < within[1:]).all()


@pytest.mark.parametrize("scaling", [Linear(4.0), Llama3(4.0, 1.0, 4.0, 64), Yarn(4.0, 64, 1.0)])
def test_slowest_pair_turns_factor_times_slower(scaling):
    frequencies = scaling(64, 10_000.0, 10)[0]
    torch.testing.assert_close(frequencies[-1], plain_frequencies(64, 10_000.0)[-1] / 4.0)


def test_llama3_keeps_what_turns_often_enough():
    frequencies, plain = Llama3(4.0, 1.0, 4.0, 64)(64, 10_000.0, 10)[0], plain_frequencies(64, 10_000.0)
    often = 64 * plain / (2 * math.pi) >= 4.0
    assert often.any() and torch.equal(frequencies[often], plain[often])
