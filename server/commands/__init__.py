"""The `playground` command, one module per subcommand: each has `add(subparsers)` and `run(args) -> exit status`."""


class CommandError(Exception):
    """A mistake of the person or a lack of the machine: one sentence on stderr and exit status 2."""
