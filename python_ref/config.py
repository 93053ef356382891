"""What a model is made of, read from Hugging Face's config.json.

A config that would not be run exactly is refused with one sentence naming the field. A field that is absent takes the
default that transformers gives it for that family; fields that do not change the forward pass are not looked at.
"""

from dataclasses import dataclass

from .config_fields import Fields
from .config_rope import read_rope
from .errors import UnsupportedConfig
from .families import FAMILIES, NEUTRAL, Family
from .rope_scaling import Scaling

MOST_LAYERS = 1024  # ten times the deepest model of these families; a hostile file may not ask for more


@dataclass(frozen=True)
class ModelConfig:
    """The numbers that fix a forward pass, in the notation of the whole project."""

    family: str
    V: int  # vocabulary
    D: int  # model width
    F: int  # width of the feed-forward layer
    L: int  # layers
    N: int  # query heads
    K: int  # key/value heads, a divisor of N
    H: int  # head dimension, even; N * H need not be D
    eps: float  # RMSNorm's epsilon
    tied: bool  # the unembedding is the embedding
    qk_norm: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    max_tokens: int  # the context the config promises; longer prompts run all the same
    rope_base: float
    rope_scaling: Scaling
    rotary: tuple[bool, ...]  # per layer: does it rotate queries and keys
    windows: tuple[int, ...]  # per layer: how many keys a query sees, 0 for all
    sinks: int = 0  # keys that stay visible however far a window moves; no supported family has any

    @classmethod
    def from_dict(cls, raw: dict) -> "ModelConfig":
        """Read a parsed config.json. Raises UnsupportedConfig naming the field."""
        config = Fields(raw)
        name = config.get("model_type")
        if not isinstance(name, str) or name not in FAMILIES:
            raise config.refuse("model_type", "one of " + ", ".join(FAMILIES))
        family = FAMILIES[name]
        _refuse_what_others_have(config, family)
        N, L = config.integer("num_attention_heads"), config.integer("num_hidden_layers", most=MOST_LAYERS)
        D = config.integer("hidden_size")
        H = _head_dim(config, family, D, N)
        max_tokens = config.integer("max_position_embeddings")
        base, scaling = read_rope(config, family.rope_theta, H, max_tokens)
        rotary = _rotary(config, name, L)
        attention_bias = _bias(config, family, "attention_bias")
        return cls(
            family=name,
            V=config.integer("vocab_size"),
            D=D,
            F=config.integer("intermediate_size"),
            L=L,
            N=N,
            K=_kv_heads(config, family, N),
            H=H,
            eps=config.number("rms_norm_eps", 1e-6, least=1e-30, most=1),
            tied=config.flag("tie_word_embeddings", family.tied),
            qk_norm=family.qk_norm,
            qkv_bias=family.qkv_bias or attention_bias,
            o_bias=attention_bias,
            mlp_bias=_bias(config, family, "mlp_bias"),
            max_tokens=max_tokens,
            rope_base=base,
            rope_scaling=scaling,
            rotary=rotary,
            windows=_windows(config, name, rotary),
        )


def _refuse_what_others_have(config: Fields, family: Family) -> None:
    """Refuse settings that change the forward pass and that this family does not have."""
    for name, allowed in NEUTRAL.items():
        config.only(name, *allowed)
    if config.get("architectures") not in (None, [family.architecture]):
        raise config.refuse("architectures", f'["{family.architecture}"]')
    if "attention_bias" not in family.bias_switches:
        config.only("attention_bias", family.qkv_bias)  # stating what it does anyway is harmless
    if "mlp_bias" not in family.bias_switches:
        config.only("mlp_bias", False)


def _bias(config: Fields, family: Family, name: str) -> bool:
    """A bias switch, false for a family that does not listen to it."""
    return name in family.bias_switches and config.flag(name, False)


def _kv_heads(config: Fields, family: Family, N: int) -> int:
    """K: stated, the family's default when absent, N when null."""
    absent = "num_key_value_heads" not in config.raw
    K = config.integer("num_key_value_heads", family.kv_heads or N if absent else N)
    if N % K:
        raise UnsupportedConfig("num_key_value_heads", K, f"a divisor of num_attention_heads ({N})")
    return K


def _head_dim(config: Fields, family: Family, D: int, N: int) -> int:
    """H: stated, the family's default, or D / N."""
    if family.head_dim is None and config.get("head_dim") is None and D % N:
        raise config.refuse("hidden_size", f"a multiple of num_attention_heads ({N})")
    H = config.integer("head_dim", family.head_dim or D // N)
    if H % 2:
        raise UnsupportedConfig("head_dim", H, "an even number (RoPE turns pairs)")
    return H


def _rotary(config: Fields, name: str, L: int) -> tuple[bool, ...]:
    """Per layer: does it rotate? SmolLM3 leaves out every fourth layer, or those where its list has a 0."""
    if name != "smollm3":
        config.only("no_rope_layers")
        config.only("no_rope_layer_interval")
        return (True,) * L
    listed = config.get("no_rope_layers")
    if listed is None:
        interval = config.integer("no_rope_layer_interval", 4)
        return tuple((layer + 1) % interval != 0 for layer in range(L))
    if not isinstance(listed, list) or len(listed) < L or any(flag not in (0, 1) for flag in listed):
        raise config.refuse("no_rope_layers", f"a list of at least {L} ones (with RoPE) and zeros (without)")
    return tuple(flag == 1 for flag in listed[:L])


def _windows(config: Fields, name: str, rotary: tuple[bool, ...]) -> tuple[int, ...]:
    """Per layer: the length of its sliding window, 0 for none."""
    if name == "llama":
        config.only("sliding_window")
    switched_on = name == "mistral" or (name != "llama" and config.flag("use_sliding_window", False))
    window = _window_length(config, FAMILIES[name].window) if switched_on else 0
    if name == "smollm3":
        sliding = [window > 0 and not rotates for rotates in rotary]
    else:
        first = 0 if name == "mistral" else config.integer("max_window_layers", 28, least=0)
        sliding = [window > 0 and layer >= first for layer in range(len(rotary))]
    if name in ("llama", "mistral") or window == 0:
        _layer_types(config, len(sliding), must_be=sliding)
    else:
        sliding = _layer_types(config, len(sliding)) or sliding
    return tuple(window if slides else 0 for slides in sliding)


def _window_length(config: Fields, default: int) -> int:
    """`sliding_window`: the family's default when absent, none when null."""
    if config.raw.get("sliding_window", default or None) is None:
        return 0
    return config.integer("sliding_window", default)


def _layer_types(config: Fields, L: int, must_be: list[bool] | None = None) -> list[bool] | None:
    """Which layers slide as `layer_types` lists them, None when absent. must_be: the only list that is accepted."""
    listed = config.get("layer_types")
    if listed is None:
        return None
    sliding = {"full_attention": False, "sliding_attention": True}
    if not isinstance(listed, list) or len(listed) != L or any(word not in list(sliding) for word in listed):
        raise config.refuse("layer_types", f"a list of {L} times full_attention or sliding_attention")
    layers = [sliding[word] for word in listed]
    if must_be is not None and layers != must_be:
        raise config.refuse("layer_types", "a list that agrees with sliding_window and use_sliding_window")
    return layers
