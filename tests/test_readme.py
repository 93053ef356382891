"""README stays true: every command in its `sh` blocks runs. tests/test_texts.py holds what it points at.

The two play.py commands run here as a person types them, except that the first one is ended once its page answers and
the second one only collects the tests (this very run is what it would start).
"""

import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines() if line]
PLAYGROUND = [command for command in COMMANDS if command.startswith("playground ")]


def test_every_readme_command_has_a_test():
    assert set(COMMANDS) - set(PLAYGROUND) == {"python3 play.py", "python3 play.py test"}


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("command", PLAYGROUND)
def test_readme_playground_command_runs(command, tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    words = shlex.split(command)
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=570)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in re.findall(r"--out (\S+)", command):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.slow
def test_play_opens_a_working_page(free_port):
    command = [sys.executable, "play.py", "--no-open", "--port", str(free_port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as play:
        try:
            url = next((found[0] for line in play.stdout if (found := re.findall(r"open (http\S+)", line))), None)
            assert url, "play.py ended before its page was up"
            with urllib.request.urlopen(url, timeout=30) as page:
                assert "<title>attention playground</title>" in page.read().decode()
        finally:
            play.terminate()


@pytest.mark.slow
def test_play_test_collects_every_test_folder():
    command = [sys.executable, "play.py", "test", "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=570)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert len(folders) >= 9 and not [folder for folder in folders if f"tests/{folder}/" not in done.stdout]
