"""The whole product in Chromium, for measurements: the real server, the real page, and a record of what held it up.

A long task is one that keeps the page's thread for 50 ms or more, as the browser itself reports it.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from bench.browser import FLAGS, ROOT, SWIFTSHADER
from bench.errors import BenchError

RECORD = """globalThis.longTasks = [];
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) longTasks.push([startTime, duration]);
}).observe({ type: "longtask", buffered: true });"""
DRAWN = """(() => {
  const wall = document.querySelector("#wall");
  const layers = Number(wall?.dataset.layers ?? document.querySelectorAll("#wall [role=row]").length);
  return layers > 0 && wall.dataset.drawn === String(layers) && document.querySelectorAll("#next-bars li").length > 0
    && !document.querySelector(".stale");
})()"""
WAIT = """([timeout]) => new Promise((resolve, reject) => {
  const end = performance.now() + timeout;
  const look = () => {
    if (CONDITION) resolve(performance.now());
    else if (performance.now() > end) reject(new Error("not within " + timeout + " ms"));
    else requestAnimationFrame(look);
  };
  look();
})"""


@contextmanager
def serving(model: str) -> Iterator[str]:
    """The server on a port of the system's choice; its address."""
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", model]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in process.stdout:
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                yield address[0] + "/"
                return
        raise BenchError("the playground's server ended before it named its address; try `playground serve`.")
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@contextmanager
def app_page(model: str, width: int = 1440, height: int = 900) -> Iterator[tuple[Page, str]]:
    """A page that is not open yet, with its long tasks recorded in `longTasks` once it is; and the server's address."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with serving(model) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, *SWIFTSHADER])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(600_000)
        page.add_init_script(RECORD)
        yield page, address
        browser.close()


def wait(page: Page, condition: str = DRAWN, timeout_ms: int = 600_000) -> float:
    """Until a JavaScript expression holds; the page's clock in ms then. By default: wall and prediction are drawn."""
    return page.evaluate(WAIT.replace("CONDITION", condition), [timeout_ms])


def take_long_tasks(page: Page) -> list[tuple[float, float]]:
    """(start, duration) in ms of each long task since the last call."""
    return [tuple(task) for task in page.evaluate("() => longTasks.splice(0)")]
