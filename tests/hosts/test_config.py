"""config.json is read alike by both hosts: the same sizes, the same refusals in the same words.

Plan: every good config gives equal values in Python and JavaScript; every bad one is refused by both with one sentence
that names the field (the good ones are the control); rotation tables agree with each other and with transformers.
"""

import dataclasses
import warnings

import numpy as np
import pytest

from tests.hosts.configs import BAD, GOOD, config
from tests.hosts.conftest import MirrorError
from tests.tolerances import ROPE_TABLE_ABSOLUTE, ROPE_TABLE_MIRROR
from webgpu.config import parse_config
from webgpu.config_fields import UnsupportedConfig, show
from webgpu.rope import frequencies, tables


@pytest.mark.parametrize("name", GOOD)
def test_config_good_reads_alike(name, mirror):
    ours = parse_config(GOOD[name])
    theirs = mirror.ask("config", raw=GOOD[name])
    expected = dataclasses.asdict(ours) | {"scale": ours.scale}
    expected |= {"windows": list(ours.windows), "rotates": list(ours.rotates)}
    assert theirs == expected


@pytest.mark.parametrize("name", BAD)
def test_config_bad_is_refused_in_the_same_words(name, mirror):
    raw, field = BAD[name]
    with pytest.raises(UnsupportedConfig) as ours:
        parse_config(raw)
    raw_json = (
        raw if not isinstance(raw, dict) or raw.get("rope_theta") != float("inf") else raw | {"rope_theta": 1e308}
    )
    if raw_json is raw:
        with pytest.raises(MirrorError) as theirs:
            mirror.ask("config", raw=raw)
        assert (theirs.value.name, theirs.value.code) == ("UnsupportedConfig", ours.value.code)
        assert theirs.value.message == str(ours.value)
    assert ours.value.field == field
    message = str(ours.value)
    assert field in message or "no " + field in message
    assert (
        message.isascii() and len(message) < 300 and message.endswith("choose another model.") and "\n" not in message
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-5, "0.00001"), (1.5e-7, "1.5e-7"), (3.0, "3"), (0.1, "0.1"), (2**60, "a number beyond 2^53"), (True, "true"),
     (float("nan"), "a number beyond 2^53"), ({}, "an object"), ([1, 2], "a list of 2"), ("é", '"\\u00e9"')],
)  # fmt: skip
def test_show_prints_as_javascript_does(value, text):
    assert show(value) == text


@pytest.mark.parametrize("name", [n for n in GOOD if "rope" in str(GOOD[n]) or n in ("llama", "qwen3")])
@pytest.mark.parametrize("total", [20, 3000])
def test_rope_tables_agree_between_hosts(name, total, mirror):
    ours = parse_config(GOOD[name])
    cos, sin = tables(ours.rope, ours.H, 3, 17, total)
    theirs = mirror.ask("rope", raw=GOOD[name], start=3, count=17, total=total)
    np.testing.assert_allclose(np.array(theirs["cos"]).reshape(cos.shape), cos, atol=ROPE_TABLE_MIRROR, rtol=0)
    np.testing.assert_allclose(np.array(theirs["sin"]).reshape(sin.shape), sin, atol=ROPE_TABLE_MIRROR, rtol=0)


SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "yarn-mscale": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "mscale": 1.0,
                    "mscale_all_dim": 0.5, "beta_fast": 8, "truncate": False},
}  # fmt: skip


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("total", [10, 256, 700])
def test_rope_frequencies_match_transformers(name, total):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        scaling = {"rope_theta": 10000.0, **SCALINGS[name]}
        theirs = LlamaConfig(
            hidden_size=64, num_attention_heads=2, max_position_embeddings=256, rope_parameters=dict(scaling)
        )
        wanted, attention_factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](theirs, None, seq_len=total)
    ours = parse_config(config(num_attention_heads=2, max_position_embeddings=256, rope_parameters=scaling))
    np.testing.assert_allclose(frequencies(ours.rope, 32, total), wanted.double().numpy(), atol=ROPE_TABLE_ABSOLUTE)
    assert ours.rope.attention_factor == pytest.approx(attention_factor, abs=1e-12)
