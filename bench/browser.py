"""Chromium with the page's kernels in it and nothing else: modules and kernels over loopback, no product server.

    /                          an empty page, cross-origin isolated so that peers may use threads
    /static/... /kernels/...   the checkout's files, as the product serves them
    /peers/... /files/<name>/  the peers' page and their packages; folders that the caller names (models)
Needs playwright and Chromium, which `python3 play.py test` sets up.
"""

import http.server
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.errors import Unavailable

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
TYPES = {
    ".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json", ".wgsl": "text/plain",
    ".wasm": "application/wasm", ".html": "text/html",
}  # fmt: skip
FLAGS = [
    "--headless=new", "--no-sandbox", "--enable-unsafe-webgpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu-watchdog",
]  # fmt: skip
SWIFTSHADER = ["--use-webgpu-adapter=swiftshader"]
REAL_GPU = ["--enable-features=Vulkan", "--use-vulkan=native"]
PAGE = b"<!doctype html><meta charset=utf-8><title>bench</title>"
TIMEOUT_MS = 600_000


class Handler(http.server.BaseHTTPRequestHandler):
    """Files below fixed folders; `files` are those that the caller named."""

    files: Mapping[str, Path]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = PAGE if path == "/" else self.found(path)
        self.send_response(404 if body is None else 200)
        kind = TYPES.get(Path(path).suffix, "text/html" if path == "/" else "application/octet-stream")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body or b"")))
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body or b"")

    def found(self, path: str) -> bytes | None:
        first, _, rest = path.lstrip("/").partition("/")
        name, _, file = rest.partition("/")
        folders = {"static": ROOT / "static", "kernels": ROOT / "webgpu", "peers": PEERS}
        folder, inside = (self.files.get(name), file) if first == "files" else (folders.get(first), rest)
        if folder is None or ".." in inside.split("/") or not (folder / inside).is_file():
            return None
        return (folder / inside).read_bytes()

    def log_message(self, *_: Any) -> None:
        """A measurement prints its table only."""


@contextmanager
def serving(files: Mapping[str, Path]) -> Iterator[str]:
    """The small server on a free port; gives its origin."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"files": files}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class Tab:
    """A page of Chromium. `ask` runs an async arrow function's text in it and returns its JSON."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def close(self) -> None:
        self.page.close()

    def ask(self, script: str, given: Any = None) -> Any:
        return self.page.evaluate(script, given)


class Browser:
    """A Chromium and the small server; tabs share its GPU process."""

    def __init__(self, browser: Any, origin: str) -> None:
        self.browser, self.origin = browser, origin

    @property
    def version(self) -> str:
        return self.browser.version

    def tab(self, address: str | None = None) -> Tab:
        """A new page at this address, or at the small server's."""
        page = self.browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(address or self.origin + "/")
        return Tab(page)


@contextmanager
def open_browser(files: Mapping[str, Path] | None = None, software: bool = True) -> Iterator[Browser]:
    """Chromium on SwiftShader, or with software=False on the machine's GPU. Raises Unavailable without one.

    files: folder by name; the caller may add some while the browser is open.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Unavailable("playwright is missing; `python3 play.py test` sets it and Chromium up.") from error
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise Unavailable("Chromium is missing; `python3 play.py test` sets it up.")
    flags = [*FLAGS, *(SWIFTSHADER if software else REAL_GPU)]
    with serving({} if files is None else files) as origin, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags, headless=True)
        try:
            yield Browser(browser, origin)
        finally:
            browser.close()
