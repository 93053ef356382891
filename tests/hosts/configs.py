"""Configs for the hosts' tests: one good config.json per family and variation, and every way of being refused."""

from typing import Any

SMALL: dict[str, Any] = {
    "vocab_size": 321,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def config(family: str = "llama", **changes: Any) -> dict[str, Any]:
    """A small config.json of a family; None removes a field."""
    merged = {"model_type": family, **SMALL, **changes}
    return {field: value for field, value in merged.items() if value is not ...}


GOOD: dict[str, dict[str, Any]] = {
    "llama": config(),
    "llama tied": config(tie_word_embeddings=True),
    "llama with biases": config(attention_bias=True, mlp_bias=True),
    "llama without K/V heads": config(num_key_value_heads=...),
    "llama of old": config(rope_theta=5e5, rope_scaling={"type": "linear", "factor": 2}),
    "llama with floats": config(hidden_size=64.0, rope_parameters={"rope_theta": 10000}),
    "smollm2": config(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True, rope_theta=100000,
    ),
    "dynamic": config(max_position_embeddings=24, rope_parameters={"rope_type": "dynamic", "factor": 3.0}),
    "llama3": config(rope_parameters=LLAMA3),
    "yarn": config(rope_parameters=YARN),
    "yarn by mscale": config(rope_parameters={**YARN, "mscale": 0.7, "mscale_all_dim": 1.3, "truncate": False}),
    "yarn by ratio": config(rope_parameters={**YARN, "factor": None, "beta_fast": 8, "attention_factor": 0.9}),
    "qwen2": config("qwen2", tie_word_embeddings=True, sliding_window=4096, use_sliding_window=False),
    "qwen2 sliding": config("qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": config("qwen3", head_dim=32),
    "qwen3 default head": config("qwen3"),
    "qwen3 by types": config(
        "qwen3", head_dim=16, use_sliding_window=True, sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "mistral": config("mistral", sliding_window=7, head_dim=32),
    "mistral without window": config("mistral", sliding_window=None),
    "mistral default window": config("mistral"),
    "smollm3": config("smollm3", num_hidden_layers=5),
    "smollm3 by list": config("smollm3", no_rope_layers=[0, 1, 0, 1], attention_bias=True),
    "smollm3 sliding": config("smollm3", use_sliding_window=True, sliding_window=6, no_rope_layer_interval=2),
    "neutral fields": config(hidden_act="silu", quantization_config=None, partial_rotary_factor=1.0, use_cache=False),
}  # fmt: skip

# name -> (config.json, the field its refusal names)
BAD: dict[str, tuple[Any, str]] = {
    "a list": ([], "object"),
    "no family": (config(model_type=...), "model_type"),
    "family unknown": (config("gpt2"), "model_type"),
    "family a prototype key": (config("constructor"), "model_type"),
    "family a number": (config(3), "model_type"),
    "family hostile": (config("<script>\u202e\ud83d\ude00" + "x" * 200), "model_type"),
    "architecture of a classifier": (config(architectures=["LlamaForSequenceClassification"]), "architectures"),
    "architectures empty": (config(architectures=[]), "architectures"),
    "activation": (config(hidden_act="gelu"), "hidden_act"),
    "quantised": (config(quantization_config={"bits": 4}), "quantization_config"),
    "partial rotary": (config(partial_rotary_factor=0.5), "partial_rotary_factor"),
    "partial rotary true": (config(partial_rotary_factor=True), "partial_rotary_factor"),
    "experts": (config(num_local_experts=8), "num_local_experts"),
    "softcapping": (config(attn_logit_softcapping=50.0), "attn_logit_softcapping"),
    "not causal": (config(is_causal=False), "is_causal"),
    "width missing": (config(hidden_size=...), "hidden_size"),
    "width zero": (config(hidden_size=0), "hidden_size"),
    "width a fraction": (config(hidden_size=64.5), "hidden_size"),
    "width a string": (config(hidden_size="64"), "hidden_size"),
    "width true": (config(hidden_size=True), "hidden_size"),
    "width huge": (config(hidden_size=1e300), "hidden_size"),
    "layers beyond reason": (config(num_hidden_layers=10**9), "num_hidden_layers"),
    "heads that do not group": (config(num_key_value_heads=3), "num_key_value_heads"),
    "qwen without K/V heads": (config("qwen2", num_key_value_heads=...), "num_key_value_heads"),
    "head too odd": (config(head_dim=18), "head_dim"),
    "head a fraction": (config(num_attention_heads=6, num_key_value_heads=2), "head_dim"),
    "eps zero": (config(rms_norm_eps=0), "rms_norm_eps"),
    "eps tiny and negative": (config(rms_norm_eps=-1e-7), "rms_norm_eps"),
    "eps below float32": (config(rms_norm_eps=1e-50), "rms_norm_eps"),
    "eps beyond float32": (config(rms_norm_eps=1e200), "rms_norm_eps"),
    "tied a word": (config(tie_word_embeddings="yes"), "tie_word_embeddings"),
    "llama with a window": (config(sliding_window=4096), "sliding_window"),
    "llama by types": (config(layer_types=["sliding_attention"] * 3), "layer_types"),
    "llama without rope": (config(no_rope_layers=[1, 1, 1]), "no_rope_layers"),
    "mistral with biases": (config("mistral", attention_bias=True), "attention_bias"),
    "mistral by other types": (
        config("mistral", sliding_window=7, layer_types=["full_attention"] * 3),
        "layer_types",
    ),
    "qwen2 without biases": (config("qwen2", attention_bias=False), "attention_bias"),
    "qwen3 with feed-forward biases": (config("qwen3", mlp_bias=True), "mlp_bias"),
    "window a word": (config("qwen3", use_sliding_window=True, sliding_window="big"), "sliding_window"),
    "types of another length": (config("qwen3", layer_types=["full_attention"]), "layer_types"),
    "types unknown": (config("qwen3", layer_types=["chunked_attention"] * 3), "layer_types"),
    "rope list too short": (config("smollm3", no_rope_layers=[1]), "no_rope_layers"),
    "rope type unknown": (config(rope_parameters={"rope_type": "longrope"}), "rope_parameters.rope_type"),
    "rope type a number": (config(rope_scaling={"type": 1}), "rope_scaling.rope_type"),
    "rope a word": (config(rope_parameters="default"), "rope_parameters"),
    "rope per layer type": (
        config(rope_parameters={"full_attention": {"rope_theta": 1e4}}),
        "rope_parameters.full_attention",
    ),
    "rope field hostile": (config(rope_parameters={"<b>": 1}), "rope_parameters.field with a strange name"),
    "linear without factor": (config(rope_parameters={"rope_type": "linear"}), "rope_parameters.factor"),
    "linear factor below zero": (config(rope_scaling={"type": "linear", "factor": -2}), "rope_scaling.factor"),
    "llama3 without bands": (
        config(rope_parameters={"rope_type": "llama3", "factor": 8.0}),
        "rope_parameters.low_freq_factor",
    ),
    "llama3 bands reversed": (
        config(rope_parameters={**LLAMA3, "high_freq_factor": 0.5}),
        "rope_parameters.high_freq_factor",
    ),
    "yarn truncate a number": (config(rope_parameters={**YARN, "truncate": 1}), "rope_parameters.truncate"),
    "yarn with theta 1": (config(rope_theta=1, rope_parameters=YARN), "rope_theta"),
    "yarn with theta 1 inside": (config(rope_parameters={**YARN, "rope_theta": 1.0}), "rope_parameters.rope_theta"),
    "theta below 1": (config(rope_theta=0.5), "rope_theta"),
    "theta huge": (config(rope_theta=1e299), "rope_theta"),
    "dynamic factor huge": (config(rope_scaling={"type": "dynamic", "factor": 1e299}), "rope_scaling.factor"),
    "linear factor subnormal": (config(rope_scaling={"type": "linear", "factor": 1e-320}), "rope_scaling.factor"),
    "yarn factor huge": (config(rope_parameters={**YARN, "factor": 1e7}), "rope_parameters.factor"),
    "yarn ratio huge": (
        config(
            max_position_embeddings=1 << 24,
            rope_parameters={**YARN, "factor": None, "original_max_position_embeddings": 1},
        ),
        "rope_parameters.factor",
    ),
    "llama3 band tiny": (
        config(rope_parameters={**LLAMA3, "low_freq_factor": 1e-9}),
        "rope_parameters.low_freq_factor",
    ),
    "llama3 band huge": (
        config(rope_parameters={**LLAMA3, "high_freq_factor": 1e99}),
        "rope_parameters.high_freq_factor",
    ),
    "yarn attention factor huge": (
        config(rope_parameters={**YARN, "attention_factor": 1e30}),
        "rope_parameters.attention_factor",
    ),
    "yarn beta tiny": (config(rope_parameters={**YARN, "beta_slow": 1e-300}), "rope_parameters.beta_slow"),
    "yarn beta huge": (config(rope_parameters={**YARN, "beta_fast": 1e299}), "rope_parameters.beta_fast"),
    "yarn mscale huge": (
        config(rope_parameters={**YARN, "mscale": 1e50, "mscale_all_dim": 1}),
        "rope_parameters.mscale",
    ),
    "yarn mscale tiny": (
        config(rope_parameters={**YARN, "mscale": 1, "mscale_all_dim": 1e-50}),
        "rope_parameters.mscale_all_dim",
    ),
    "theta infinite": (config(rope_theta=float("inf")), "rope_theta"),
}
