"""Everything side by side in one run: collects the figures that bench/table.py prints.

Ours and every peer take turns operation by operation in tabs of one Chromium, so that a machine that slows down slows
all of them. Of our variants those run that the product chooses among on the device, and the fastest counts.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import version
from typing import Any

from bench import memory, whole
from bench.browser import ROOT, Tab, open_browser
from bench.errors import BenchError
from bench.places import Child, Page, has_gpu, machine_words

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
# Of llvmpipe's eight lanes its adapter does not tell, so the product never takes this by itself (webgpu/README.md).
BY_NAME = {"native": [{"op": "attention", "T": 2048, "variant": "wide"}]}
QUICK = [{"op": "attention", "T": 64}, {"op": "decode", "T": 256}]
QUICK_ALONE = [{"op": "heatmap", "T": 128}, {"op": "matmul", "T": 8, "d_in": 64, "d_out": 64}]

RECORD = ROOT / "bench" / "latest.json"

Log = Callable[[str], None]


def fastest(place: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The report of the fastest variant of those that the product chooses among there, or of the one that is named.

    refused: those without a figure; chosen: the product's own choice. Where that is wrong there is no report.
    """
    try:
        right = [place.measure(given)]
    except BenchError as error:
        return {"op": given["op"], "given": dict(given), "error": str(error)}
    chosen, refused = right[0]["variant"], []
    for name in right[0]["tried"]:
        if name != chosen and "variant" not in given:
            try:
                right.append(place.measure({**given, "variant": name}))
            except BenchError as error:
                refused.append(f"{name}: {error}")
    best = min(right, key=lambda report: report["ms"])
    return {**best, "given": dict(given), "chosen": chosen, "refused": refused}


class Run:
    """What was found so far, kept in RECORD after every step, so that a run that is stopped can go on."""

    def __init__(self, log: Log, record: dict[str, Any] | None, quick: bool) -> None:
        self.log, self.quick, self.since = log, quick, time.time()
        started = {"machine": machine_words(), "date": date.today().isoformat(), "quick": quick, "gpu": has_gpu()}
        fresh = {**started, "seconds": 0, "sittings": 0, "problems": [], "versions": {}}
        fresh |= {"side_by_side": [], "alone": [], "model": {}, "headless": {}, "page": {}, "memory": memory.table()}
        self.found = record or fresh
        self.found["sittings"] += 1
        self.before_s = self.found["seconds"]

    def save(self) -> None:
        """Write what there is; a quick run is nothing to keep."""
        self.found["seconds"] = round(self.before_s + time.time() - self.since)
        self.found["load_at_end"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        if not self.quick:
            RECORD.write_text(json.dumps(self.found, indent=1) + "\n", "utf-8")

    def each(self, done: list, asked: list[dict], measure: Callable[[dict], dict]) -> None:
        """Append what is not there yet."""
        there = [line.get("given") for line in done]
        for given in asked:
            if given not in there:
                done.append(measure(given))
                self.save()

    def part(self, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """One whole part; a part that fails is told among `problems` and does not cost the others."""
        if self.quick or self.found[name]:
            return
        try:
            self.found[name] = measure()
        except Exception as error:  # a browser's failure has many classes
            self.found["problems"].append(f"{name}: {str(error).strip().splitlines()[0]}")
        self.save()

    def chromium(self, peers: bool) -> None:
        """Ours and the peers in one browser."""
        files = {} if self.quick else {"smollm2": whole.folder()}
        with open_browser(files, software=not self.found["gpu"]) as browser:
            self.found["versions"] = versions(browser.version)
            ours = Page(browser.tab())
            tabs = {kind: browser.tab() for kind in PEERS} if peers else {}
            asked = QUICK if self.quick else SIDE_BY_SIDE
            self.each(self.found["side_by_side"], asked, lambda given: side_by_side(ours, tabs, given, self.log))
            for tab in tabs.values():
                tab.close()
            asked = QUICK_ALONE if self.quick else ALONE
            self.each(self.found["alone"], asked, lambda given: logged(self.log, given, ours))
            self.part("model", lambda: whole.models(browser, peers, self.log))

    def headless(self) -> None:
        """Through wgpu-py: this machine's default adapter and SwiftShader, one process each."""
        for place in ("native", "swiftshader"):
            done = self.found["headless"].setdefault(place, [])
            try:
                child = Child(place)
            except BenchError as error:
                done.append({"error": str(error)})
                continue
            named = [] if self.found["gpu"] else BY_NAME.get(place, [])
            asked = QUICK[:1] if self.quick else HEADLESS + named
            self.each(done, asked, lambda given, child=child: logged(self.log, given, child))
            child.close()


def collect(*, quick: bool, peers: bool, log: Log, going_on: bool = False) -> dict[str, Any]:
    """All figures as JSON. peers: also those of the packages beside us; going_on: with what a stopped run has kept."""
    record = json.loads(RECORD.read_text("utf-8")) if going_on and RECORD.is_file() else None
    run = Run(log, record, quick)
    run.headless()
    run.part("page", lambda: whole.page(run.found["gpu"], log))
    run.chromium(peers)
    run.save()
    return run.found


def logged(log: Log, given: Mapping[str, Any], ours: Child | Page) -> dict[str, Any]:
    """One operation of ours, announced."""
    log(f"{ours.place}: {' '.join(str(value) for value in given.values())}")
    return fastest(ours, given)


def side_by_side(ours: Page, tabs: Mapping[str, Tab], given: Mapping[str, Any], log: Log) -> dict[str, Any]:
    """Ours and every peer on one operation."""
    row = {"ours": logged(log, given, ours), "given": dict(given)}
    for kind, tab in tabs.items():
        log(f"{kind}: {given['op']} {given['T']}")
        row[kind] = tab.ask(PEER, {"kind": kind, **given})
    return row


def versions(chromium: str) -> dict[str, str]:
    """What was measured with."""
    return {"Chromium": chromium, "wgpu-py": version("wgpu"), "Python": platform.python_version()}
