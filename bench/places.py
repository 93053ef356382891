"""Where a measurement runs: each place answers `measure(given)` with the report of bench/timing.py.

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
IN_PAGE = """async (given) => {
  const { measure } = await import("/static/bench/timing.js");
  const { Kernels } = await import("/static/gpu/kernels.js");
  const { requestDevice } = await import("/static/gpu/device.js");
  globalThis.kernels ??= await Kernels.load(await requestDevice());
  try { return { answer: await measure(kernels, given) }; } catch (error) { return { error: error.message }; }
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
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["answer"]

    def measure(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return self.ask({"measure": dict(given)})

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Page:
    """The same questions to a tab of Chromium."""

    place = "chromium"

    def __init__(self, tab: Tab) -> None:
        self.tab = tab

    def measure(self, given: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.tab.ask(IN_PAGE, dict(given))
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["answer"]


def machine_words() -> str:
    """Processor, cores and what else runs, for people."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores, {platform.system()}{load}"


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
