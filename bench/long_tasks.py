"""What holds the page up: `python -m bench.long_tasks [STAGE ...]`, the product in Chromium.

For each stage (all of them, or those that are named) a line: its milliseconds; the longest task of the page's main
thread on the wall and by the thread's own time; how many took 50 ms or more, by either; and what the longest was made
of. The two differ where a CPU stands in for a GPU: its threads take every core, and the page's waits for one.
"""

import argparse
import sys
from collections.abc import Callable

from playwright.sync_api import Page

from bench.app_page import DRAWN, app_page, wait
from bench.main_thread import LONG_MS, recording

LENS = "document.querySelector('#depth')?.dataset.done === 'true'"
SMALL = "() => document.querySelectorAll('#wall [role=gridcell]').length < 100"
COMPILED = "performance.getEntriesByName('all compiled').length > 0"
STALE = "document.querySelector('.stale') !== null"
VERIFIED = "!document.querySelector('#verify-start').disabled"
GENERATED = (
    "document.querySelector('#stop').hidden && /tokens? in /.test(document.querySelector('#generate-note').textContent)"
)
PROMPT = "When Mary and John went to the store, John gave a drink to"
OTHER = "The old man walked to the river and sat down beside the quiet water"
LONG_TOKENS, PASTED_CHARACTERS, GENERATED_TOKENS = 256, 5000, 30
WORDS = "the of and to in is that it was for on are as with his they at be this from I have or by one had not"


def words(turn: int) -> list[str]:
    """The same words in another order each turn, without an end."""
    every = WORDS.split()
    return [every[(i * (turn + 3) + turn) % len(every)] for i in range(PASTED_CHARACTERS)]


def type_prompt(page: Page, text: str) -> None:
    """Replace the prompt and wait until the page has taken it."""
    page.locator("#prompt-text").fill(text)
    wait(page, STALE)


def new_prompt(page: Page) -> None:
    type_prompt(page, PROMPT if page.locator("#prompt-text").input_value() != PROMPT else OTHER)
    wait(page)


def wall(page: Page) -> None:
    type_prompt(page, " ".join(words(1)[:LONG_TOKENS]))
    wait(page)


def lens(page: Page) -> None:
    wait(page, LENS)


def head(page: Page) -> None:
    """Four other heads, one after the other."""
    cells = page.locator("#wall [role=gridcell]")
    for i in (1, 6, 3, 9):
        cells.nth(i).click()
        name = cells.nth(i).get_attribute("aria-label").partition(",")[0]
        wait(page, f"document.querySelector('#head').dataset.head === {name!r}")


def verify(page: Page) -> None:
    page.locator("#proof-badge").click()
    page.locator("#verify-start").click()
    wait(page, VERIFIED)
    page.keyboard.press("Escape")


def generate(page: Page) -> None:
    page.locator(".generate summary").click()
    page.locator("#sampling-max-tokens").fill(str(GENERATED_TOKENS))
    page.locator("#generate").click()
    wait(page, GENERATED)


def paste(page: Page) -> None:
    """A long text, watched until its first two seconds of computing are over, and taken back."""
    page.locator("#prompt-text").fill(" ".join(words(2))[:PASTED_CHARACTERS])
    start = page.evaluate("() => performance.now()")
    wait(page, f"performance.now() > {start} + 2000")
    new_prompt(page)


def menus(page: Page) -> None:
    """Model menu, its report, help; each opened and closed."""
    page.locator("#model-button").click()
    page.locator(".report-button").first.click()
    page.keyboard.press("Escape")
    page.locator("#model-button").click()
    page.keyboard.press("Escape")
    page.locator("#help").click()
    page.keyboard.press("Escape")
    wait(page, "true")


def load(page: Page) -> None:
    page.evaluate("() => playground.load('smollm2-135m')")
    wait(page)


def opening(address: str) -> Callable[[Page], None]:
    def run(page: Page) -> None:
        page.goto(address)
        wait(page, f"({DRAWN}) && {LENS} && {COMPILED}")

    return run


def stages(address: str) -> dict[str, Callable[[Page], None]]:
    """Each begins where the one before it has left the page."""
    return {
        "open": opening(address), "open again": opening(address), "prompt": new_prompt, "lens": lens, "head": head,
        "generate": generate, "verify": verify, "menus": menus, "smollm2": load, "smollm2 lens": lens,
        "smollm2 prompt": new_prompt, "smollm2 head": head, "smollm2 generate": generate, "smollm2 wall": wall,
        "smollm2 paste": paste, "smollm2 verify": verify,
    }  # fmt: skip


def main(argv: list[str]) -> int:
    """Print the table. Exit status 1 when a task took the thread itself 50 ms or more."""
    parser = argparse.ArgumentParser(prog="python -m bench.long_tasks", description=__doc__)
    parser.add_argument("stage", nargs="*", help=f"of {', '.join(stages(''))}; default all")
    parser.add_argument(
        "--why", type=int, default=1, metavar="N", help="say what the N longest tasks of a stage are made of"
    )
    options = parser.parse_args(argv)
    late = False
    with app_page("tiny") as (page, address):
        print(f"{'stage':<18}{'ms':>7}{'longest':>9}{'thread':>8}{'>=50':>6}{'thread':>8}  longest is made of")
        for name, run in stages(address).items():
            if options.stage and name not in options.stage:
                continue
            if page.url == "about:blank" and not name.startswith("open"):
                opening(address)(page)
            if name.startswith("smollm2 ") and page.evaluate(SMALL):
                load(page)
            with recording(page) as record:
                start = page.evaluate("() => performance.timeOrigin + performance.now()")
                run(page)
                end = page.evaluate("() => performance.timeOrigin + performance.now()")
            by_thread = record.longest("thread_ms")
            busy = sum(task.thread_ms >= LONG_MS for task in record.tasks)
            late = late or busy > 0
            longest = f"{record.longest().wall_ms:>9.0f}{by_thread.thread_ms:>8.0f}"
            counts = f"{len(record.long()):>6}{busy:>8}"
            print(f"{name:<18}{end - start:>7.0f}{longest}{counts}  {record.longest().words()}", flush=True)
            for task in sorted(record.tasks, key=lambda task: -task.thread_ms)[: options.why - 1]:
                print(f"{'':<18}{task.wall_ms:>16.0f}{task.thread_ms:>8.0f}  {task.words(8)}", flush=True)
    return int(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
