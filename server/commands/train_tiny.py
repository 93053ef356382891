"""`playground train-tiny`: make the embedded model again, or measure it. The work is done in `weights/training`."""

import argparse

from server.commands.trace import need_oracle
from weights.training.command import describe, perform


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("train-tiny", help="train or measure the embedded model", description=__doc__)
    describe(command, run)


def run(args: argparse.Namespace) -> int:
    """The exit status of weights.training."""
    need_oracle()
    return perform(args)
