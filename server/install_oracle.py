"""Install PyTorch into this environment: `python -m server.install_oracle`. Standard library only.

Started by play.py once the page is open. How far it is stands in a small JSON file that the server and
`playground doctor` read. A machine without an NVIDIA GPU is never made to fetch CUDA: pip is first asked what it would
bring (`--dry-run --report`), and where that holds CUDA packages PyTorch's CPU index is used instead.
"""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from server.machine import has_nvidia_gpu
from server.oracle_state import oracle_state

PINNED = "torch==2.13.0"  # the release this project was tested with
RANGE = "torch>=2.4"  # what works where the pinned release has no build for this platform
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
STATE = Path(sys.prefix) / "oracle-state.json"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
_CUDA = re.compile(r"nvidia[-_].*|cuda[-_].*|(pytorch[-_])?triton")


class InstallError(Exception):
    """PyTorch could not be installed; the message is one sentence."""


def write_state(state: str, detail: str, progress: float | None = None, path: Path = STATE) -> None:
    """Tell whoever reads the state file; written whole or not at all."""
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    report = {"state": state, "detail": detail, "progress": progress, "pid": os.getpid()}
    fresh.write_text(json.dumps(report), "utf-8")
    fresh.replace(path)


def cuda_packages(report: dict) -> list[str]:
    """Names in a `pip install --report` that only a machine with an NVIDIA GPU can use."""
    names = [str(item.get("metadata", {}).get("name", "")).lower() for item in report.get("install", [])]
    return [name for name in names if _CUDA.fullmatch(name)]


def ask_pip(requirement: str, run: Callable = subprocess.run) -> dict | None:
    """What pip would install for the requirement, or None when it finds no such release."""
    command = [*PIP, "install", "--quiet", "--dry-run", "--report", "-", requirement]
    done = run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout[done.stdout.index("{") :])


def choose(nvidia: bool, ask: Callable[[str], dict | None] = ask_pip) -> list[str]:
    """Arguments for `pip install`: the requirement, with the CPU index where the default would bring CUDA for nothing.

    Raises InstallError when no index has a PyTorch for this Python.
    """
    for requirement in (PINNED, RANGE):
        report = ask(requirement)
        if report is not None:
            useless = cuda_packages(report) and not nvidia
            return ["--index-url", CPU_INDEX, requirement] if useless else [requirement]
    raise InstallError(
        f"pip finds no PyTorch for Python {sys.version_info[0]}.{sys.version_info[1]} on this machine; "
        "check the connection, then run python3 play.py again."
    )


def fractions(lines: Iterable[str]) -> Iterable[float]:
    """How much of the largest file so far is there, from pip's raw progress lines (`Progress 1024 of 4096`)."""
    largest = 0
    for line in lines:
        match = re.fullmatch(r"\s*Progress (\d+) of (\d+)\s*", line)
        if match and int(match[2]) >= max(1, largest):
            largest = int(match[2])
            yield int(match[1]) / largest


def install(arguments: list[str]) -> None:
    """Run pip and pass its progress on. Raises InstallError."""
    command = [*PIP, "install", "--progress-bar", "raw", *arguments]
    last: list[str] = []

    def kept(lines: Iterable[str]) -> Iterable[str]:
        for line in lines:
            if not line.lstrip().startswith("Progress "):
                print(line, end="", flush=True)
                last[:] = [*last, line.strip()][-3:]
            yield line

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        shown = -1
        try:
            for fraction in fractions(kept(pip.stdout)):
                if int(fraction * 100) != shown:
                    shown = int(fraction * 100)
                    write_state("installing", f"PyTorch is being downloaded ({shown} %).", fraction * 0.9)
            status = pip.wait()
        except BaseException:
            pip.terminate()
            raise
    if status != 0:
        reason = next((line for line in reversed(last) if line.startswith("ERROR")), "see .venv/oracle-install.log")
        raise InstallError(f"PyTorch could not be installed ({reason}); run python3 play.py again.")


def torch_version() -> str | None:
    """Version of a torch that this Python can import, tried in a fresh process."""
    if importlib.util.find_spec("torch") is None:
        return None
    done = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else None


def wait_for_others() -> None:
    """Let another process that installs finish first: two pips in one environment break each other."""
    told = False
    while oracle_state(STATE)["state"] == "installing":
        if not told:
            print("-- waiting for the installation of PyTorch that is going on", flush=True)
        told = True
        time.sleep(1)


def main() -> int:
    """Install unless a torch is there already; 0 when the oracle can be asked afterwards."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that pip is ended too, not left behind at work
    try:
        wait_for_others()
        version = torch_version()
        if version is None:
            write_state("installing", "pip is being asked which PyTorch suits this machine.")
            install(choose(has_nvidia_gpu()))
            importlib.invalidate_caches()
            version = torch_version()
        if version is None:
            raise InstallError("PyTorch is installed but cannot be imported; `python -c 'import torch'` shows why.")
        write_state("ready", f"PyTorch {version} is installed.")
        print(f"PyTorch {version} is ready.")
        return 0
    except InstallError as error:
        write_state("failed", str(error))
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
