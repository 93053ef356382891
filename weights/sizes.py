"""Sizes for people: decimal megabytes, written the same on the command line and in the page.

A model's size is that of its weights. `megabytes` has a twin in static/lib/numbers.js; a test compares them.
"""

from collections.abc import Mapping

from weights.checkpoint import FileInfo


def weight_bytes(files: Mapping[str, FileInfo]) -> int:
    """Bytes of a model's weights. files: all of its files by name; tokenizer and config do not count."""
    return sum(info.bytes for name, info in files.items() if name.endswith(".safetensors"))


def megabytes(size_bytes: int) -> str:
    """97345678 -> `97 MB`; below one megabyte with a decimal, 512000 -> `0.5 MB`."""
    if size_bytes < 1e6:
        return f"{int(size_bytes / 1e5 + 0.5) / 10:.1f} MB"
    return f"{int(size_bytes / 1e6 + 0.5):,} MB"
