"""Whether the PyTorch oracle can be asked, found out without importing torch.

Set-up installs torch after the page is open and writes its progress into a small JSON file:
{"state": "installing" | "failed" | "ready", "detail": "...", "progress": 0..1 or null, "pid": number}.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path

COMMAND = "python3 play.py"


def oracle_state(path: Path) -> dict:
    """{"state": "ready" | "installing" | "absent" | "failed", "detail": one sentence, "progress": 0..1 or None}."""
    report = _read(path)
    if report.get("state") == "installing" and _alive(report.get("pid")):
        return _state("installing", str(report.get("detail") or "PyTorch is being installed."), report.get("progress"))
    importlib.invalidate_caches()
    if importlib.util.find_spec("torch") is not None and _version("torch"):
        return _state("ready", f"PyTorch {_version('torch')} computes the reference.")
    if report.get("state") == "failed":
        return _state("failed", str(report.get("detail") or f"PyTorch could not be installed; run {COMMAND} again."))
    if report.get("state") == "installing":
        return _state("failed", f"The installation of PyTorch was interrupted; run {COMMAND} again.")
    return _state("absent", f"PyTorch, the oracle's engine, is not installed; {COMMAND} installs it.")


def _state(state: str, detail: str, progress: object = None) -> dict:
    known = isinstance(progress, int | float) and 0 <= progress <= 1
    return {"state": state, "detail": detail, "progress": progress if known else None}


def _read(path: Path) -> dict:
    try:
        report = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):  # absent, or being replaced at this moment
        return {}
    return report if isinstance(report, dict) else {}


def _alive(pid: object) -> bool:
    """Whether the installer with this process id is still at work."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    if Path("/proc/self/cmdline").exists():
        try:  # the number may belong to another program by now
            return b"install_oracle" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
    if os.name == "nt":
        return True  # os.kill would end the process there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
