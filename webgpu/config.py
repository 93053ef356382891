"""What a checkpoint's config.json asks for, as the sizes and switches the kernels run with.

Families: llama, qwen2, qwen3, mistral, smollm3, each with the defaults that Hugging Face transformers 5.24 gives a
field that is absent. Old files (`rope_theta`, `rope_scaling`) and new ones (`rope_parameters`) are read alike. A model
is either run exactly or refused with one sentence that names the field: nothing is approximated and no field that
could change the numbers is skipped. `static/gpu/config.js` mirrors this file; both give the same verdict in the same
words.
"""

import math
from dataclasses import dataclass
from typing import Any

from webgpu.config_fields import (
    EPSILON,
    UnsupportedConfig,
    flag,
    is_whole,
    number,
    optional_whole,
    refuse_unless,
    same,
    whole,
)
from webgpu.rope import Rope, parse_rope

FAMILIES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}

# Fields that would change the numbers, with the values that leave them alone (null and absent always do).
NEUTRAL: list[tuple[str, tuple[Any, ...]]] = [
    ("hidden_act", ("silu",)),
    ("quantization_config", ()),
    ("partial_rotary_factor", (1,)),
    ("rotary_pct", (1,)),
    ("rope_interleaved", (False,)),
    ("num_experts", (0,)),
    ("num_local_experts", (0,)),
    ("n_routed_experts", (0,)),
    ("attn_logit_softcapping", ()),
    ("final_logit_softcapping", ()),
    ("query_pre_attn_scalar", ()),
    ("attention_multiplier", ()),
    ("embedding_multiplier", (1,)),
    ("residual_multiplier", (1,)),
    ("logits_scaling", (1,)),
    ("logit_scale", (1,)),
    ("clip_qkv", ()),
    ("use_qk_norm", (False,)),
    ("attention_chunk_size", ()),
    ("is_causal", (True,)),
    ("use_bidirectional_attention", (False,)),
    ("is_encoder_decoder", (False,)),
    ("add_cross_attention", (False,)),
]


@dataclass(frozen=True)
class Config:
    """Sizes by the notation of the house (V, D, F, L, N, K, H), switches, and per layer: window (0 = none), rotates."""

    family: str
    V: int
    D: int
    F: int
    L: int
    N: int
    K: int
    H: int
    eps: float
    tied: bool
    max_tokens: int
    qk_norm: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    windows: tuple[int, ...]
    rotates: tuple[bool, ...]
    rope: Rope

    @property
    def scale(self) -> float:
        """What scores are multiplied by: 1 / sqrt(H)."""
        return 1.0 / math.sqrt(self.H)


def parse_config(raw: Any) -> Config:
    """Read a parsed config.json. Raises UnsupportedConfig naming the first field that is not run exactly."""
    if not isinstance(raw, dict):
        raise UnsupportedConfig("object", raw, "one JSON object")
    family = check_family(raw)
    for field, neutral in NEUTRAL:
        refuse_unless(raw, field, neutral)
    D, N = whole(raw, "hidden_size", 65536), whole(raw, "num_attention_heads", 1024)
    K, H, L = kv_heads(raw, family, N), head_dim(raw, family, D, N), whole(raw, "num_hidden_layers", 512)
    rotates = rope_layers(raw, family, L)
    rope = parse_rope(raw, family)
    qkv_bias, o_bias, mlp_bias = biases(raw, family)
    return Config(
        family=family,
        V=whole(raw, "vocab_size", 1 << 20),
        D=D,
        F=whole(raw, "intermediate_size", 1 << 20),
        L=L,
        N=N,
        K=K,
        H=H,
        eps=number(raw, "rms_norm_eps", EPSILON, 1e-6),
        tied=flag(raw, "tie_word_embeddings", family == "smollm3"),
        max_tokens=int(rope.positions * max(rope.factor, 1.0)) if rope.type == "dynamic" else rope.positions,
        qk_norm=family == "qwen3",
        qkv_bias=qkv_bias,
        o_bias=o_bias,
        mlp_bias=mlp_bias,
        windows=layer_windows(raw, family, L, rotates),
        rotates=rotates,
        rope=rope,
    )


