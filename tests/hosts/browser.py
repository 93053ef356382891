"""A real browser with the page's host in it, without the page: modules, kernels and checkpoint folders over http.

GET /static/...  /kernels/...     the checkout's files
GET /model/<name>/<file>          a folder that the test handed in
GET /                             an empty page
"""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json", ".wgsl": "text/plain"}
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPEN = """async (name) => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Model } = await import("/static/gpu/runtime.js");
  const { Buffers } = await import("/static/gpu/buffers.js");
  const { checkWeights, openSafetensors } = await import("/static/lib/safetensors.js");
  const get = async (file) => { const r = await fetch(`/model/${name}/${file}`); if (!r.ok) return null; return r; };
  const config = await (await get("config.json")).json();
  const index = await get("model.safetensors.index.json");
  const files = index ? [...new Set(Object.values((await index.json()).weight_map))] : ["model.safetensors"];
  const tensors = new Map();
  for (const file of files) {
    const bytes = new Uint8Array(await (await get(file)).arrayBuffer());
    for (const [key, tensor] of openSafetensors(bytes)) tensors.set(key, tensor);
  }
  const source = checkWeights(tensors);
  globalThis.device ??= await requestDevice();
  globalThis.Buffers = Buffers;
  globalThis.model?.destroy();
  globalThis.model = await Model.load(device, { config, source });
  globalThis.raw = { config, source };
  return device.words;
}"""


class Handler(http.server.BaseHTTPRequestHandler):
    """Files of static/, of webgpu/ as /kernels/, and of the folders in `models`."""

    models: dict[str, Path]

    def do_GET(self) -> None:
        first, _, rest = self.path.lstrip("/").partition("/")
        name, _, file = rest.partition("/")
        path = {
            "static": ROOT / "static" / rest,
            "kernels": ROOT / "webgpu" / rest,
            "model": self.models.get(name, ROOT / "nothing") / file,
        }.get(first)
        body = b"<!doctype html><title>host</title>" if first == "" else None
        if path is not None and ".." not in rest and path.is_file():
            body = path.read_bytes()
        self.send_response(404 if body is None else 200)
        self.send_header(
            "Content-Type",
            TYPES.get(Path(self.path).suffix, "text/html" if first == "" else "application/octet-stream"),
        )
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None:
        """Tests print nothing."""


class Browser:
    """One page on the small server. `ask` runs an async arrow function's text there and returns its JSON."""

    def __init__(self, page: Page, models: dict[str, Path], origin: str) -> None:
        self.page, self.models, self.origin = page, models, origin

    def open(self, name: str, folder: Path) -> str:
        """Load a checkpoint folder as `model`; returns the adapter's name in words."""
        self.models[name] = folder
        return self.ask(OPEN, name)

    def ask(self, script: str, given: Any = None) -> Any:
        return self.page.evaluate(script, given)


@contextmanager
def open_browser(chromium: str) -> Iterator[Browser]:
    """Start server and browser, and end both."""
    models: dict[str, Path] = {}
    handler = type("Bound", (Handler,), {"models": models})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS, headless=True)
            page = browser.new_page()
            page.set_default_timeout(300_000)
            origin = f"http://127.0.0.1:{server.server_port}"
            page.goto(origin + "/")
            yield Browser(page, models, origin)
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
