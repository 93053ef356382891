"""What holds the page up: `python -m bench.long_tasks [MODEL]`, the product in Chromium.

Prints for each stage its milliseconds and its long tasks (50 ms or more on the page's thread, as the browser reports
them): opening with nothing kept, opening again, a new prompt with wall and prediction, the visible lens, Verify.
"""

import sys

from bench.app_page import app_page, take_long_tasks, wait

LENS = "document.querySelector('#depth')?.dataset.done === 'true'"
PROMPT = "When Mary and John went to the store, John gave a drink to"


def main(model: str = "tiny") -> None:
    with app_page(model) as (page, address):

        def stage(name: str, start: float, end: float) -> None:
            tasks = sorted((round(ms) for _, ms in take_long_tasks(page)), reverse=True)
            print(f"{name}: {end - start:.0f} ms, {len(tasks)} long tasks {tasks[:12]} ms", flush=True)

        for name in ("open, nothing kept", "open again"):
            page.goto(address)
            stage(name, 0, wait(page))
            start = page.evaluate("() => performance.now()")
            stage("  lens", start, wait(page, LENS))
        start = page.evaluate("() => performance.now()")
        page.locator("#prompt-text").fill(PROMPT)
        wait(page, "document.querySelector('.stale') !== null")
        stage("new prompt", start, wait(page))
        start = page.evaluate("() => performance.now()")
        stage("  lens", start, wait(page, LENS))
        start = page.evaluate("() => { globalThis.proof = playground.parity(); return performance.now(); }")
        page.evaluate("() => proof")
        stage("verify", start, page.evaluate("() => performance.now()"))


if __name__ == "__main__":
    main(*sys.argv[1:])
