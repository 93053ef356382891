"""Reading config.json: old and new spelling give the same model; what is not run exactly is refused by name.

Plan: for each family a config that passes (the control), then one field at a time changed to something refused; the
defaults that transformers gives to absent fields; old spelling against new; contradictions.
"""

import copy
import json
import warnings

import pytest
import transformers

from python_ref import ModelConfig, UnsupportedConfig
from python_ref.rope_scaling import Dynamic, Linear, Llama3, Unscaled, Yarn

SIZES = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
FAMILIES = ["llama", "qwen2", "qwen3", "mistral", "smollm3"]


def read(model_type: str = "llama", without: str = "", **fields) -> ModelConfig:
    raw = {"model_type": model_type, **SIZES, **fields}
    raw.pop(without, None)
    return ModelConfig.from_dict(json.loads(json.dumps(raw)))


def yarn(**fields) -> dict:
    return {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, **fields}}


REFUSED = [
    ("model_type", {"model_type": "gemma2"}),
    ("model_type", {"model_type": None}),
    ("model_type", {"model_type": ["llama"]}),
    ("architectures", {"architectures": ["LlamaForSequenceClassification"]}),
    ("hidden_act", {"hidden_act": "gelu"}),
    ("quantization_config", {"quantization_config": {"quant_method": "gptq"}}),
    ("attn_logit_softcapping", {"attn_logit_softcapping": 50.0}),
    ("final_logit_softcapping", {"final_logit_softcapping": 30.0}),
    ("num_local_experts", {"num_local_experts": 8}),
    ("partial_rotary_factor", {"partial_rotary_factor": 0.5}),
    ("rope_interleaved", {"rope_interleaved": True}),
    ("is_causal", {"is_causal": False}),
    ("sliding_window", {"sliding_window": 16}),
    ("no_rope_layers", {"no_rope_layers": [1, 1, 1, 0]}),
    ("layer_types", {"layer_types": ["sliding_attention"] * 4}),
    ("layer_types", {"layer_types": ["full_attention"] * 3}),
    ("layer_types", {"layer_types": [["full_attention"]] * 4}),
    ("num_hidden_layers", {"num_hidden_layers": 10**9}),
    ("num_hidden_layers", {"num_hidden_layers": 0}),
    ("num_hidden_layers", {"num_hidden_layers": True}),
    ("num_hidden_layers", {"num_hidden_layers": 2.5}),
    ("num_attention_heads", {"num_attention_heads": "4"}),
    ("num_key_value_heads", {"num_key_value_heads": 3}),
    ("hidden_size", {"hidden_size": 66}),
    ("hidden_size", {"hidden_size": 10**400}),
    ("head_dim", {"head_dim": 15}),
    ("rms_norm_eps", {"rms_norm_eps": 0}),
    ("rms_norm_eps", {"rms_norm_eps": 10**400}),
    ("tie_word_embeddings", {"tie_word_embeddings": "yes"}),
    ("attention_bias", {"attention_bias": 1}),
    ("rope_theta", {"rope_theta": -1.0}),
    ("rope_scaling", {"rope_scaling": "linear"}),
    ("rope_scaling.type", {"rope_scaling": {"type": "longrope", "factor": 2.0}}),
    ("rope_scaling.factor", {"rope_scaling": {"type": "linear"}}),
    ("rope_scaling.factor", {"rope_scaling": {"type": "dynamic", "factor": "2"}}),
    ("rope_parameters.rope_type", {"rope_parameters": {"rope_type": ["yarn"]}}),
    ("head_dim", {"head_dim": 2, "rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}),
    ("rope_parameters.full_attention", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}),
    ("rope_parameters.mrope_section", {"rope_parameters": {"mrope_section": [1, 2, 3]}}),
    ("rope_parameters.partial_rotary_factor", {"rope_parameters": {"partial_rotary_factor": 0.25}}),
    ("rope_parameters.low_freq_factor", {"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}),
    ("rope_parameters.truncate", yarn(truncate=1)),
    ("rope_parameters.beta_fast", yarn(beta_fast=0)),
    ("rope_parameters.mscale", yarn(mscale=[1], mscale_all_dim=1)),
    ("rope_parameters.low_freq_factor", yarn(low_freq_factor=1.0)),
    ("rope_parameters.factor", {"rope_parameters": {"rope_type": "default", "factor": 2.0}}),
    ("rope_parameters.rope_theta", yarn(rope_theta=1)),
    ("rope_theta", {"rope_theta": 1, **yarn()}),
    ("rope_theta", {"rope_theta": 0.5}),
    ("rope_theta", {"rope_theta": 1e299}),
    ("rms_norm_eps", {"rms_norm_eps": 1e-50}),
    ("rms_norm_eps", {"rms_norm_eps": 1e200}),
    ("rope_scaling.factor", {"rope_scaling": {"type": "dynamic", "factor": 1e299}}),
    ("rope_scaling.factor", {"rope_scaling": {"type": "linear", "factor": 1e-320}}),
    ("rope_parameters.factor", yarn(factor=1e7)),
    ("rope_parameters.attention_factor", yarn(attention_factor=1e30)),
    ("rope_parameters.beta_slow", yarn(beta_slow=1e-300)),
    ("rope_parameters.mscale_all_dim", yarn(mscale=1, mscale_all_dim=1e-50)),
    ("rope_parameters.original_max_position_embeddings", yarn(original_max_position_embeddings=1.5)),
    ("attention_bias", {"model_type": "mistral", "attention_bias": True}),
    ("attention_bias", {"model_type": "qwen2", "attention_bias": False}),
    ("mlp_bias", {"model_type": "qwen3", "head_dim": 16, "mlp_bias": True}),
    ("sliding_window", {"model_type": "mistral", "sliding_window": 0}),
    ("layer_types", {"model_type": "mistral", "layer_types": ["full_attention"] * 4}),
    ("layer_types", {"model_type": "qwen2", "layer_types": ["sliding_attention"] * 4}),
    ("layer_types", {"model_type": "qwen2", "use_sliding_window": True, "layer_types": ["chunked_attention"] * 4}),
    ("use_sliding_window", {"model_type": "qwen2", "use_sliding_window": "no"}),
    ("no_rope_layers", {"model_type": "smollm3", "no_rope_layers": [1, 0]}),
    ("no_rope_layers", {"model_type": "smollm3", "no_rope_layers": [1, 0, 1, 2]}),
    ("no_rope_layer_interval", {"model_type": "smollm3", "no_rope_layer_interval": 0}),
]


@pytest.mark.parametrize("field,fields", REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_config_not_run_exactly_is_refused_by_name(field, fields):
    with pytest.raises(UnsupportedConfig) as refusal:
        read(**fields)
    assert refusal.value.field == field
    message = str(refusal.value)
    assert field in message and "\n" not in message and message.isascii() and len(message) < 300


@pytest.mark.parametrize(
    "fields,given",
    [
        ({"rope_theta": 1, **yarn()}, "rope_theta = 1;"),
        ({"head_dim": None, "hidden_size": 8, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "head_dim = 2;"),
        (
            {"max_position_embeddings": 2**24, **yarn(factor=None, original_max_position_embeddings=1)},
            "rope_parameters.factor = 16777216.0;",
        ),
    ],
)
def test_refusal_shows_the_value_that_would_be_used(fields, given):
    """It may stand elsewhere in the file, or follow from other fields: "absent" would send people to the wrong line."""
    with pytest.raises(UnsupportedConfig) as refusal:
        read(**fields)
    assert given in str(refusal.value) and "absent" not in str(refusal.value)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_plain_config_passes(model_type):
    """Control for the refusals: the same file without the change is read."""
    config = read(model_type, head_dim=16)
    assert (config.V, config.D, config.F, config.L, config.N, config.K, config.H) == (100, 64, 128, 4, 4, 2, 16)
    assert config.rope_scaling == Unscaled()


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "num_hidden_layers", "max_position_embeddings"])
def test_missing_size_is_refused(name):
    with pytest.raises(UnsupportedConfig, match=f"{name} = absent"):
        read(without=name)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_absent_fields_take_the_defaults_of_transformers(model_type):
    theirs = transformers.AutoConfig.for_model(model_type, **{**SIZES, "num_attention_heads": 32, "hidden_size": 128})
    ours = read(model_type, num_attention_heads=32, hidden_size=128, without="num_key_value_heads")
    unset = transformers.AutoConfig.for_model(model_type, num_attention_heads=32)
    assert unset.num_key_value_heads == ours.K
    assert (getattr(theirs, "head_dim", None) or 128 // 32) == ours.H
    assert ours.eps == theirs.rms_norm_eps
    assert ours.tied == theirs.tie_word_embeddings
    assert ours.rope_base == theirs.rope_parameters["rope_theta"]
    window = theirs.sliding_window if model_type == "mistral" else None
    assert set(ours.windows) == {window or 0}
    if model_type == "smollm3":
        assert [int(rotates) for rotates in ours.rotary] == theirs.no_rope_layers


@pytest.mark.parametrize(
    "settings,scaling",
    [
        ({"type": "linear", "factor": 2}, Linear(2.0)),
        ({"type": "dynamic", "factor": 2.0}, Dynamic(2.0, 512)),
        (
            {"type": "llama3", "factor": 8.0, "low_freq_factor": 1, "high_freq_factor": 4.0},
            Llama3(8.0, 1.0, 4.0, 512),
        ),
        ({"type": "yarn", "factor": 1.0, "original_max_position_embeddings": 128}, Yarn(1.0, 128, 1.0)),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_old_and_new_spelling_give_the_same_model(settings, scaling):
    kind = settings["type"]
    new = {**settings, "rope_type": kind, "rope_theta": 5e5}
    old = read(rope_theta=5e5, rope_scaling=settings)
    assert old == read(rope_parameters=new) == read(rope_theta=5e5, rope_scaling={**settings, "rope_type": kind})
    assert old.rope_scaling == scaling and old.rope_base == 5e5


def as_transformers_reads(**fields) -> ModelConfig:
    """The same file after transformers has read and written it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers.utils.logging.set_verbosity_error()
        return ModelConfig.from_dict(transformers.LlamaConfig(**SIZES, **copy.deepcopy(fields)).to_dict())


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_theta": 5e5, "rope_parameters": {"rope_theta": 1e4}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_theta": 7e4}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2.0}},
        {"original_max_position_embeddings": 256, **yarn(original_max_position_embeddings=128)},
        yarn(factor=None, original_max_position_embeddings=128),
        yarn(mscale=2.0),
    ],
)
def test_file_that_says_two_things_is_read_as_transformers_does(fields):
    assert read(**fields) == as_transformers_reads(**fields)


def test_null_window_and_null_heads():
    assert set(read("mistral", sliding_window=None).windows) == {0}
    assert set(read("qwen2", use_sliding_window=True, sliding_window=None, max_window_layers=0).windows) == {0}
    assert read("qwen2", num_key_value_heads=None).K == 4


def test_layer_types_choose_the_sliding_layers():
    types = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    assert read("qwen2", use_sliding_window=True, sliding_window=8, layer_types=types).windows == (8, 0, 0, 8)
