"""`playground pull`: bring a model to this machine, with a progress bar."""

import argparse
import sys
import time
from typing import TextIO

BAR_CELLS = 28
REDRAW_SECONDS = 0.1


DEFAULT = "smollm2-135m"


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("pull", help="fetch a model", description=__doc__)
    command.add_argument(
        "model", metavar="MODEL", nargs="?", help="smollm2-135m, OWNER/NAME or a folder; without it smollm2-135m"
    )
    command.add_argument(
        "--float16",
        action="store_true",
        help="widen smollm2-135m to float16 (270 MB), for programs that know no blocks",
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fetch unless it is there. Raises PullError and CheckpointError subclasses, each with one sentence."""
    from webgpu.config import parse_config
    from weights import catalogue
    from weights.pull import outdated, pull

    wanted = args.model or DEFAULT
    here = catalogue.find(wanted)
    if here is not None and here.problem is None:
        if not outdated(here.id, args.float16):
            print(f"{here.id} is here already: {here.folder}")
            return 0
        form = "as float16" if args.float16 else "with the blocks of its file, 97 MB in place of 270"
        print(f"{here.id} is here in another form; it is fetched again {form}.")
    with Bar(sys.stderr) as bar:
        folder = pull(wanted, bar, check_config=parse_config, float16=args.float16)
    print(f"{folder.name} is ready: {folder}")
    return 0


class Bar:
    """A progress bar on a terminal; elsewhere one line per tenth of the way. Called the way weights.pull wants."""

    def __init__(self, out: TextIO):
        self.out = out
        self.alive = out.isatty()
        self._words = ""
        self._tenth = -1
        self._since = (0.0, 0)
        self._drawn = 0.0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *failure: object) -> None:
        if self.alive and self._words:
            self.out.write("\n")

    def __call__(self, done_bytes: int, total_bytes: int, words: str) -> None:
        """Show where the step called `words` is; total 0 means that its size is not known yet."""
        now = time.monotonic()
        if words != self._words:
            if self.alive and self._words:
                self.out.write("\n")
            self._words, self._tenth, self._since, self._drawn = words, -1, (now, done_bytes), 0.0
        if self.alive:
            if now - self._drawn >= REDRAW_SECONDS or done_bytes == total_bytes:
                self._drawn = now
                self.out.write("\r\x1b[K" + line(words, done_bytes, total_bytes, self._rate(now, done_bytes)))
        elif total_bytes and done_bytes * 10 // total_bytes > self._tenth:
            self._tenth = done_bytes * 10 // total_bytes
            self.out.write(line(words, done_bytes, total_bytes, self._rate(now, done_bytes)) + "\n")
        self.out.flush()

    def _rate(self, now: float, done_bytes: int) -> float:
        start, start_bytes = self._since
        return (done_bytes - start_bytes) / (now - start) if now > start else 0.0


def line(words: str, done_bytes: int, total_bytes: int, rate_bytes: float) -> str:
    """`Fetching x [#######.....]  52 %  48.1 of 92.9 MB  11.2 MB/s  4 s left`."""
    if not total_bytes:
        return f"{words} ..."
    share = min(1.0, done_bytes / total_bytes)
    cells = int(share * BAR_CELLS)
    bar = "#" * cells + "." * (BAR_CELLS - cells)
    text = f"{words} [{bar}] {share:4.0%}  {done_bytes / 1e6:.1f} of {total_bytes / 1e6:.1f} MB"
    if rate_bytes > 0 and done_bytes < total_bytes:
        text += f"  {rate_bytes / 1e6:.1f} MB/s  {(total_bytes - done_bytes) / rate_bytes:.0f} s left"
    return text
