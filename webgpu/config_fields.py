"""Reading one field of config.json: the right kind and range, or one sentence that names it.

Null is read as absent. 4 and 4.0 are the same whole number, true is never 1: what JSON and JavaScript cannot tell
apart is one thing here too. `static/gpu/config_fields.js` mirrors this file word for word.
"""

import json
import math
from decimal import Decimal
from typing import Any

# What each kind of number may be, ends included: wide enough for every model there is, narrow enough that no angle,
# frequency or reciprocal root leaves what float32 (epsilon) and float64 (angles) hold.
Span = tuple[float, float]
EPSILON: Span = (1e-30, 1.0)
BASE: Span = (1.01, 1e12)  # yarn divides by its logarithm
FACTOR: Span = (1e-3, 1e6)
MSCALE: Span = (0.01, 100.0)  # so that the attention factor inferred from two of them is a FACTOR


class UnsupportedConfig(ValueError):
    """A field of config.json that the kernels do not run exactly."""

    code = "unsupported-config"

    def __init__(self, field: str, value: Any, allowed: str) -> None:
        given = f"config.json has no {field}" if value is None else f"config.json has {field} = {show(value)}"
        super().__init__(f"{given}, and the kernels run {allowed} there: choose another model.")
        self.field, self.value, self.allowed = field, value, allowed


def is_whole(value: Any) -> bool:
    """Whether a JSON value is a whole number (4 and 4.0 alike; never a boolean)."""
    if isinstance(value, float):
        return math.isfinite(value) and value == int(value)
    return isinstance(value, int) and not isinstance(value, bool)


def whole(raw: dict[str, Any], field: str, most: int, fallback: int | None = None, prefix: str = "") -> int:
    """A whole number from 1 to `most`; absent or null takes the fallback, and is refused without one."""
    value = raw.get(field)
    value = fallback if value is None else value
    if not is_whole(value) or not 1 <= value <= most:
        raise UnsupportedConfig(prefix + field, value, f"whole numbers from 1 to {most}")
    return int(value)


def optional_whole(raw: dict[str, Any], field: str, absent: int | None) -> int | None:
    """Like whole, but null means none while an absent field takes the family's default."""
    if field in raw and raw[field] is None:
        return None
    return absent if field not in raw and absent is None else whole(raw, field, 1 << 24, absent)


def number(raw: dict[str, Any], field: str, span: Span, fallback: float | None = None, prefix: str = "") -> float:
    """A number within `span`; absent or null takes the fallback, and is refused without one."""
    value = raw.get(field)
    value = fallback if value is None else value
    if not isinstance(value, int | float) or isinstance(value, bool) or not span[0] <= value <= span[1]:
        raise UnsupportedConfig(prefix + field, value, f"numbers from {show(span[0])} to {show(span[1])}")
    return float(value)


def flag(raw: dict[str, Any], field: str, fallback: bool, prefix: str = "") -> bool:
    """true or false; absent or null takes the fallback."""
    value = raw.get(field)
    if value is None:
        return fallback
    if not isinstance(value, bool):
        raise UnsupportedConfig(prefix + field, value, "true or false")
    return value


def refuse_unless(raw: dict[str, Any], field: str, neutral: tuple[Any, ...], prefix: str = "") -> None:
    """Refuse a field that is present, not null and not one of the values that leave the numbers alone."""
    value = raw.get(field)
    if value is not None and not any(same(value, n) for n in neutral):
        raise UnsupportedConfig(
            prefix + field, value, " or ".join(show(n) for n in neutral) if neutral else "no such field"
        )


def show(value: Any) -> str:
    """One JSON value in at most about 60 characters of ASCII: containers are described, long strings are cut."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return show_number(value)
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def show_number(value: int | float) -> str:
    """A number as JavaScript's String() prints it (0.00001 where Python says 1e-05); beyond 2^53 only described."""
    if not abs(value) <= 2**53:
        return "a number beyond 2^53"
    if value == int(value):
        return str(int(value))
    if abs(value) >= 1e-6:
        return format(Decimal(repr(float(value))), "f")
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa}e-{int(exponent[1:])}"


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0 but never true."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b
