"""`playground doctor`: what works on this machine, what does not and why, and the command that mends it."""

import argparse
import http.client
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED_FREE_BYTES = 1_000_000_000  # the default model while it is set up (0.6 GB), and room for a trace
ANSWER_SECONDS, MOST_STATUS_BYTES = 2, 65536  # of what listens on the port


@dataclass(frozen=True)
class Finding:
    """One line of the report. `mend`: the command to type, empty when nothing has to be done."""

    works: bool
    subject: str
    words: str
    mend: str = ""
    needed: bool = True  # False: the playground does without it


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("doctor", help="say what works here", description=__doc__)
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report; 1 when something that is needed does not work."""
    failed = False
    for check in CHECKS:
        for finding in attempt(check):
            mark = "ok  " if finding.works else ("NO  " if finding.needed else "--  ")
            print(f"{mark} {finding.subject:<11} {finding.words}")
            if finding.mend:
                print(f"     {'':<11} type: {finding.mend}")
            failed |= finding.needed and not finding.works
    return int(failed)


def attempt(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check; one that fails unexpectedly is a finding, never the end of the report."""
    try:
        return list(check())
    except Exception as error:
        words = f"could not be looked at ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
        return [Finding(False, check.__name__, words, "python3 play.py")]


def python() -> Iterator[Finding]:
    """Python and the environment."""
    where = "in the checkout's .venv" if Path(sys.prefix) == ROOT / ".venv" else f"in {sys.prefix}"
    good = sys.version_info >= (3, 11)
    yield Finding(
        good, "Python", f"{platform.python_version()} {where}", "" if good else "install Python 3.11 or newer"
    )


def packages() -> Iterator[Finding]:
    """The packages of pyproject.toml."""
    missing = []
    for requirement in importlib.metadata.requires("attention-playground") or []:
        name = requirement.partition(";")[0].strip()
        if "extra ==" not in requirement:
            base = name.split("=")[0].split(">")[0].split("<")[0].split("!")[0].split("[")[0].strip()
            try:
                importlib.metadata.version(base)
            except importlib.metadata.PackageNotFoundError:
                missing.append(base)
    words = f"missing: {', '.join(missing)}" if missing else "all there"
    yield Finding(not missing, "packages", words, "python3 play.py" if missing else "")


def gpu() -> Iterator[Finding]:
    """Adapters that wgpu sees, and whether the default one can be opened."""
    from webgpu.device import DeviceError, request_device

    try:
        device = request_device()
    except DeviceError as error:
        from server.machine import install_words

        mend = install_words(["mesa-vulkan-drivers"]) if sys.platform == "linux" else ""
        yield Finding(False, "kernels", f"trace and parity cannot run: {error}", mend)
        return
    info = device.info
    yield Finding(True, "kernels", f"run on {device.words} ({info['backend_type']}, {info['adapter_type']})")
    if device.software:
        yield Finding(True, "", "a CPU does the GPU's work: right but slow; browsers may have a real GPU all the same")


def oracle() -> Iterator[Finding]:
    """PyTorch."""
    from server.oracle_state import oracle_state
    from server.settings import load_settings

    state = oracle_state(load_settings().oracle_state)
    mend = "" if state["state"] in ("ready", "installing") else "python3 play.py"
    yield Finding(state["state"] == "ready", "oracle", state["detail"], mend, needed=False)


def browser_code() -> Iterator[Finding]:
    """The page's third-party modules."""
    from server.assets import STATIC, VENDOR

    missing = [name for name, path in VENDOR.items() if not (STATIC / "node_modules" / path).is_file()]
    words = f"missing: {', '.join(missing)}" if missing else "all there"
    yield Finding(not missing, "page", f"third-party modules {words}", "python3 play.py" if missing else "")


def chromium() -> Iterator[Finding]:
    """A browser for the tests."""
    from server.machine import find_browser, install_words

    found = find_browser()
    words = f"{found}" if found else "no Chromium on PATH: only the tests need it, any browser shows the page"
    yield Finding(bool(found), "Chromium", words, "" if found else install_words(["chromium"]), needed=False)


def models() -> Iterator[Finding]:
    """Models, each opened and checked."""
    from server.model_index import ModelIndex
    from server.settings import load_settings
    from weights.sizes import megabytes, weight_bytes

    index = ModelIndex(load_settings().model)
    found = index.all()
    for model in found:
        words = model.refused or f"{model.family}, {megabytes(weight_bytes(model.files))}"
        yield Finding(not model.refused, "model", f"{model.entry.id}: {words}", needed=model.entry.id == index.default)
    if index.default not in [model.entry.id for model in found]:
        yield Finding(False, "model", f"the default, {index.default}, is missing", f"playground pull {index.default}")


def disk() -> Iterator[Finding]:
    """Room where models are kept, and whether it can be written."""
    from weights.places import cache_dir

    cache = cache_dir()
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    writable = os.access(there, os.W_OK)
    words = f"{cache}, {free / 1e9:.1f} GB free{'' if writable else ', not writable'}"
    good = writable and free >= NEEDED_FREE_BYTES
    yield Finding(good, "cache", words, "" if good else "export PLAYGROUND_CACHE=<a folder with more room>")


def port() -> Iterator[Finding]:
    """The port that `serve` would take."""
    from server.commands.serve import address
    from server.settings import load_settings

    settings = load_settings()
    try:
        socket.create_server((settings.host, settings.port)).close()
    except OSError as error:
        url = address(settings.host, settings.port)
        if runs_at(url):
            yield Finding(True, "port", f"the playground runs there already: {url}")
            return
        words = f"{settings.host} port {settings.port} is taken ({error.strerror}); play.py takes the next free one"
        yield Finding(False, "port", words, f"playground serve --port {settings.port + 1}", needed=False)
        return
    yield Finding(True, "port", f"{settings.host} port {settings.port} is free")


def runs_at(url: str) -> bool:
    """Whether a playground answers there; whatever else listens, or is silent for ANSWER_SECONDS, is none."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/status", timeout=ANSWER_SECONDS) as answer:
            return "playground" in json.loads(answer.read(MOST_STATUS_BYTES))["versions"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return False


CHECKS = (python, packages, gpu, oracle, browser_code, chromium, models, disk, port)
