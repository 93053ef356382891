"""Where a measurement runs: each place answers `measure(given)` with the report of bench/timing.py, or takes turns.

    native        wgpu-py on this machine's default adapter: the GPU, or llvmpipe where there is none
    llvmpipe, swiftshader   wgpu-py on that CPU driver
    chromium      the page's own host in Chromium: on the GPU where there is one, else on SwiftShader
A Vulkan driver is chosen by the environment before wgpu starts, so the first three are child processes.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.browser import ROOT, Tab, open_browser
from bench.errors import BenchError, Unavailable

NATIVE = ("native", "llvmpipe", "swiftshader")
PLACES = (*NATIVE, "chromium")
IN_PAGE = """async (question) => {
  const { Measurement, measure } = await import("/static/bench/timing.js");
  const { Kernels } = await import("/static/gpu/kernels.js");
  const { requestDevice } = await import("/static/gpu/device.js");
  globalThis.kernels ??= await Kernels.load(await requestDevice());
  globalThis.begun ??= [];
  const answers = {
    measure: (given) => measure(kernels, given),
    begin: async (given) => {
      const one = await Measurement.begin(kernels, given);
      return { number: begun.push(one) - 1, ...one.which };
    },
    turn: (number) => begun[number].turn(),
    end: async (number) => {
      try { return await begun[number].report(); } finally { begun[number].free(); delete begun[number]; }
    },
  };
  const [[what, given]] = Object.entries(question);
  try { return { answer: await answers[what](given) }; } catch (error) { return { error: error.message }; }
}"""
IN_PEERS = """async ([what, given]) => {
  const peers = await import("/peers/attention.js");
  try { return { answer: await peers[what](given) }; }
  catch (error) { return { error: String(error.message ?? error) }; }
}"""


def driver_file(place: str) -> Path:
    """The Vulkan description of a CPU driver. Raises Unavailable."""
    program = Path(shutil.which("chromium") or shutil.which("google-chrome") or "/nowhere").resolve().parent
    if place == "swiftshader":
        folders = [program, *map(Path, ("/usr/lib/chromium", "/opt/google/chrome", "/usr/lib64/chromium"))]
        found = [folder / "vk_swiftshader_icd.json" for folder in folders]
    else:
        found = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
    for path in found:
        if path.is_file():
            return path
    raise Unavailable(f"{place} was not found; `python3 play.py test` sets it up.")


class Child:
    """A process that measures on one Vulkan driver; questions and answers are lines of JSON."""

    def __init__(self, place: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.setdefault("XDG_RUNTIME_DIR", "/tmp")
        if place != "native":
            environment["VK_ICD_FILENAMES"] = str(driver_file(place))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.child"], cwd=ROOT, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.place = place

    def ask(self, question: Mapping[str, Any]) -> Any:
        """One question's answer. Raises BenchError with the child's sentence."""
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Unavailable(f"measuring on {self.place} ended without an answer; `playground doctor` says more.")
        return answered(json.loads(line))

    def measure(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return self.ask({"measure": dict(given)})

    def begin(self, given: Mapping[str, Any]) -> "Begun":
        return Begun(self, given)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Page:
    """The same questions to a tab of Chromium."""

    place = "chromium"

    def __init__(self, tab: Tab) -> None:
        self.tab = tab

    def ask(self, question: Mapping[str, Any]) -> Any:
        """One question's answer. Raises BenchError with the page's sentence."""
        return answered(self.tab.ask(IN_PAGE, dict(question)))

    def measure(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return self.ask({"measure": dict(given)})

    def begin(self, given: Mapping[str, Any]) -> "Begun":
        return Begun(self, given)


class Begun:
    """A measurement of ours that takes turns with others; all three raise BenchError."""

    def __init__(self, place: Child | Page, given: Mapping[str, Any]) -> None:
        told = place.ask({"begin": dict(given)})
        self.place, self.number, self.variant, self.tried = place, told["number"], told["variant"], told["tried"]

    def turn(self) -> dict[str, float]:
        return self.place.ask({"turn": self.number})

    def end(self) -> dict[str, Any]:
        """The report; frees what it held."""
        return self.place.ask({"end": self.number})


class Peer:
    """One operation of a peer in a tab of its own, right or wrong; ms is None where it is wrong."""

    def __init__(self, tab: Tab, kind: str, given: Mapping[str, Any]) -> None:
        self.tab = tab
        self.begun = answered(tab.ask(IN_PEERS, ["begin", {"kind": kind, **given}]))

    def turn(self) -> dict[str, float]:
        return answered(self.tab.ask(IN_PEERS, ["turn", None]))

    def end(self) -> None:
        answered(self.tab.ask(IN_PEERS, ["end", None]))


def answered(told: Mapping[str, Any]) -> Any:
    """A tab's answer, or BenchError with its sentence."""
    if "error" in told:
        raise BenchError(told["error"])
    return told["answer"]


def machine_words() -> str:
    """Processor, cores and system, for people; the same whenever this machine is asked."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def has_gpu() -> bool:
    """Whether this machine's default adapter is more than a CPU that stands in for a GPU."""
    child = Child("native")
    try:
        return not child.ask({"adapter": True})["software"]
    except BenchError:
        return False
    finally:
        child.close()


@contextmanager
def open_place(place: str, gpu: bool = False) -> Iterator[Child | Page]:
    """Open one of PLACES. gpu: Chromium takes the machine's GPU."""
    if place not in PLACES:
        raise Unavailable(f"There is no place {place!r} to measure; there are {', '.join(PLACES)}.")
    if place == "chromium":
        with open_browser(software=not gpu) as browser:
            yield Page(browser.tab())
        return
    child = Child(place)
    try:
        yield child
    finally:
        child.close()
