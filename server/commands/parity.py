"""`playground parity`."""


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("parity")
    command.set_defaults(run=run)


def run(args) -> int:
    """Being written."""
    from server.commands import CommandError

    raise CommandError("This command is being written.")