def check_family(raw: dict[str, Any]) -> str:
    """The model_type, once it and `architectures` (where present) name a causal language model of a known family."""
    family = raw.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise UnsupportedConfig("model_type", family, ", ".join(FAMILIES))
    architectures = raw.get("architectures")
    if architectures is not None and architectures != [FAMILIES[family]]:
        given = architectures[0] if isinstance(architectures, list) and architectures else architectures
        raise UnsupportedConfig("architectures", given, FAMILIES[family])
    return family


def kv_heads(raw: dict[str, Any], family: str, N: int) -> int:
    """K: null means N for every family, an absent field only for llama (the others have fixed defaults: refused)."""
    every = family == "llama" or "num_key_value_heads" in raw
    K = whole(raw, "num_key_value_heads", N, N if every else None)
    if N % K:
        raise UnsupportedConfig("num_key_value_heads", K, f"a divisor of num_attention_heads = {N}")
    return K


def head_dim(raw: dict[str, Any], family: str, D: int, N: int) -> int:
    """H: given, or D / N. Qwen3 alone has a fixed default (128)."""
    H = raw.get("head_dim")
    if H is None:
        H = 128 if family == "qwen3" and "head_dim" not in raw else D / N
    if not is_whole(H) or H < 4 or H > 256 or H % 4:
        raise UnsupportedConfig("head_dim", H, "multiples of 4 from 4 to 256")
    return int(H)


def rope_layers(raw: dict[str, Any], family: str, L: int) -> tuple[bool, ...]:
    """Per layer, whether q and k are rotated. Only SmolLM3 leaves layers out (no_rope_layers: 1 = rotates)."""
    listed = raw.get("no_rope_layers")
    if family != "smollm3":
        refuse_unless(raw, "no_rope_layers", ())
        return (True,) * L
    if listed is None:
        interval = whole(raw, "no_rope_layer_interval", 1 << 20, 4)
        return tuple((layer + 1) % interval != 0 for layer in range(L))
    if not isinstance(listed, list) or len(listed) < L or any(not is_whole(x) or x not in (0, 1) for x in listed):
        raise UnsupportedConfig("no_rope_layers", listed, f"a list of at least {L} zeros and ones")
    return tuple(x == 1 for x in listed[:L])


def layer_windows(raw: dict[str, Any], family: str, L: int, rotates: tuple[bool, ...]) -> tuple[int, ...]:
    """Per layer, how many keys a query sees counting itself; 0 = all before it."""
    window = None
    if family == "mistral":
        window = optional_whole(raw, "sliding_window", 4096)
        slides = [True] * L
    elif family == "llama":
        refuse_unless(raw, "sliding_window", ())
        slides = [False] * L
    else:
        if flag(raw, "use_sliding_window", False):
            window = optional_whole(raw, "sliding_window", None if family == "smollm3" else 4096)
        slides = [not rotates[i] if family == "smollm3" else i >= first_window_layer(raw) for i in range(L)]
    slides = [slide and window is not None for slide in slides]
    types = raw.get("layer_types")
    if types is not None:
        names = ["full_attention"] + (["sliding_attention"] if window is not None else [])
        if not isinstance(types, list) or len(types) != L or any(t not in names for t in types):
            raise UnsupportedConfig("layer_types", types, f"a list of {L} entries, each {' or '.join(names)},")
        listed = [t == "sliding_attention" for t in types]
        if family == "mistral" and listed != slides:
            raise UnsupportedConfig("layer_types", types, "the one window of sliding_window in every layer")
        slides = listed
    return tuple(window if slide and window is not None else 0 for slide in slides)


def first_window_layer(raw: dict[str, Any]) -> int:
    """Qwen: layers below max_window_layers see everything."""
    zero = same(raw.get("max_window_layers"), 0)
    return 0 if zero else whole(raw, "max_window_layers", 1 << 20, 28)


def biases(raw: dict[str, Any], family: str) -> tuple[bool, bool, bool]:
    """Which products add a bias: (q, k and v; o; the feed-forward three)."""
    if family == "qwen2":
        refuse_unless(raw, "attention_bias", (True,))
        refuse_unless(raw, "mlp_bias", (False,))
        return True, False, False
    if family == "mistral":
        refuse_unless(raw, "attention_bias", (False,))
    attention = flag(raw, "attention_bias", False)
    if family in ("qwen3", "mistral"):
        refuse_unless(raw, "mlp_bias", (False,))
    return attention, attention, flag(raw, "mlp_bias", False)
