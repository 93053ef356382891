"""What this machine has and how to get what it lacks: browsers, Vulkan drivers, NVIDIA GPUs, apt.

Standard library only: play.py uses it before any package is installed, `playground doctor` afterwards.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ICD_FOLDERS = ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")


class SetupError(Exception):
    """Something has to be installed by the person; the message names it and the command to type."""


def find_browser() -> str | None:
    """Path of a Chromium-like browser on PATH."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def vulkan_drivers(folders: Sequence[str] = ICD_FOLDERS) -> list[Path]:
    """Files that describe Vulkan drivers (Linux); as in the loader, VK_DRIVER_FILES and VK_ICD_FILENAMES win."""
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if chosen:
        return [Path(part) for part in chosen.split(os.pathsep) if Path(part).is_file()]
    return sorted(file for folder in folders for file in Path(folder).glob("*.json"))


def has_nvidia_gpu() -> bool:
    """Whether an NVIDIA GPU can be used from here: its driver answers and lists one."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        done = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "GPU " in done.stdout


def apt_prefix() -> list[str] | None:
    """What to put before apt-get on a Debian-like system: nothing for root, sudo where it asks no password, or None."""
    if shutil.which("apt-get") is None:
        return None
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None


def apt_install(packages: Sequence[str], what: str, call: Callable[..., int] = subprocess.call) -> None:
    """Install Debian packages. Raises SetupError with the command to type when that is not possible from here."""
    prefix = apt_prefix()
    if prefix is None:
        raise SetupError(f"{what} is missing; type: {install_words(packages)}")
    print(f"-- installing {what} (apt-get install {' '.join(packages)})", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = [*prefix, "apt-get", "-qq", "-o", "Acquire::Retries=3"]
    call([*apt, "update"], env=environment)
    if call([*apt, "install", "-y", "--no-install-recommends", *packages], env=environment) != 0:
        raise SetupError(f"{what} could not be installed; type: {install_words(packages)}")


def install_words(packages: Sequence[str]) -> str:
    """The command a person types to install Debian packages, or its nearest word on other systems."""
    if sys.platform == "darwin":
        return "brew install --cask chromium"
    if sys.platform == "win32":
        return "winget install Google.Chrome"
    if shutil.which("apt-get"):
        return f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"
    return f"install {' and '.join(packages)} with this system's package manager"


def install_test_machine() -> None:
    """Chromium, and on Linux a Vulkan driver that runs on the CPU. Raises SetupError."""
    wanted = {}
    if find_browser() is None:
        wanted["chromium"] = "Chromium"
    if sys.platform == "linux" and not vulkan_drivers():
        wanted["mesa-vulkan-drivers"] = "a Vulkan driver"
    if wanted:
        apt_install(list(wanted), " and ".join(wanted.values()))
