"""Everything side by side in one run: collects the figures that bench/table.py prints.

Ours and every peer take turns operation by operation in tabs of one Chromium, so that a machine that slows down slows
all of them. Of our variants each runs up to T = 512; the fastest one there is what longer texts are measured with.
"""

import platform
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import date
from importlib.metadata import version
from typing import Any

from bench import memory, whole
from bench.browser import Tab, open_browser
from bench.errors import BenchError
from bench.peers.install import installed
from bench.places import Child, Page, has_gpu, machine_words
from webgpu.variants import VARIANTS

PEERS = ("ort-nosubgroups", "ort-webgpu", "ort-wasm", "tfjs")
PEER = """async (given) => {
  const { measurePeer } = await import("/peers/attention.js");
  try { return await measurePeer(given); } catch (error) { return { error: String(error.message ?? error) }; }
}"""
SIDE_BY_SIDE = [
    {"op": "attention", "T": 128}, {"op": "attention", "T": 512}, {"op": "attention", "T": 1024},
    {"op": "attention", "T": 2048}, {"op": "decode", "T": 2048},
]  # fmt: skip
ALONE = [
    {"op": "heatmap", "T": 2048}, {"op": "heatmap", "T": 512}, {"op": "heatmap", "T": 8192, "window": 512},
    {"op": "matmul", "T": 1, "format": "q4_1"}, {"op": "matmul", "T": 64, "format": "q4_1"},
    {"op": "matmul", "T": 64, "format": "f16"}, {"op": "lens", "T": 4, "format": "q8_0"},
]  # fmt: skip
HEADLESS = [{"op": "attention", "T": 512}, {"op": "attention", "T": 2048}, {"op": "decode", "T": 2048}]
QUICK = [{"op": "attention", "T": 64}, {"op": "decode", "T": 256}]
QUICK_ALONE = [{"op": "heatmap", "T": 128}, {"op": "matmul", "T": 8, "d_in": 64, "d_out": 64}]
OPERATION = {"attention": "attention", "decode": "decode", "heatmap": "cells", "matmul": "matmul", "lens": "lens"}
LONG = 1024  # from here on only the variant that was fastest before

Log = Callable[[str], None]


class Ours:
    """The kernels in one place, each operation with its fastest variant."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.fastest: dict[str, str] = {}

    def measure(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The report of the fastest variant; those that gave none are named in `refused`."""
        operation = OPERATION[given["op"]]
        if given["op"] == "matmul" and given["T"] == 1 and "matvec" in VARIANTS:
            operation = "matvec"
        names: list[str | None] = [each.name for each in VARIANTS.get(operation, ())] or [None]
        if given["T"] >= LONG and operation in self.fastest:
            names = [self.fastest[operation]]
        right, refused = [], []
        for name in names:
            try:
                right.append(self.place.measure({**given, "variant": name} if name else given))
            except BenchError as error:
                refused.append(f"{name}: {error}")
        if not right:
            return {"op": given["op"], "given": dict(given), "error": "; ".join(refused)}
        best = min(right, key=lambda report: report["ms"])
        if best["variant"]:
            self.fastest[operation] = best["variant"]
        return {**best, "given": dict(given), "refused": refused}


def collect(*, quick: bool, peers: bool, log: Log) -> dict[str, Any]:
    """All figures as JSON. peers: also those of the packages beside us, which must be installed."""
    gpu, start = has_gpu(), time.time()
    found: dict[str, Any] = {"machine": machine_words(), "date": date.today().isoformat(), "quick": quick, "gpu": gpu}
    found["peers_installed"] = installed()
    with ExitStack() as stack:
        files = {} if quick else {"smollm2": whole.folder()}
        browser = stack.enter_context(open_browser(files, software=not gpu))
        found["versions"] = versions(browser.version)
        ours = Ours(Page(browser.tab()))
        tabs = {kind: browser.tab() for kind in PEERS} if peers else {}
        found["side_by_side"] = [side_by_side(ours, tabs, given, log) for given in (QUICK if quick else SIDE_BY_SIDE)]
        for tab in tabs.values():
            tab.close()
        found["alone"] = [logged(log, "chromium", given, ours) for given in (QUICK_ALONE if quick else ALONE)]
        found["model"] = {} if quick else kept(found, lambda: whole.models(browser, peers, log))
    found["headless"] = headless(quick, log)
    found["page"] = {} if quick else kept(found, lambda: whole.page(gpu, log))
    found["memory"] = memory.table()
    found["seconds"] = round(time.time() - start)
    return found


def kept(found: dict[str, Any], part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A part's figures; a part that fails is told among `problems` and does not cost the others."""
    try:
        return part()
    except Exception as error:  # a browser's failure has many classes
        found.setdefault("problems", []).append(str(error).strip().splitlines()[0])
        return {}


def logged(log: Log, where: str, given: Mapping[str, Any], ours: Ours) -> dict[str, Any]:
    """One measurement of ours, announced."""
    log(f"{where}: {' '.join(str(value) for value in given.values())}")
    return ours.measure(given)


def side_by_side(ours: Ours, tabs: Mapping[str, Tab], given: Mapping[str, Any], log: Log) -> dict[str, Any]:
    """Ours and every peer on one operation."""
    row = {"ours": logged(log, "chromium", given, ours), "given": dict(given)}
    for kind, tab in tabs.items():
        log(f"{kind}: {given['op']} {given['T']}")
        row[kind] = tab.ask(PEER, {"kind": kind, **given})
    return row


def headless(quick: bool, log: Log) -> dict[str, Any]:
    """Through wgpu-py: this machine's default adapter and SwiftShader, one process each."""
    found = {}
    for place in ("native", "swiftshader"):
        child = None
        try:
            child = Child(place)
            ours = Ours(child)
            found[place] = [logged(log, place, given, ours) for given in (QUICK[:1] if quick else HEADLESS)]
        except BenchError as error:
            found[place] = [{"error": str(error)}]
        finally:
            if child:
                child.close()
    return found


def versions(chromium: str) -> dict[str, str]:
    """What was measured with."""
    return {"Chromium": chromium, "wgpu-py": version("wgpu"), "Python": platform.python_version()}
