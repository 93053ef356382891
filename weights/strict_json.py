"""JSON as the checkpoint rules want it: UTF-8, one object, bounded size and depth, no key twice, no NaN.

`static/lib/strict_json.js` holds the same rules for headers in the same order (UTF-8, depth, grammar, duplicates), so
that a file which breaks several of them gets the same code from both readers.
"""

import json
import re
from dataclasses import dataclass

from weights.errors import BY_CODE, quoted

# Brackets outside strings; a string that never ends swallows the rest, as the page's scanner does.
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True)
class Number:
    """A number as it is written, so that 1, 1.0 and 1e0 can be told apart."""

    text: str

    def __str__(self) -> str:
        return self.text


def depth(text: str) -> int:
    """The deepest nesting of brackets outside strings."""
    level = deepest = 0
    for match in _BRACKETS.finditer(text):
        mark = match.group()
        if mark in "[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in "]}":
            level -= 1
    return deepest


def parse_object(data: bytes, kind: str, *, max_depth: int, as_written: bool = False) -> dict:
    """Parse one JSON object. kind ("header", "config", "index") picks the error classes.

    as_written: numbers come back as `Number`. Raises `<kind>-not-utf8`, `-too-deep`, `-not-json`, `-duplicate-key`.
    """
    named = {"header": "The safetensors header", "config": "config.json", "index": "The shard index"}[kind]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BY_CODE[f"{kind}-not-utf8"](
            f"{named} is not UTF-8: byte {error.start} does not decode; write it again as UTF-8 JSON."
        ) from None
    if depth(text) > max_depth:
        raise BY_CODE[f"{kind}-too-deep"](f"{named} nests more than {max_depth} levels; write it flat.")
    repeated: list[str] = []
    try:
        value = json.loads(text, **_hooks(repeated, as_written))
    except ValueError as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise BY_CODE[f"{kind}-not-json"](f"{named} is not JSON{where}; write it again as one JSON object.") from None
    if repeated:
        raise BY_CODE[f"{kind}-duplicate-key"](
            f"{named} has the key {quoted(repeated[0])} twice; each key may stand once, so remove one."
        )
    if not isinstance(value, dict):
        raise BY_CODE[f"{kind}-not-json"](f"{named} is JSON but not an object; it must begin with '{{'.")
    return value


def _hooks(repeated: list[str], as_written: bool) -> dict:
    """json.loads hooks: note repeated keys, refuse NaN and Infinity, keep numbers as written where asked."""

    def pairs(items: list[tuple[str, object]]) -> dict:
        found: dict[str, object] = {}
        for key, value in items:
            if key in found:
                repeated.append(key)
            found[key] = value
        return found

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    hooks = {"object_pairs_hook": pairs, "parse_constant": constant}
    return hooks | {"parse_int": Number, "parse_float": Number} if as_written else hooks
