"""A real browser with the page's host in it, without the page: modules, kernels and checkpoint folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.browser import Tab
from bench.browser import open_browser as open_bench

OPEN = """async (name) => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Model } = await import("/static/gpu/runtime.js");
  const { Buffers } = await import("/static/gpu/buffers.js");
  const { checkWeights, openSafetensors } = await import("/static/lib/safetensors.js");
  const get = async (file) => { const r = await fetch(`/files/${name}/${file}`); if (!r.ok) return null; return r; };
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


class Browser(Tab):
    """One page on the small server. `ask` runs an async arrow function's text there and returns its JSON."""

    def __init__(self, tab: Tab, models: dict[str, Path]) -> None:
        super().__init__(tab.page)
        self.models = models

    def open(self, name: str, folder: Path) -> str:
        """Load a checkpoint folder as `model`; returns the adapter's name in words."""
        self.models[name] = folder
        return self.ask(OPEN, name)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start server and browser, and end both."""
    models: dict[str, Path] = {}
    with open_bench(models) as opened:
        yield Browser(opened.tab(), models)
