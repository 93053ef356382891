"""The `playground` command, one module per subcommand: each has `add(subparsers)` and `run(args) -> exit status`."""

import sys


class CommandError(Exception):
    """A mistake of the person or a lack of the machine: one sentence on stderr and exit status 2."""


def tell(words: str) -> None:
    """Say on a terminal what takes time now: a large model on a CPU driver is silent for a minute otherwise."""
    if sys.stderr.isatty():
        print(f"playground: {words}", file=sys.stderr, flush=True)
