"""The model families that are run exactly, and the settings of other models that are not.

A family here is its class in transformers: which switches of config.json it listens to, and the value that it takes
for a field that config.json does not have.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """What sets one family apart."""

    architecture: str
    bias_switches: tuple[str, ...] = ()  # which of attention_bias and mlp_bias it listens to
    qkv_bias: bool = False  # biases on q, k and v without being asked
    qk_norm: bool = False
    kv_heads: int | None = None  # None: as many as query heads
    head_dim: int | None = None  # None: D / N
    rope_theta: float = 10_000.0
    tied: bool = False
    window: int = 0  # 0: none


FAMILIES = {
    "llama": Family("LlamaForCausalLM", bias_switches=("attention_bias", "mlp_bias")),
    "qwen2": Family("Qwen2ForCausalLM", qkv_bias=True, kv_heads=32, window=4096),
    "qwen3": Family(
        "Qwen3ForCausalLM",
        bias_switches=("attention_bias",),
        qk_norm=True,
        kv_heads=32,
        head_dim=128,
        window=4096,
    ),
    "mistral": Family("MistralForCausalLM", kv_heads=8, window=4096),
    "smollm3": Family(
        "SmolLM3ForCausalLM",
        bias_switches=("attention_bias", "mlp_bias"),
        kv_heads=4,
        rope_theta=2_000_000.0,
        tied=True,
    ),
}

# Settings of other models, each with the values that change nothing; null and absent always pass.
NEUTRAL: dict[str, tuple] = {
    "hidden_act": ("silu",),
    "quantization_config": (),
    "attn_logit_softcapping": (),
    "final_logit_softcapping": (),
    "query_pre_attn_scalar": (),
    "attention_multiplier": (),
    "attention_chunk_size": (),
    "embedding_multiplier": (1, 1.0),
    "residual_multiplier": (1, 1.0),
    "logits_scaling": (1, 1.0),
    "logit_scale": (1, 1.0),
    "partial_rotary_factor": (1, 1.0),
    "rotary_pct": (1, 1.0),
    "rope_interleaved": (False,),
    "clip_qkv": (),
    "is_causal": (True,),
    "use_qk_norm": (False,),
    "qk_layernorm": (False,),
    "use_bidirectional_attention": (False,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "num_experts": (0,),
    "num_local_experts": (0,),
    "n_routed_experts": (0,),
}
