"""Installing PyTorch: which one, from where, and what the page is told meanwhile. pip is a fake throughout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from server import install_oracle, machine
from server.install_oracle import CPU_INDEX, PINNED, RANGE, InstallError, ask_pip, choose, cuda_packages, fractions


def report(*names: str) -> dict:
    """What `pip install --report -` prints, as far as it matters here."""
    return {"version": "1", "install": [{"metadata": {"name": name, "version": "1"}} for name in names]}


CPU = report("torch", "filelock", "sympy", "numpy", "typing_extensions")
CUDA = report("torch", "nvidia-cublas", "sympy", "triton")


@pytest.mark.parametrize(
    "name",
    ["nvidia-cublas-cu12", "nvidia_cudnn_cu13", "cuda-toolkit", "cuda-bindings", "triton", "pytorch-triton", "Triton"],
)
def test_report_cuda_package_is_seen(name: str) -> None:
    assert cuda_packages(report("torch", name)) == [name.lower()]


@pytest.mark.parametrize("name", ["torch", "barracuda", "tritonclient", "numpy", "my-nvidia-tools"])
def test_report_other_package_is_not_cuda(name: str) -> None:
    assert cuda_packages(report(name)) == []


@pytest.mark.parametrize(
    ("pinned", "ranged", "nvidia", "wanted"),
    [
        (CPU, None, False, [PINNED]),  # macOS, Windows, ARM: the index has CPU builds
        (CPU, None, True, [PINNED]),
        (CUDA, None, True, [PINNED]),
        (CUDA, None, False, ["--index-url", CPU_INDEX, PINNED]),
        (None, CPU, False, [RANGE]),  # no such release for this platform
        (None, CUDA, False, ["--index-url", CPU_INDEX, RANGE]),
        (None, CUDA, True, [RANGE]),
    ],
)
def test_choose_never_brings_cuda_without_a_gpu(
    pinned: dict | None, ranged: dict | None, nvidia: bool, wanted: list[str]
) -> None:
    assert choose(nvidia, {PINNED: pinned, RANGE: ranged}.get) == wanted


def test_choose_no_torch_at_all_is_one_sentence() -> None:
    with pytest.raises(InstallError, match="no PyTorch for Python"):
        choose(False, lambda requirement: None)


def test_ask_pip_reads_the_report_after_any_words() -> None:
    commands = []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(returncode=0, stdout="A notice.\n" + json.dumps(CPU))

    assert ask_pip(PINNED, run) == CPU
    assert {"--dry-run", "--report", "--quiet", PINNED} <= set(commands[0])
    assert ask_pip(PINNED, lambda *a, **k: SimpleNamespace(returncode=1, stdout="")) is None


def test_pin_lies_within_the_oracle_extra(root: Path) -> None:
    assert f'oracle = ["{RANGE}"]' in (root / "pyproject.toml").read_text("utf-8")


def test_fractions_follow_the_largest_file() -> None:
    lines = ["Collecting torch", "Progress 0 of 200", "Progress 100 of 200", "Progress 5 of 10", "Progress 200 of 200"]
    assert list(fractions(lines)) == [0.0, 0.5, 1.0]
    assert list(fractions(["Progress 0 of 0", "Progress x of y"])) == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state file of our own, and a Python without torch."""
    path = tmp_path / "state.json"
    monkeypatch.setattr(install_oracle, "STATE", path)
    monkeypatch.setattr(install_oracle, "write_state", _writer(path))
    monkeypatch.setattr(install_oracle, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(install_oracle, "choose", lambda nvidia: [PINNED])
    return path


def _writer(path: Path):
    real = install_oracle.write_state
    return lambda *words, **more: real(*words, **{"path": path, **more})


def test_install_shows_progress_and_ends_ready(state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    versions = iter([None, "2.13.0"])
    pip = tmp_path / "pip.py"
    pip.write_text("print('Progress 1 of 4'); print('Progress 4 of 4'); print('Successfully installed torch')")
    monkeypatch.setattr(install_oracle, "torch_version", lambda: next(versions))
    monkeypatch.setattr(install_oracle, "PIP", (sys.executable, str(pip)))
    told = []
    real = install_oracle.write_state
    monkeypatch.setattr(install_oracle, "write_state", lambda *words: told.append(words) or real(*words))
    assert install_oracle.main() == 0
    assert [words[0] for words in told] == ["installing", "installing", "installing", "ready"]
    assert [words[2] for words in told[1:3]] == [0.225, 0.9]
    assert json.loads(state.read_text())["state"] == "ready"


def test_install_failing_pip_is_told_with_its_reason(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = tmp_path / "pip.py"
    pip.write_text("print('ERROR: No space left on device'); raise SystemExit(1)")
    monkeypatch.setattr(install_oracle, "torch_version", lambda: None)
    monkeypatch.setattr(install_oracle, "PIP", (sys.executable, str(pip)))
    assert install_oracle.main() == 1
    told = json.loads(state.read_text())
    assert told["state"] == "failed" and "No space left" in told["detail"] and "play.py" in told["detail"]
    capsys.readouterr()


def test_install_torch_that_is_there_is_accepted(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_oracle, "torch_version", lambda: "2.6.0")
    monkeypatch.setattr(install_oracle, "install", lambda arguments: pytest.fail("nothing is to be installed"))
    assert install_oracle.main() == 0
    assert "2.6.0" in json.loads(state.read_text())["detail"]


def test_install_that_is_ended_ends_pip_too(root: Path, tmp_path: Path) -> None:
    """play.py ends the installer when the server ends; a pip left behind would meet the next one in the same .venv."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pip = tmp_path / "pip.py"
    pip.write_text(f"import os; print(os.getpid(), file=open({str(gate)!r}, 'w'), flush=True); input()")
    code = (
        "import sys; from server import install_oracle as it; from pathlib import Path;"
        f"it.STATE = Path({str(tmp_path / 'state.json')!r}); it.write_state = lambda *words: None;"
        f"it.torch_version = lambda: None; it.choose = lambda nvidia: []; it.PIP = (sys.executable, {str(pip)!r});"
        "sys.exit(it.main())"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdin=subprocess.PIPE) as installer:
        pid = int(gate.read_text())
        installer.terminate()
        assert installer.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nvidia_gpu_is_one_that_the_driver_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not machine.has_nvidia_gpu()
    for text, code, found in [
        ("GPU 0: X (UUID: y)", 0, True),
        ("No devices were found", 0, False),
        ("GPU 0", 9, False),
    ]:
        tool.write_text(f"#!/bin/sh\necho '{text}'\nexit {code}\n")
        tool.chmod(0o755)
        assert machine.has_nvidia_gpu() is found


def test_apt_install_runs_update_then_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "apt_prefix", lambda: ["sudo", "-n"])
    commands = []
    machine.apt_install(["chromium"], "Chromium", call=lambda command, env: commands.append((command, env)) or 0)
    assert [command[-1] for command, _ in commands] == ["update", "chromium"]
    assert all(command[:3] == ["sudo", "-n", "apt-get"] for command, _ in commands)
    assert commands[1][1]["DEBIAN_FRONTEND"] == "noninteractive"


def test_apt_install_not_possible_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "apt_prefix", lambda: None)
    with pytest.raises(machine.SetupError, match="sudo apt-get install -y chromium"):
        machine.apt_install(["chromium"], "Chromium")
    monkeypatch.setattr(machine, "apt_prefix", lambda: [])
    with pytest.raises(machine.SetupError, match=r"could not be installed; type: sudo apt-get"):
        machine.apt_install(["chromium"], "Chromium", call=lambda command, env: 100)


@pytest.mark.parametrize(
    ("browser", "drivers", "wanted"),
    [
        ("/usr/bin/chromium", ["x.json"], None),
        (None, ["x.json"], ["chromium"]),
        ("/usr/bin/chromium", [], ["mesa-vulkan-drivers"]),
        (None, [], ["chromium", "mesa-vulkan-drivers"]),
    ],
)
def test_test_machine_asks_for_what_is_missing(
    browser: str | None, drivers: list[str], wanted: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "find_browser", lambda: browser)
    monkeypatch.setattr(machine, "vulkan_drivers", lambda: drivers)
    monkeypatch.setattr(machine, "apt_install", lambda packages, what: asked.append(packages))
    machine.install_test_machine()
    assert asked == ([wanted] if wanted else [])


def test_vulkan_drivers_are_files_where_the_loader_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "lvp_icd.json").write_text("{}")
    assert machine.vulkan_drivers([str(tmp_path), "/nonexistent"]) == [tmp_path / "lvp_icd.json"]
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nonexistent.json")
    assert machine.vulkan_drivers([str(tmp_path)]) == []
