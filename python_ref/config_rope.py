"""RoPE as config.json states it, old and new.

    "rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}                        transformers 4
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0}                transformers 5

Both are read; a file that says two different things is refused, and so is a key that this module does not know.
"""

from .config_fields import Fields
from .rope_scaling import Dynamic, Linear, Llama3, Scaling, Unscaled, Yarn, yarn_magnitude

TYPES = ("default", "linear", "dynamic", "llama3", "yarn")
KNOWN = {
    *("type", "rope_type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings"),
    *("low_freq_factor", "high_freq_factor"),
    *("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
}


def read_rope(config: Fields, default_base: float, H: int, max_tokens: int) -> tuple[float, Scaling]:
    """The base and the scaling rule. H: head dimension. Raises UnsupportedConfig naming the field."""
    rope = _rope_object(config)
    for key in rope.raw:
        if key not in KNOWN:
            raise rope.refuse(key, "a RoPE setting that this project knows")
    rope.only("partial_rotary_factor", 1, 1.0)
    theta = rope if rope.get("rope_theta") is not None else config
    base = theta.number("rope_theta", default_base)
    if base <= 1:
        raise theta.refuse("rope_theta", "a number above 1")
    return base, _scaling(rope, config, H, max_tokens)


def _rope_object(config: Fields) -> Fields:
    """`rope_parameters` or `rope_scaling`, whichever is there."""
    found = [Fields(config.raw[name], f"{name}.") for name in ("rope_parameters", "rope_scaling") if config.get(name)]
    for rope in found:
        if not isinstance(rope.raw, dict):
            raise config.refuse(rope.prefix[:-1], "an object")
    if len(found) == 2 and found[0].raw != found[1].raw:
        raise config.refuse("rope_scaling", "the same as rope_parameters")
    rope = found[0] if found else Fields({}, "rope_parameters.")
    outside = config.get("rope_theta")
    if outside is not None and rope.get("rope_theta", outside) != outside:
        raise config.refuse("rope_theta", "the same as rope_parameters.rope_theta")
    return rope


def _scaling(rope: Fields, config: Fields, H: int, max_tokens: int) -> Scaling:
    """The rule that `rope_type` (or the older `type`) names."""
    name = "rope_type" if rope.get("rope_type") is not None else "type"
    kind = rope.get(name, "default")
    if kind not in TYPES or rope.get("type", kind) != kind:
        raise rope.refuse(name, "one of " + ", ".join(TYPES))
    if kind == "default":
        return Unscaled()
    factor = rope.number("factor")
    if kind == "linear":
        return Linear(factor)
    if kind == "dynamic":
        if H == 2:
            raise rope.refuse(name, "another rope_type for a head dimension of 2")
        return Dynamic(factor, max_tokens)
    trained = _trained_tokens(rope, config, max_tokens)
    if kind == "llama3":
        low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
        if high <= low:
            raise rope.refuse("high_freq_factor", "a number above low_freq_factor")
        return Llama3(factor, low, high, trained)
    return _yarn(rope, factor, trained)


def _trained_tokens(rope: Fields, config: Fields, max_tokens: int) -> int:
    """`original_max_position_embeddings`, which some files keep outside the RoPE object."""
    name = "original_max_position_embeddings"
    outside = config.integer(name, rope.integer(name, max_tokens))
    if rope.get(name, outside) != outside:
        raise rope.refuse(name, f"the same as {name} outside it")
    return outside


def _yarn(rope: Fields, factor: float, trained: int) -> Yarn:
    """YaRN's settings with its defaults."""
    mscale, mscale_all_dim = (
        rope.number(name) if rope.get(name) is not None else None for name in ("mscale", "mscale_all_dim")
    )
    return Yarn(
        factor=factor,
        trained_tokens=trained,
        magnitude=rope.number("attention_factor", yarn_magnitude(factor, mscale, mscale_all_dim)),
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        truncate=rope.flag("truncate", True),
    )
