"""The options of one measurement, for `playground bench` and `python -m bench` alike."""

import argparse
from typing import Any

from bench.arguments import OPERATIONS

SIZES = sorted({name for table in OPERATIONS.values() for name in table})


def add_options(parser: argparse.ArgumentParser) -> None:
    """--op, --variant and every size; what is left out takes its default."""
    parser.add_argument("--op", help=f"one operation: {', '.join(OPERATIONS)}")
    parser.add_argument("--variant", help="the variant to measure; left out, the one that the product chooses here")
    for name in SIZES:
        takers = [op for op, table in OPERATIONS.items() if name in table]
        parser.add_argument(f"--{name}", type=number, help=f"of {', '.join(takers)}")


def number(text: str) -> int | str:
    """A whole number where it is one; anything else stays as it is for arguments.read to judge."""
    try:
        return int(text)
    except ValueError:
        return text


def given(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for, without what was left out."""
    values = {name: getattr(args, name) for name in ("op", "variant", *SIZES)}
    return {name: value for name, value in values.items() if value is not None}
