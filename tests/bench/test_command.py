"""`python -m bench` refuses what it would ignore, and keeps a run apart from the last whole one until its end.

Plan: each option in the wrong company, and every command of the READMEs in the right one; a run of fakes that is
stopped, goes on, ends; a run of another machine; no device is asked.
"""

import json
import shlex
from types import SimpleNamespace

import pytest

from bench import __main__ as command
from bench import full
from bench.peers import install
from tests.test_readme_commands import commands

WITHOUT_OP = [
    ("--T 5", "--T"), ("--window 0", "--window"), ("--variant fa2", "--variant"), ("--on native", "--on"),
    ("--format f16 --json", "--format"), ("--quick --H 64", "--H"),
]  # fmt: skip
WITH_OP = ["--quick", "--readme", "--continue", "--install-peers", "--without-peers"]
START = {"machine": "a processor, 2 cores, Linux, load 1.0 at the start", "gpu": False, "seconds": 5, "sittings": 1}
EMPTY = {"side_by_side": [], "alone": [], "model": {}, "headless": {}, "page": {}, "problems": [], "versions": {}}


@pytest.fixture
def asked(monkeypatch):
    """What the command came to do, instead of doing it."""
    done = []
    monkeypatch.setattr(command, "table", lambda args: done.append("table") or 0)
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    monkeypatch.setattr(command, "measured", lambda place, given, gpu: done.append((place, given)) or {"error": "x"})
    return done


def refusal(line: str, capsys) -> str:
    """The one sentence with which a command line is refused."""
    assert command.main(shlex.split(line)) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("bench: ") and said.err.endswith(".\n") and said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(("line", "name"), WITHOUT_OP)
def test_option_of_one_operation_without_op_is_refused(asked, capsys, line, name):
    said = refusal(line, capsys)
    assert f"{name} without --op" in said and "name one operation with --op, of attention, decode" in said
    assert asked == []


@pytest.mark.parametrize("name", WITH_OP)
def test_option_of_the_table_with_op_is_refused(asked, capsys, name):
    said = refusal(f"--op decode {name}", capsys)
    assert f"{name} with --op" in said and "leave it out" in said and asked == []


@pytest.mark.parametrize(("line", "words"), [
    ("--op ''", 'op is ""; allowed are attention'), ("--op sums", 'op is "sums"'),
    ("--op decode --T 9000", "T is 9000"),
    ("--quick --continue", "--continue with --quick"), ("--quick --readme", "--readme with --quick"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_before_a_place_is_opened(asked, capsys, line, words):
    assert words in refusal(line, capsys) and asked == []


def test_every_command_of_the_readmes_is_one_that_is_done(asked):
    lines = [shlex.split(line)[3:] for line in commands() if " -m bench" in line and " -m bench." not in line]
    assert len(lines) >= 5
    for line in lines:
        asked.clear()
        command.main(line)
        assert (asked == ["table"]) != ("--op" in line) and asked, line
    asked.clear()
    command.main(["--op", "decode"])
    assert [place for place, _ in asked] == ["native", "swiftshader", "chromium"]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """A whole run of fakes: parts as they are called; stop: the part that fails as a person's Ctrl-C does."""
    found = SimpleNamespace(record=tmp_path / "latest.json", running=tmp_path / "running.json", parts=[], stop="")
    monkeypatch.setattr(full, "RECORD", found.record)
    monkeypatch.setattr(full, "RUNNING", found.running)
    monkeypatch.setattr(full, "has_gpu", lambda: False)
    monkeypatch.setattr(full, "machine_words", lambda: "a processor, 2 cores, Linux")
    monkeypatch.setattr(full.memory, "table", lambda: [])
    monkeypatch.setattr(full.whole, "page", lambda gpu, log: {"short": 1})

    def part(name):
        def do(self, *_):
            if found.stop == name:
                raise KeyboardInterrupt
            found.parts.append(name)
            self.each(self.found["alone"], [{"op": name}], lambda given: {"given": given})

        return do

    for name in ("headless", "chromium"):
        monkeypatch.setattr(full.Run, name, part(name))
    found.collect = lambda **how: full.collect(**{"quick": False, "peers": False, "log": lambda words: None, **how})
    found.record.write_text("the last whole run")
    monkeypatch.setattr(install, "install", lambda: found.parts.append("peers"))
    monkeypatch.setattr(install, "installed", lambda: True)
    return found


def test_run_that_is_stopped_leaves_the_last_whole_one_and_goes_on(run):
    run.stop = "chromium"
    with pytest.raises(KeyboardInterrupt):
        run.collect()
    assert run.record.read_text() == "the last whole run"
    kept = json.loads(run.running.read_text())
    assert kept["alone"] == [{"given": {"op": "headless"}}] and kept["page"] == {"short": 1}
    run.stop = ""
    found = run.collect(record=full.stopped())
    assert found["alone"] == [{"given": {"op": "headless"}}, {"given": {"op": "chromium"}}] and found["sittings"] == 2
    assert json.loads(run.record.read_text()) == found
    assert sorted(path.name for path in run.record.parent.iterdir()) == ["latest.json"], (
        "there is nothing to go on with"
    )


def test_new_run_takes_nothing_from_one_that_was_stopped(run):
    run.running.write_text(json.dumps({**START, **EMPTY, "alone": [{"given": {"op": "old"}}]}))
    assert {"given": {"op": "old"}} not in run.collect()["alone"]


def test_quick_run_is_not_kept(run):
    run.collect(quick=True)
    assert run.record.read_text() == "the last whole run" and not run.running.exists()


def test_where_nothing_was_stopped_there_is_nothing_to_continue(run, capsys):
    """As in a fresh clone, which brings the record of another machine's last whole run."""
    said = refusal("--continue --install-peers", capsys)
    assert "here is none (no running.json)" in said and run.parts == []
    assert run.record.read_text() == "the last whole run"


@pytest.mark.parametrize(
    "other", [{"machine": "another, 2 cores, Linux, load 1.0 at the start"}, {"gpu": True}], ids=str
)
def test_run_of_another_machine_is_not_continued(run, capsys, other):
    run.running.write_text(json.dumps({**START, **EMPTY, **other}))
    said = refusal("--continue --install-peers", capsys)
    assert "and this is a processor, 2 cores, Linux, no GPU" in said and run.parts == []


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"machine": 3, "gpu": false}'])
def test_what_is_no_record_is_not_continued(run, capsys, text):
    run.running.write_text(text)
    assert "is no record of a run" in refusal("--continue --install-peers", capsys)


def test_continue_goes_on_with_the_run_that_was_stopped(run, monkeypatch, capsys):
    run.running.write_text(json.dumps({**START, **EMPTY, "page": {"short": 2}}))
    monkeypatch.setattr(command, "render", lambda found: json.dumps(found["page"]))
    assert command.main(["--continue", "--install-peers"]) == 0
    assert run.parts == ["peers", "headless", "chromium"] and json.loads(capsys.readouterr().out) == {"short": 2}


def test_machine_is_told_with_its_load_and_known_without(run):
    run.running.write_text(json.dumps({**START, **EMPTY}))
    assert run.collect(record=full.stopped())["machine"] == START["machine"]
    assert run.collect()["machine"].startswith("a processor, 2 cores, Linux, load ")
