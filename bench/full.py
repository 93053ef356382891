"""Everything side by side in one run: collects the figures that bench/table.py prints.

Ours and every peer take turns (turns.py) operation by operation in tabs of one Chromium, and so do two of ours that are
compared. Of our variants those run that the product chooses among on the device, and the fastest counts.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

from bench import memory, whole
from bench.browser import ROOT, Tab, open_browser
from bench.errors import BadArguments, BenchError
from bench.places import Child, Page, Peer, has_gpu, machine_words
from bench.turns import Found, Spare, Turn, by_turns, summary

PEERS = ("ort-nosubgroups", "ort-webgpu", "ort-wasm", "tfjs")
SIDE_BY_SIDE = [
    {"op": "attention", "T": 128}, {"op": "attention", "T": 512}, {"op": "attention", "T": 1024},
    {"op": "attention", "T": 2048}, {"op": "decode", "T": 2048},
]  # fmt: skip
ALONE = [
    {"op": "heatmap", "T": 2048}, {"op": "heatmap", "T": 512}, {"op": "heatmap", "T": 8192, "window": 512},
    {"op": "matmul", "T": 1, "format": "q4_1"}, {"op": "matmul", "T": 64, "format": "q4_1"},
    {"op": "matmul", "T": 64, "format": "f16"}, {"op": "lens", "T": 4, "format": "q8_0"},
]  # fmt: skip
# What one of ALONE takes turns with, by its place there.
AGAINST = {0: {"op": "attention", "T": 2048}, 2: {"op": "heatmap", "T": 512}}
HEADLESS = [{"op": "attention", "T": 512}, {"op": "attention", "T": 2048}, {"op": "decode", "T": 2048}]
QUICK = [{"op": "attention", "T": 64}, {"op": "decode", "T": 256}]
QUICK_ALONE = [{"op": "heatmap", "T": 128}, {"op": "matmul", "T": 8, "d_in": 64, "d_out": 64}]

SPARE_S = 60.0  # what repetitions may take of one run
RECORD = ROOT / "bench" / "latest.json"  # the last whole run, which README's table shows
RUNNING = ROOT / "bench" / "running.json"  # a run that has not come to its end; git ignores it

Log = Callable[[str], None]


def fastest(place: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What counts of ours, begun, and what to tell of it. Raises BenchError where the product's own choice is wrong.

    Of several variants that the product chooses among on a device, by turns, it is the fastest; a variant that is named
    is alone. refused: those without a figure; chosen: the product's own choice.
    """
    first = place.begin(given)
    rest, refused = {}, []
    for name in [] if "variant" in given else first.tried:
        if name != first.variant:
            try:
                rest[name] = place.begin({**given, "variant": name})
            except BenchError as error:
                refused.append(f"{name}: {error}")
    line = by_turns(first.turn, {name: each.turn for name, each in rest.items()}) if rest else Found()
    took = {name: statistics.median(ratios["ms"]) for name, ratios in line.ratios.items() if ratios}
    best = min({first.variant: 1.0, **took}.items(), key=lambda each: each[1])[0]
    for name, each in (rest | {first.variant: first}).items():
        if name != best and name not in line.failed:
            each.end()
    refused += [f"{name}: {error}" for name, error in line.failed.items()]
    return rest.get(best, first), {"chosen": first.variant, "refused": refused}


def measured(place: Any, given: Mapping[str, Any], others: Mapping[str, Turn], spare: Spare) -> tuple[dict, Found]:
    """Our report of one line, and what its turns gave; where ours has no figure, the sentence why and nothing."""
    try:
        ours, told = fastest(place, given)
        found = by_turns(ours.turn, others, spare)
        return {**ours.end(), **told, "given": dict(given)}, found
    except BenchError as error:
        return {"op": given["op"], "given": dict(given), "error": str(error)}, Found()


def against(place: Any, given: Mapping[str, Any], base: Mapping[str, Any], spare: Spare) -> dict[str, Any]:
    """Our report of one line that takes turns with another of ours; `against` has the ratios to that one."""
    try:
        ours, told = fastest(place, given)
        below, found = measured(place, base, {"ours": ours.turn}, spare)
        if "error" in below:
            raise BenchError(f"{below['error']} It was to be compared with that.")
        report = {**ours.end(), **told, "given": dict(given)}
    except BenchError as error:
        return {"op": given["op"], "given": dict(given), "error": str(error)}
    beside = {"given": dict(base), "ms": below.get("ms"), "ratios": found.ratios.get("ours", {})}
    return {**report, "against": beside}


