"""play.py without a network: what each step runs, what it skips, how it goes on after an interruption."""

import ast
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from server.machine import SetupError


@pytest.fixture
def play(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module play.py, at work in a checkout of its own where commands are only recorded (`play.commands`)."""
    spec = importlib.util.spec_from_file_location("play_under_test", root / "play.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "package-lock.json").write_text("{}")
    (tmp_path / "pyproject.toml").write_text("[project]")
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "STATIC", tmp_path / "static")
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "python")
    monkeypatch.setattr(module, "STAMPS", tmp_path / ".venv" / "setup-stamps.json")
    module.commands = []
    module.failing = None

    def run(command, what, **options):
        words = " ".join(str(part) for part in command)
        module.commands.append(words)
        if module.failing and module.failing in words:
            raise SetupError(f"Could not {what}.")
        if "-m venv" in words:
            module.PYTHON.symlink_to(sys.executable)
        if "sys.argv" in words and " ci " in words:
            (tmp_path / "static" / "node_modules").mkdir(exist_ok=True)

    monkeypatch.setattr(module, "run", run)
    return module


def did(play: ModuleType, part: str) -> int:
    """How many recorded commands contain this text."""
    return sum(part in command for command in play.commands)


def test_play_parses_on_old_python_up_to_its_version_check(root: Path) -> None:
    source = (root / "play.py").read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    statements = [ast.unparse(node) for node in tree.body]
    check = next(i for i, text in enumerate(statements) if text.startswith("if sys.version_info < (3, 11)"))
    assert all(text.startswith(("'", '"', "import sys")) for text in statements[:check])


def test_play_old_python_is_one_sentence(root: Path) -> None:
    code = "import sys, runpy; sys.version_info = (3, 10, 1); runpy.run_path('play.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "This needs Python 3.11 or newer; this one is Python 3.10.\n"


def test_play_uses_the_standard_library_and_server_machine_only(root: Path) -> None:
    for file in (
        "play.py",
        "server/machine.py",
        "server/install_oracle.py",
        "server/oracle_state.py",
        "server/__init__.py",
    ):
        for node in ast.walk(ast.parse((root / file).read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                known = name.split(".")[0] in sys.stdlib_module_names
                assert known or name in ("server.machine", "server.oracle_state"), (file, name)


def test_setup_first_run_does_every_step_in_order(play: ModuleType) -> None:
    play.set_up()
    order = ["-m venv --clear", "pip>=24.1", "install -e .", " ci ", "server.cli pull"]
    found = [next(i for i, command in enumerate(play.commands) if part in command) for part in order]
    assert found == sorted(found) and len(play.commands) == len(order)
    assert did(play, "--omit=dev") == 1 and did(play, "--ignore-scripts") == 1
    assert did(play, "torch") == 0 and did(play, "[test]") == 0


def test_setup_second_run_only_looks_for_the_model(play: ModuleType) -> None:
    play.set_up()
    play.commands.clear()
    play.set_up()
    assert len(play.commands) == 1 and did(play, "server.cli pull") == 1


@pytest.mark.parametrize(
    ("changed", "again"), [("pyproject.toml", "install -e ."), ("static/package-lock.json", " ci ")]
)
def test_setup_changed_file_repeats_its_step_only(play: ModuleType, changed: str, again: str) -> None:
    play.set_up()
    play.commands.clear()
    (play.ROOT / changed).write_text("changed")
    play.set_up()
    steps = [did(play, part) for part in ("-m venv", "install -e .", " ci ")]
    assert did(play, again) == 1 and sum(steps) == 1


@pytest.mark.parametrize("failing", ["-m venv", "install -e .", " ci ", "server.cli pull"])
def test_setup_interrupted_goes_on_where_it_stopped(play: ModuleType, failing: str) -> None:
    play.failing = failing
    with pytest.raises(SetupError):
        play.set_up()
    before = [part for part in ("-m venv", "install -e .", " ci ") if did(play, part) and part != failing]
    play.failing = None
    play.commands.clear()
    play.set_up()
    assert did(play, failing) == 1
    assert not any(did(play, part) for part in before)


def test_setup_interrupted_while_updating_does_not_trust_the_old_stamp(play: ModuleType) -> None:
    play.set_up()
    (play.ROOT / "pyproject.toml").write_text("new")
    play.failing = "install -e ."
    with pytest.raises(SetupError):
        play.set_up()
    (play.ROOT / "pyproject.toml").write_text("[project]")  # back to the first state: half-installed all the same
    play.failing = None
    play.commands.clear()
    play.set_up()
    assert did(play, "install -e .") == 1


def test_setup_half_made_venv_is_made_anew(play: ModuleType) -> None:
    play.PYTHON.write_text("#!/bin/sh\nexit 1\n")
    play.PYTHON.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(play.PYTHON), "symlink_to", lambda self, target: None)
        play.make_venv()
    assert did(play, "-m venv --clear") == 1


def test_setup_working_venv_is_adopted(play: ModuleType) -> None:
    play.PYTHON.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    play.PYTHON.chmod(0o755)
    play.make_venv()
    assert play.commands == []


def test_setup_python_without_venv_asks_apt_for_it(play: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(play, "has_venv", lambda: False)
    monkeypatch.setattr(play, "apt_install", lambda packages, what: asked.append(packages))
    play.make_venv()
    assert asked == [[f"python3.{sys.version_info[1]}-venv"]]


def test_setup_browser_code_removed_is_fetched_again(play: ModuleType) -> None:
    play.set_up()
    (play.STATIC / "node_modules").rmdir()
    play.commands.clear()
    play.install_browser_code()
    assert did(play, " ci ") == 1


def test_setup_for_tests_then_for_play_fetches_nothing_again(play: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "install_test_machine", lambda: None)
    play.set_up_tests()
    torch = next(i for i, command in enumerate(play.commands) if "install_oracle" in command)
    extra = next(i for i, command in enumerate(play.commands) if "[test]" in command)
    assert torch < extra  # so that transformers cannot bring another torch
    assert did(play, "--omit=dev") == 0 and did(play, " ci ") == 1
    play.commands.clear()
    play.set_up()
    assert len(play.commands) == 1
    play.commands.clear()
    play.set_up_tests()
    assert did(play, "pip") == did(play, " ci ") == 0


def test_stamps_damaged_count_as_nothing_done(play: ModuleType) -> None:
    for text in ("{half", "[]", "\x00"):
        play.STAMPS.write_text(text)
        assert play.read_stamps() == {}
    play.write_stamp("x", "1")
    assert json.loads(play.STAMPS.read_text()) == {"x": "1"}


def test_port_taken_by_default_gives_the_next_free_one(play: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(play, "FIRST_PORT", port)
        assert port < play.free_port("127.0.0.1", None) < port + play.PORTS_TRIED
        with pytest.raises(SetupError, match=f"port {port}.*--port"):
            play.free_port("127.0.0.1", port)


def test_port_of_a_host_that_is_not_ours_is_one_sentence(play: ModuleType) -> None:
    with pytest.raises(SetupError, match="Cannot listen"):
        play.free_port("192.0.2.1", None)  # TEST-NET-1: nobody's address


def test_display_is_where_a_browser_can_open(play: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(play.sys, "platform", "linux")
    assert not play.has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert play.has_display()
    monkeypatch.setenv("SSH_CONNECTION", "x")
    assert not play.has_display()


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["test"], []),
        (["test", "--quick"], ["-m", "not slow"]),
        (["test", "--quick", "tests/server", "-x", "-k", "a b"], ["-m", "not slow", "tests/server", "-x", "-k", "a b"]),
    ],
)
def test_test_passes_its_arguments_to_pytest(
    play: ModuleType, monkeypatch: pytest.MonkeyPatch, argv: list[str], wanted: list[str]
) -> None:
    called = []
    monkeypatch.setattr(play, "set_up_tests", lambda: None)
    monkeypatch.setattr(play.subprocess, "call", lambda command, cwd: called.append(command) or 5)
    assert play.main(argv) == 5
    assert called[0][1:] == ["-m", "pytest", *wanted]


def test_help_tells_of_the_tests(play: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        play.main(["--help"])
    assert "play.py test" in " ".join(capsys.readouterr().out.split())


def test_failure_is_one_sentence_and_exit_status_two(
    play: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(play, "set_up", lambda: play.run(["x"], "do it"))
    play.failing = "x"
    assert play.main([]) == 2
    assert capsys.readouterr().err == "play.py: Could not do it.\n"


def test_server_that_ends_at_once_is_one_sentence(play: ModuleType) -> None:
    ended = SimpleNamespace(poll=lambda: 2, returncode=2)
    with pytest.raises(SetupError, match="exit status 2"):
        play.wait_until_up(ended, "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("status", "there", "said"),
    [
        (0, False, "-- PyTorch is ready: the page can verify what it computes\n"),
        (0, True, ""),
        (1, False, "-- PyTorch could not be installed: {} says why; the same command tries again\n"),
        (-15, False, ""),  # it ended with the server
        (143, False, ""),
    ],
)
def test_play_tells_when_pytorch_is_there(
    play: ModuleType, capsys: pytest.CaptureFixture[str], status: int, there: bool, said: str
) -> None:
    play.tell_of_oracle(SimpleNamespace(wait=lambda: status), there)
    assert capsys.readouterr().out == said.format(play.ORACLE_LOG)


def test_play_knows_from_its_report_that_pytorch_is_there(
    play: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from server.install_oracle import STATE

    assert play.ORACLE_STATE.name == STATE.name
    monkeypatch.setattr(play, "ORACLE_STATE", tmp_path / "state.json")
    for text, there in (
        (None, False),
        ("{", False),
        ("[]", False),
        ('{"state": "failed"}', False),
        ('{"state": "ready"}', True),
    ):
        if text is not None:
            play.ORACLE_STATE.write_text(text)
        assert play.oracle_is_there() is there


def test_run_reports_failure_and_missing_programs(root: Path) -> None:
    spec = importlib.util.spec_from_file_location("play_real", root / "play.py")
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    with pytest.raises(SetupError, match="exit status 3"):
        real.run([sys.executable, "-c", "raise SystemExit(3)"], "do it")
    with pytest.raises(SetupError, match="No such file"):
        real.run(["/nonexistent/program"], "do it")
    real.run([sys.executable, "-c", "pass"], "do it")
    assert os.access(root / ".ci" / "run", os.X_OK)
    assert "python3 play.py test" in (root / ".ci" / "run").read_text()
