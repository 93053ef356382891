"""Rotary position embedding (Su et al. 2021), half-split as in Hugging Face checkpoints: angles and their tables.

    angle[p, i] = p * frequency[i]        frequency[i] = theta^(-2i/H), i < H/2, then stretched by the scaling in use
    cos, sin [positions, H/2] f32         times the attention factor, which only YaRN sets
Scaling: linear (positions divided by factor), dynamic (NTK: theta grows with the whole length once it passes the
trained one), llama3 (low frequencies divided, high ones kept, a ramp between), yarn (the same idea by rotations over
the trained length, Peng et al. 2023). Angles in double precision, rounded to f32 once, at the end.
`static/gpu/rope.js` mirrors this.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from webgpu.config_fields import BASE, FACTOR, MSCALE, UnsupportedConfig, flag, number, refuse_unless, whole

ROPE_KEYS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": (
        "factor",
        "original_max_position_embeddings",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "truncate",
    ),
}


@dataclass(frozen=True)
class Rope:
    """`type` and its numbers. positions: max_position_embeddings; original: the length before scaling; in tokens."""

    type: str
    theta: float
    positions: int
    factor: float = 1.0
    low: float = 1.0
    high: float = 1.0
    original: int = 0
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True


def parse_rope(raw: dict[str, Any], family: str) -> Rope:
    """RoPE of a config: the nested fields win over `rope_theta` at the top level, as transformers reads them."""
    name = "rope_scaling" if raw.get("rope_scaling") else "rope_parameters"
    given = raw.get(name)
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise UnsupportedConfig(name, given, "an object")
    kind = given.get("rope_type") if given.get("rope_type") is not None else given.get("type")
    kind = "default" if kind is None else kind
    if not isinstance(kind, str) or kind not in ROPE_KEYS:
        raise UnsupportedConfig(f"{name}.rope_type", kind, ", ".join(ROPE_KEYS))
    refuse_unless(given, "partial_rotary_factor", (1,), name + ".")
    known = ("rope_type", "type", "rope_theta", "partial_rotary_factor", *ROPE_KEYS[kind])
    for key in sorted(given):
        if key not in known and given[key] is not None:
            field = key if key.isidentifier() and key.isascii() and len(key) <= 40 else "field with a strange name"
            raise UnsupportedConfig(f"{name}.{field}", given[key], f"no such field with rope_type {kind}")
    positions = whole(raw, "max_position_embeddings", 1 << 24)
    theta = number(raw, "rope_theta", BASE, 2_000_000.0 if family == "smollm3" else 10_000.0)
    rope = {"type": kind, "theta": number(given, "rope_theta", BASE, theta, name + "."), "positions": positions}
    if kind in ("linear", "dynamic"):
        rope["factor"] = number(given, "factor", FACTOR, None, name + ".")
    if kind in ("llama3", "yarn"):
        inner = whole(given, "original_max_position_embeddings", 1 << 24, positions, name + ".")
        rope["original"] = whole(raw, "original_max_position_embeddings", 1 << 24, inner)
        ratio = positions / rope["original"] if kind == "yarn" else None
        rope["factor"] = number(given, "factor", FACTOR, ratio, name + ".")
    if kind == "llama3":
        rope["low"] = number(given, "low_freq_factor", FACTOR, None, name + ".")
        rope["high"] = number(given, "high_freq_factor", FACTOR, None, name + ".")
        if rope["high"] <= rope["low"]:
            raise UnsupportedConfig(f"{name}.high_freq_factor", rope["high"], "a number above low_freq_factor")
    if kind == "yarn":
        rope |= yarn_fields(given, rope["factor"], name + ".")
    return Rope(**rope)


def yarn_fields(given: dict[str, Any], factor: float, prefix: str) -> dict[str, Any]:
    """The numbers only YaRN has. attention_factor: given, or 0.1 ln(factor) + 1 (Peng et al. 2023, equation 22)."""

    def temperature(mscale: float) -> float:
        return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0

    inferred = temperature(1.0)
    if given.get("mscale") is not None and given.get("mscale_all_dim") is not None:
        inferred = temperature(number(given, "mscale", MSCALE, None, prefix))
        inferred /= temperature(number(given, "mscale_all_dim", MSCALE, None, prefix))
    return {
        "attention_factor": number(given, "attention_factor", FACTOR, inferred, prefix),
        "beta_fast": number(given, "beta_fast", FACTOR, 32.0, prefix),
        "beta_slow": number(given, "beta_slow", FACTOR, 1.0, prefix),
        "truncate": flag(given, "truncate", True, prefix),
    }


def frequencies(rope: Rope, H: int, total: int) -> np.ndarray:
    """Radians per position, float64 [H/2]. total: the whole length in tokens, which only dynamic scaling looks at."""
    theta = rope.theta
    if rope.type == "dynamic" and total > rope.positions:
        theta *= (rope.factor * total / rope.positions - (rope.factor - 1)) ** (H / (H - 2))
    plain = np.array([theta ** -(2 * i / H) for i in range(H // 2)])
    if rope.type == "linear":
        return plain / rope.factor
    if rope.type == "llama3":
        return np.array([llama3(rope, f) for f in plain])
    if rope.type == "yarn":
        keep = 1 - yarn_ramp(rope, H)
        return plain / rope.factor * (1 - keep) + plain * keep
    return plain


def llama3(rope: Rope, frequency: float) -> float:
    """Divide frequencies that turn less than `low` times over the original length; ramp up to `high` turns."""
    turns = rope.original * frequency / (2 * math.pi)
    if turns < rope.low:
        return frequency / rope.factor
    if turns > rope.high:
        return frequency
    smooth = (turns - rope.low) / (rope.high - rope.low)
    return (1 - smooth) * frequency / rope.factor + smooth * frequency


def yarn_ramp(rope: Rope, H: int) -> np.ndarray:
    """0 where a frequency is kept, 1 where it is divided by the factor, [H/2]."""

    def index(turns: float) -> float:
        return H * math.log(rope.original / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = index(rope.beta_fast), index(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, H - 1)
    if low == high:
        high += 0.001
    return np.array([min(max((i - low) / (high - low), 0.0), 1.0) for i in range(H // 2)])


def tables(rope: Rope, H: int, start: int, count: int, total: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of positions start .. start+count-1, float32 [count, H/2] each."""
    angles = np.arange(start, start + count, dtype=np.float64)[:, None] * frequencies(rope, H, total)[None, :]
    cos, sin = np.cos(angles) * rope.attention_factor, np.sin(angles) * rope.attention_factor
    return cos.astype(np.float32), sin.astype(np.float32)
