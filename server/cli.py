"""`playground <command>`: read the command line, run one command, turn expected failures into one sentence.

Exit status: 0 done, 1 the answer is no (parity out of tolerance, something missing in doctor), 2 the command could not
be carried out. Heavy packages are imported by the command that needs them, so `playground --help` answers at once.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import MutableMapping
from typing import NoReturn

from server import __version__
from server.commands import CommandError, bench, doctor, models, parity, pull, serve, trace, train_tiny

COMMANDS = (serve, models, doctor, pull, trace, parity, bench, train_tiny)

# Errors whose message is written for people, by the module that defines them; looked up only if that module was loaded.
EXPECTED = {
    "bench.errors": ("BenchError",),
    "server.settings": ("BadSettings",),
    "weights.errors": ("CheckpointError",),
    "webgpu.config": ("UnsupportedConfig",),
    "webgpu.layout": ("WeightsMismatch",),
    "webgpu.device": ("DeviceError",),
    "webgpu.kernels": ("KernelError",),
    "webgpu.ops": ("UnsupportedShape",),
    "webgpu.runtime": ("RunError", "Cancelled"),
    "webgpu.trace": ("BadQuery",),
    "webgpu.variants": ("UnknownVariant",),
    "python_ref.errors": ("OracleError",),
}


class OneSentenceParser(argparse.ArgumentParser):
    """argparse, but a mistake costs one line on stderr instead of the usage text and a line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` explains.\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = OneSentenceParser(prog="playground", description="Attention, looked at and proved.")
    top.add_argument("--version", action="version", version=__version__)
    subparsers = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(subparsers)
    return top


def expected_errors() -> tuple[type[BaseException], ...]:
    """The classes of EXPECTED that can have been raised so far."""
    found = [
        getattr(sys.modules[module], name)
        for module, names in EXPECTED.items()
        if module in sys.modules
        for name in names
    ]
    return (CommandError, *found)


def quieten(environ: MutableMapping[str, str]) -> None:
    """Keep libraries from spinning and from talking; what the user has set stays."""
    # torch's threads otherwise spin while they wait for each other: on busy cores that made it eight times slower.
    environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Graphics drivers look for a screen, and on a machine without one say so on stderr, though nothing is wrong.
    environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    quieten(os.environ)
    args = parser().parse_args(argv)
    try:
        return args.run(args)
    except BrokenPipeError:  # `playground models | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("playground: stopped.", file=sys.stderr)
        return 130
    except Exception as error:
        if not isinstance(error, expected_errors()):
            raise
        print(f"playground: {one_line(str(error))}", file=sys.stderr)
        return 2


def one_line(text: str) -> str:
    """The message on one line, without characters that would move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


if __name__ == "__main__":
    sys.exit(main())
