"""RoPE as config.json states it, old and new.

    "rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}                        transformers 4
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0}                transformers 5

Where a file says two things, transformers 5 decides: `rope_scaling` before `rope_parameters`, `rope_type` before
`type`, `rope_theta` inside before outside, `original_max_position_embeddings` outside before inside. A setting that
the rope_type does not have is refused.
"""

from .config_fields import Fields
from .rope_scaling import Dynamic, Linear, Llama3, Scaling, Unscaled, Yarn, yarn_magnitude

TRAINED = "original_max_position_embeddings"
SETTINGS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", TRAINED, "low_freq_factor", "high_freq_factor"),
    "yarn": (
        *("factor", TRAINED, "attention_factor", "beta_fast", "beta_slow"),
        *("mscale", "mscale_all_dim", "truncate"),
    ),
}
COMMON = ("type", "rope_type", "rope_theta", "partial_rotary_factor")


def read_rope(config: Fields, default_base: float, H: int, max_tokens: int) -> tuple[float, Scaling]:
    """The base and the scaling rule. H: head dimension. Raises UnsupportedConfig naming the field."""
    name = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    raw = config.get(name, {})
    if not isinstance(raw, dict):
        raise config.refuse(name, "an object")
    rope = Fields(raw, f"{name}.")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if not isinstance(kind, str) or kind not in SETTINGS:
        raise rope.refuse("rope_type" if rope.get("rope_type") is not None else "type", "one of " + ", ".join(SETTINGS))
    for key in raw:
        if key not in (*COMMON, *SETTINGS[kind]):
            rope.only(key)
    rope.only("partial_rotary_factor", 1, 1.0)
    base = _base(rope, _base(config, default_base))
    return base, _scaling(kind, rope, config, H, max_tokens)


def _base(fields: Fields, default: float) -> float:
    """`rope_theta`. Above 1: slower pairs come later, and yarn divides by its logarithm."""
    return fields.number("rope_theta", default, least=1.01, most=1e12)


def _scaling(kind: str, rope: Fields, config: Fields, H: int, max_tokens: int) -> Scaling:
    """The rule of that name with its numbers."""
    if kind == "default":
        return Unscaled()
    if kind == "linear":
        return Linear(rope.number("factor"))
    if kind == "dynamic":
        if H == 2:
            raise config.refuse("head_dim", "a head dimension above 2 with dynamic scaling", H)
        return Dynamic(rope.number("factor"), max_tokens)
    trained = config.integer(TRAINED, rope.integer(TRAINED, max_tokens))
    if kind == "llama3":
        low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
        if high <= low:
            raise rope.refuse("high_freq_factor", "a number above low_freq_factor")
        return Llama3(rope.number("factor"), low, high, trained)
    return _yarn(rope, rope.number("factor", max_tokens / trained), trained)


def _yarn(rope: Fields, factor: float, trained: int) -> Yarn:
    """YaRN's settings with its defaults. mscale counts only together with mscale_all_dim."""
    magnitude = yarn_magnitude(factor)
    if rope.get("mscale") is not None and rope.get("mscale_all_dim") is not None:
        magnitude = yarn_magnitude(
            factor, *(rope.number(name, least=0.01, most=100) for name in ("mscale", "mscale_all_dim"))
        )
    return Yarn(
        factor=factor,
        trained_tokens=trained,
        magnitude=rope.number("attention_factor", magnitude),
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        truncate=rope.flag("truncate", True),
    )
