"""What a measurement can be asked: operations, their sizes with defaults and limits, and one sentence for the rest.

static/bench/arguments.js has the same table and the same sentences; a test compares them.
"""

import json
from collections.abc import Mapping
from typing import Any

from bench.errors import BadArguments

# Name -> (default, least, most), or the words that are allowed with the default first.
HEADS = {"N": (9, 1, 128), "K": (3, 1, 128), "H": (64, 4, 256)}
FORMATS = ("f16", "f32", "bf16", "q4_1", "q8_0")
OPERATIONS: dict[str, dict[str, tuple]] = {
    "attention": {"T": (512, 2, 8192), **HEADS},
    "decode": {"T": (2048, 1, 8192), **HEADS},
    "heatmap": {"T": (2048, 2, 8192), **HEADS, "window": (None, 1, 8192), "pixels": (None, 1, 8192)},
    "matmul": {"T": (64, 1, 8192), "d_in": (576, 8, 16384), "d_out": (1536, 1, 65536), "format": FORMATS},
    "lens": {"T": (4, 1, 512), "D": (576, 8, 8192), "V": (49152, 16, 200000), "format": FORMATS},
    "model": {"T": (64, 2, 2048), "tokens": (8, 2, 512)},
}
# The words of the table mean the same operations.
ALSO = {
    "prefill": "attention", "attention prefill": "attention", "attention decode": "decode",
    "heatmap window": "heatmap", "window": "heatmap", "matrix product": "matmul", "product": "matmul",
    "whole model": "model",
}  # fmt: skip
MOST_BYTES = 128 << 20  # WebGPU's default limit of a binding


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one measurement with every size filled in: {"op", "variant", sizes...}.

    Raises BadArguments, whose message says what was given and what is allowed.
    """
    op = "attention" if given.get("op") is None else given["op"]
    op = ALSO.get(op, op) if isinstance(op, str) else op
    if not isinstance(op, str) or op not in OPERATIONS:
        raise BadArguments(f"op is {shown(op)}; allowed are {', '.join(OPERATIONS)}.")
    table = OPERATIONS[op]
    for name in given:
        if name not in ("op", "variant") and name not in table:
            raise BadArguments(f"{op} takes no {name}; it takes {', '.join([*table, 'variant'])}.")
    variant = given.get("variant")
    if variant is not None and not isinstance(variant, str):
        raise BadArguments("variant is no text; it is the name of a variant, or left out.")
    found = {"op": op, "variant": variant}
    for name, allowed in table.items():
        value = given.get(name)
        found[name] = word(op, name, value, allowed) if isinstance(allowed[0], str) else size(op, name, value, allowed)
    return together(found)


def shown(value: Any) -> str:
    """A given value in a sentence, as JSON writes it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return type(value).__name__


def word(op: str, name: str, value: Any, allowed: tuple) -> str:
    """One of the allowed words; the first when nothing is given."""
    if value is None:
        return allowed[0]
    if value not in allowed:
        raise BadArguments(f"{name} is {shown(value)}; {op} takes {', '.join(allowed)}.")
    return value


def size(op: str, name: str, value: Any, allowed: tuple) -> int | None:
    """A whole number within its limits; the default when nothing is given."""
    default, least, most = allowed
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadArguments(f"{name} is {shown(value)}; {op} takes whole numbers from {least} to {most}.")
    return value


def together(found: dict[str, Any]) -> dict[str, Any]:
    """Rules between sizes, and defaults that depend on them."""
    if "K" in found and found["N"] % found["K"]:
        raise BadArguments(f"N is {found['N']} and K is {found['K']}; N must be a multiple of K.")
    if found.get("H", 4) % 4:
        raise BadArguments(f"H is {found['H']}; the kernels take multiples of 4.")
    if found["op"] == "heatmap":
        found["window"] = found["window"] or found["T"]
        if found["window"] > found["T"]:
            raise BadArguments(f"window is {found['window']}; a pattern of {found['T']} tokens has no more rows.")
        found["pixels"] = found["pixels"] or found["window"]
        if found["pixels"] > found["window"]:
            raise BadArguments(f"pixels is {found['pixels']}; a window of {found['window']} rows has no more pixels.")
    for name in ("d_in", "D"):
        if found.get(name, 8) % 8:
            raise BadArguments(f"{name} is {found[name]}; the kernels take multiples of 8.")
        if str(found.get("format")).startswith("q") and found.get(name, 32) % 32:
            raise BadArguments(f"{name} is {found[name]}; {found['format']} keeps blocks of 32.")
    needed = largest(found)
    if needed > MOST_BYTES:
        raise BadArguments(f"these sizes need a buffer of {needed} bytes; a device binds {MOST_BYTES}, so take less.")
    return found


def largest(found: Mapping[str, Any]) -> int:
    """Bytes of the largest buffer that can pass the limit, a matrix counted as the float32 that its check keeps.

    Others (log-sum-exp, decode's and the lens's scratch, lists of tokens) stay below it at every size allowed above.
    """
    T, H, d_in, d_out, D, V = (found.get(name) or 0 for name in ("T", "H", "d_in", "d_out", "D", "V"))
    heads = found.get("K" if found["op"] == "decode" else "N", 0)  # a decode has one query, and T keys
    pixels = found.get("pixels", 0)
    return 4 * max(T * heads * H, T * d_in, T * d_out, d_out * d_in, T * D, V * D, pixels**2)
