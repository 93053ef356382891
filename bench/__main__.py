"""`python -m bench`: everything side by side in one table; with --op one operation on every place. See README.md."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from bench import arguments, options
from bench.browser import ROOT
from bench.errors import BadArguments, BenchError
from bench.places import PLACES, has_gpu, open_place
from bench.table import into_readme, render

README = ROOT / "README.md"
ON = "native,swiftshader,chromium"
# Options of the whole table, by the name that argparse keeps them under.
OF_THE_TABLE = {
    "quick": "--quick", "without_peers": "--without-peers", "install_peers": "--install-peers",
    "going_on": "--continue", "readme": "--readme",
}  # fmt: skip
COLUMNS = ("where", "ms", "min ms", "wait ms", "GFLOP/s", "GB/s", "of FMA", "of read", "error", "variant: kernels")


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when every place gave a figure, 1 when one did not, 2 for arguments that make no sense."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    options.add_options(parser)
    parser.add_argument("--on", help=f"with --op: places, of {', '.join(PLACES)} ({ON})")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--quick", action="store_true", help="a minute's table of small sizes")
    parser.add_argument("--without-peers", action="store_true", help="only our own kernels")
    parser.add_argument("--install-peers", action="store_true", help="fetch the peers first (about 1 GB)")
    parser.add_argument("--continue", action="store_true", dest="going_on", help="go on with a run that was stopped")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md as well")
    args = parser.parse_args(argv)
    try:
        check(args)
        return table(args) if args.op is None else one(args)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


def check(args: argparse.Namespace) -> None:
    """Raises BadArguments for options that would be ignored, or would spoil what another one writes."""
    of_one = {f"--{name}": value for name, value in options.given(args).items()} | {"--on": args.on}
    ones = [name for name, value in of_one.items() if value is not None]
    tables = [name for key, name in OF_THE_TABLE.items() if getattr(args, key)]
    if args.op is None and ones:
        raise BadArguments(
            f"{', '.join(ones)} without --op: the whole table has sizes, variants and places of its own; name one "
            f"operation with --op, of {', '.join(arguments.OPERATIONS)}, or leave it out."
        )
    if args.op is not None:
        if tables:
            raise BadArguments(
                f"{', '.join(tables)} with --op: that is for the whole table, and one operation takes its sizes, "
                f"--variant, --on and --json; leave it out, or leave out --op."
            )
        arguments.read(options.given(args))
    for name in ("--continue", "--readme") if args.quick else ():
        if name in tables:
            raise BadArguments(f"{name} with --quick: a quick run is neither kept nor shown; leave one of them out.")


def table(args: argparse.Namespace) -> int:
    """Everything side by side."""
    from bench.full import collect, stopped
    from bench.peers.install import install, installed

    record = stopped() if args.going_on else None  # refused before anything is fetched
    if args.install_peers:
        install()
    peers = installed() and not args.without_peers
    if not peers and not args.without_peers:
        print("bench: no peers here; --install-peers fetches them, --without-peers says so.", file=sys.stderr)

    def log(words: str) -> None:
        print(f"-- {words}", file=sys.stderr, flush=True)

    found = collect(quick=args.quick, peers=peers, log=log, record=record)
    report = render(found)
    print(json.dumps(found, indent=1) if args.json else report)
    if args.readme:
        README.write_text(into_readme(README.read_text("utf-8"), report), "utf-8")
    return 0


def one(args: argparse.Namespace) -> int:
    """One operation on every place."""
    gpu = has_gpu()
    answers = {
        place: measured(place, options.given(args), gpu) for place in (ON if args.on is None else args.on).split(",")
    }
    if args.json:
        print(json.dumps(answers, indent=1))
    else:
        print_answers(answers)
    return int(any("error" in answer for answer in answers.values()))


def measured(place: str, given: Mapping[str, Any], gpu: bool) -> dict[str, Any]:
    """One place's report, or {"error": sentence}."""
    try:
        with open_place(place, gpu) as opened:
            return opened.measure(given)
    except BenchError as error:
        return {"error": str(error)}


def print_answers(answers: Mapping[str, Mapping[str, Any]]) -> None:
    """A line per place."""
    right = [answer for answer in answers.values() if "error" not in answer]
    if right:
        print(f"{right[0]['op']}, {right[0]['shape']}")
        print(
            "".join(f"{name:>10}" if i else f"{name:<13}" for i, name in enumerate(COLUMNS[:-1])) + f"  {COLUMNS[-1]}"
        )
    for place, a in answers.items():
        if "error" in a:
            print(f"{place:<13}{a['error']}")
            continue
        print(
            f"{place:<13}{a['ms']:>10.2f}{a['min_ms']:>10.2f}{a['wait_ms']:>10.2f}{a['gflops']:>10.2f}{a['gbs']:>10.2f}"
            f"{a['of_fma']:>10.1%}{a['of_read']:>10.1%}{a['max_error']:>10.1e}  "
            f"{a['variant']}: {', '.join(a['kernels'])}"
        )


if __name__ == "__main__":
    sys.exit(main())
