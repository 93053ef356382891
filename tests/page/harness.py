"""What the page's tests stand on: the real server as a subprocess, a real Chromium, a page that reports its mistakes.

Every wait is for a condition that the page itself shows (text, an attribute), never for a time.
"""

import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright

ROOT = Path(__file__).resolve().parents[2]
QUIET = [
    *("--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-gpu-watchdog"),
]
SWIFTSHADER = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
SMALL_MS = 60_000
"""The small model on a software GPU takes a second; a busy machine gets a minute."""
LARGE_MS = 420_000
"""SmolLM2-135M on a software GPU: download, hash, upload and a prompt, on two busy cores."""
# The page's own modules, by the address that it loaded them from: another address would be another copy.
OWN = """globalThis.own = (name) => import([...document.querySelectorAll("link[rel=modulepreload]")]
  .map((link) => link.href).find((href) => href.endsWith(name)));"""


@dataclass
class Server:
    """A running server; `log` grows with what it prints."""

    process: subprocess.Popen
    port: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def running_server(model: str | Path, **environment: str) -> Iterator[Server]:
    """`playground serve` on a port that the system chooses, until the block ends."""
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", str(model)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    server = Server(process)
    settled = threading.Event()
    reader = threading.Thread(target=_read_log, args=(server, settled), daemon=True)
    reader.start()
    try:
        assert settled.wait(60) and server.port, "".join(server.log)
        with urllib.request.urlopen(server.url + "healthz", timeout=30) as answer:
            assert answer.status == 200
        yield server
    finally:
        process.terminate()
        process.wait(30)
        reader.join(10)
        process.stdout.close()


def _read_log(server: Server, settled: threading.Event) -> None:
    """Collect what the server prints; settled: it named its address, or it ended."""
    for line in server.process.stdout:
        server.log.append(line)
        if not server.port and (address := re.search(r"http://127\.0\.0\.1:(\d+)", line)):
            server.port = int(address[1])
            settled.set()
    settled.set()


def launch(playwright: Playwright, chromium: str, *flags: str) -> Browser:
    """Chromium without anything that talks to the outside."""
    return playwright.chromium.launch(executable_path=chromium, args=[*QUIET, *flags], timeout=60_000)


@dataclass
class Watched:
    """A page and everything about it that ought not to happen."""

    page: Page
    context: BrowserContext
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def open(self, url: str, ready: bool = True, timeout_ms: int = SMALL_MS) -> Page:
        """Go there; ready: wait until wall and prediction are drawn."""
        self.page.goto(url)
        if ready:
            wait_picture(self.page, timeout_ms)
        return self.page

    def assert_clean(self, url: str) -> None:
        """No exception, console error, policy violation or dialog, and no request to another origin."""
        assert not self.problems, self.problems
        foreign = [address for address in self.requests if not address.startswith((url, "blob:" + url, "data:"))]
        assert not foreign, foreign


class Held:
    """Requests to addresses like `pattern` wait until release(); later ones pass.

    The route stays in place: taking it away makes the browser send on what waits, and a second answer is then an error.
    """

    def __init__(self, page: Page, pattern: str) -> None:
        self.waiting: list | None = []
        page.route(pattern, self._route)

    def _route(self, route) -> None:
        if self.waiting is None:
            route.fallback()
        else:
            self.waiting.append(route)

    def release(self) -> None:
        waiting, self.waiting = self.waiting or [], None
        for route in waiting:
            with suppress(Error):  # a request that its page has cancelled takes no answer
                route.fallback()


def watch(context: BrowserContext, allowed: tuple[str, ...] = ()) -> Watched:
    """A new page whose mistakes are collected, and whose scripts have own("/app/state.js").

    allowed: parts of console messages that the test provokes on purpose.
    """
    page = context.new_page()
    page.add_init_script(OWN)
    watched = Watched(page, context)

    def note(kind: str, text: str) -> None:
        if not any(part in text for part in allowed):
            watched.problems.append(f"{kind}: {text}")

    page.on("pageerror", lambda error: note("exception", str(error)))
    page.on("console", lambda message: message.type == "error" and note("console", message.text))
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("dialog", lambda dialog: (note("dialog", dialog.message), dialog.dismiss()))
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation',"
        " (event) => console.error('CSP ' + event.violatedDirective + ' ' + event.blockedURI))"
    )
    return watched


def until(page: Page, condition: str, timeout_ms: int = SMALL_MS) -> None:
    """Until this JavaScript expression is true, looked at before every frame.

    Playwright's own wait_for_function evaluates its text again and again, which the page's policy forbids; this text is
    compiled once.
    """
    script = """([timeout]) => new Promise((resolve, reject) => {
      const end = performance.now() + timeout;
      const look = () => {
        if (CONDITION) resolve();
        else if (performance.now() > end) reject(new Error('not within ' + timeout + ' ms'));
        else requestAnimationFrame(look);
      };
      look();
    })"""
    page.evaluate(script.replace("CONDITION", condition), [timeout_ms])


def wait_picture(page: Page, timeout_ms: int = SMALL_MS) -> None:
    """Until every layer of the wall is drawn, the prediction is there and nothing is stale."""
    until(
        page,
        """(() => {
          const wall = document.querySelector('#wall');
          return wall.dataset.layers && wall.dataset.drawn === wall.dataset.layers
            && document.querySelectorAll('#next-bars li').length > 0 && !document.querySelector('.stale');
        })()""",
        timeout_ms,
    )


def open_link(page: Page, link: str) -> None:
    """Open another link in a page that is open already, as pasting into the address bar does."""
    script = """(hash) => new Promise((resolve) => {
      if (location.hash.replace('#', '') === hash) return resolve();
      addEventListener('hashchange', () => resolve(), { once: true });
      location.hash = hash;
    })"""
    page.evaluate(script, link.removeprefix("#"))


def wait_lens(page: Page, timeout_ms: int = SMALL_MS) -> None:
    """Until every visible cell of the lens is filled."""
    page.wait_for_selector("#depth[data-done=true]", timeout=timeout_ms)


def type_prompt(page: Page, text: str) -> None:
    """Replace the prompt."""
    page.locator("#prompt-text").fill(text)


def chip_count(page: Page) -> int:
    """Tokens of what stands in the prompt box, as the chips say."""
    return int(page.locator("#chips").get_attribute("data-count"))
