"""Every command line that a README shows is one that its program takes; the quick ones of the inner READMEs run.

Plan: the commands of `sh` blocks and those within a sentence, read by the program's own parser, which is stopped before
anything is done; a program or a flag that does not exist is refused. tests/test_readme.py runs those of README.md.
"""

import argparse
import importlib
import inspect
import re
import shlex
import subprocess
import sys

import pytest

import play
from server import cli
from tests.conftest import ROOT
from tests.test_house import tracked_files

READMES = [path for path in tracked_files() if path.suffix == ".md"]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)
INLINE = re.compile(r"`((?:playground|python3?|\.venv/bin/\w+) [^`\n]+)`")
# Module after -m -> where its main is; WORDS take words instead of options, NUMBERS a list of them.
MAINS = {
    "bench": "bench.__main__", "weights.training": "weights.training.command",
    "bench.first_heatmaps": "bench.first_heatmaps", "bench.long_tasks": "bench.long_tasks", "bench.wall": "bench.wall",
    "bench.submits": "bench.submits", "bench.lens": "bench.lens",
}  # fmt: skip
WORDS = ("bench.wall", "bench.lens")
NUMBERS = ("bench.submits",)
QUICK = ("--variant fa2 --on native", "--op decode --T 2048 --json")


class Parsed(BaseException):
    """The parser was content; nothing may be done after it."""


def commands() -> list[str]:
    """Every command line of every README, without its comment."""
    found = set()
    for path in READMES:
        text = path.read_text("utf-8")
        for language, block in BLOCK.findall(text):
            found.update(line.partition("#")[0].strip() for line in block.splitlines() if language == "sh")
        found.update(INLINE.findall(BLOCK.sub("", text)))
    return sorted(found - {""})


def read(command: str, patch: pytest.MonkeyPatch) -> None:
    """Let the program read its command line. Raises SystemExit, KeyError, ... for one that it does not take."""
    program, *words = shlex.split(command)
    if program.endswith("playground"):
        if words != ["--help"]:
            cli.parser().parse_args(words)
    elif words[0] == "play.py":
        patch.setattr(play, "play", lambda options: None)
        patch.setattr(play, "test", lambda options, rest: rest)
        assert not play.main(words[1:])
    else:
        assert words[0] == "-m", f"{command} is no command that this test knows"
        main = importlib.import_module(MAINS[words[1]]).main
        if len(words) == 2:
            return  # the program by its name
        if words[1] in WORDS:
            inspect.signature(main).bind(*words[2:])
            return
        if words[1] in NUMBERS:
            inspect.signature(main).bind([int(word) for word in words[2:]])
            return
        real = argparse.ArgumentParser.parse_args

        def parse(self: argparse.ArgumentParser, given: list[str]) -> None:
            real(self, given)
            raise Parsed

        patch.setattr(argparse.ArgumentParser, "parse_args", parse)
        with pytest.raises(Parsed):
            main(words[2:])


def test_readmes_show_commands():
    assert len(READMES) >= 9 and len(commands()) >= 30, "the patterns above find no commands any more"


@pytest.mark.parametrize("command", commands())
def test_readme_command_is_one_that_its_program_takes(command, monkeypatch):
    read(command, monkeypatch)


@pytest.mark.parametrize(
    "command",
    ["playground trace tiny --loud", "playground sing", "python -m bench --op matmul --rows 3", "python -m bench.walls",
     "python -m bench.submits many", "python -m bench.long_tasks --why often",
     "python3 play.py --quick", "python3 play.py test loudly", "python -m weights.training evaluate", "python play"],
)  # fmt: skip
def test_command_that_no_program_takes_is_noticed(command, monkeypatch):
    with pytest.raises((SystemExit, KeyError, AssertionError, ValueError)):
        read(command, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("end", QUICK)
def test_quick_command_of_a_readme_runs(end):
    [command] = [each for each in commands() if each.endswith(end)]
    program, *words = shlex.split(command)
    start = ["-m", "server.cli"] if program.endswith("playground") else []
    done = subprocess.run([sys.executable, *start, *words], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