class Run:
    """What was found so far, kept in RUNNING after every step, so that a run that is stopped can go on."""

    def __init__(self, log: Log, record: dict[str, Any] | None, quick: bool) -> None:
        self.log, self.quick, self.since, self.spare = log, quick, time.time(), Spare(SPARE_S)
        load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
        started = {"machine": machine_words() + load, "date": date.today().isoformat(), "quick": quick}
        started["gpu"] = has_gpu() if record is None else record["gpu"]
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
            half = RUNNING.with_suffix(".json.half")  # a run may be stopped while it writes
            half.write_text(json.dumps(self.found, indent=1) + "\n", "utf-8")
            half.replace(RUNNING)

    def finish(self) -> None:
        """The run came to its end: what it found takes the place of the last whole run."""
        self.save()
        if not self.quick:
            RUNNING.replace(RECORD)

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
            beside = partial(side_by_side, ours, tabs, log=self.log, spare=self.spare)
            self.each(self.found["side_by_side"], asked, beside)
            for tab in tabs.values():
                tab.close()
            self.each(self.found["alone"], QUICK_ALONE if self.quick else ALONE, partial(self.alone, ours))
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
            self.each(done, QUICK[:1] if self.quick else HEADLESS, partial(self.alone, child))
            child.close()

    def alone(self, place: Child | Page, given: dict) -> dict[str, Any]:
        """One operation of ours, announced, by turns with what AGAINST names."""
        self.log(f"{place.place}: {' '.join(str(value) for value in given.values())}")
        base = next((base for index, base in AGAINST.items() if ALONE[index] == given), None)
        return against(place, given, base, self.spare) if base else measured(place, given, {}, self.spare)[0]


def collect(*, quick: bool, peers: bool, log: Log, record: dict[str, Any] | None = None) -> dict[str, Any]:
    """All figures as JSON. peers: also those of the packages beside us; going_on: record: of a run to go on with."""
    run = Run(log, record, quick)
    run.headless()
    run.part("page", lambda: whole.page(run.found["gpu"], log))
    run.chromium(peers)
    run.finish()
    return run.found


def stopped() -> dict[str, Any]:
    """What a run of this machine has kept that was stopped. Raises BadArguments where there is none."""
    if not RUNNING.is_file():
        raise BadArguments(
            f"--continue goes on with a run that was stopped, and here is none (no {RUNNING.name}); "
            "leave it out to start one."
        )
    try:
        record = json.loads(RUNNING.read_text("utf-8"))
        machine, gpu = record["machine"].partition(", load ")[0], record["gpu"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadArguments(f"{RUNNING.name} is no record of a run; leave --continue out to start one.") from error
    kept, here = (
        (words, "with a GPU" if has else "no GPU") for words, has in ((machine, gpu), (machine_words(), has_gpu()))
    )
    if kept != here:
        raise BadArguments(
            f"{RUNNING.name} is of {', '.join(kept)}, and this is {', '.join(here)}; one table is of one machine: "
            "leave --continue out to start a run here."
        )
    return record


def side_by_side(
    ours: Page, tabs: Mapping[str, Tab], given: Mapping[str, Any], *, log: Log, spare: Spare
) -> dict[str, Any]:
    """Ours and every peer on one operation, by turns."""
    row, peers = {"given": dict(given)}, {}
    for kind, tab in tabs.items():
        log(f"{kind}: {given['op']} {given['T']}")
        try:
            peer = Peer(tab, kind, given)
        except BenchError as error:
            row[kind] = {"error": str(error)}
            continue
        row[kind] = peer.begun
        if "runs" in peer.begun:  # a wrong one has no speed
            peers[kind] = peer
    log(f"{ours.place} and {', '.join(peers) or 'nobody'} by turns: {given['op']} {given['T']}")
    row["ours"], found = measured(ours, given, {kind: peer.turn for kind, peer in peers.items()}, spare)
    for kind, peer in peers.items():
        readings = found.others.get(kind)
        row[kind] |= {**summary(readings), "readings": readings} if readings else {"error": found.failed.get(kind, "")}
        peer.end()
    return row | {"ratios": found.ratios}


def versions(chromium: str) -> dict[str, str]:
    """What was measured with."""
    return {"Chromium": chromium, "wgpu-py": version("wgpu"), "Python": platform.python_version()}
