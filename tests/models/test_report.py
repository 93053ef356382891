"""Reports of what heads do: used when they are about these weights and well formed, else left out with a sentence.

Plan: the embedded model's own report is read whole; each rule of each file is broken once, beside the control that the
same file unbroken is read; whatever is wrong with one file, the other two still count and the model still opens.
"""

import json
import shutil
from copy import deepcopy
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from server.model_index import ModelIndex
from weights import catalogue
from weights.places import OWN_MODELS
from weights.report import MAX_BYTES, SCORES, Measured, read_report

HASH = "a" * 64
MODEL = SimpleNamespace(hash=HASH)
L, N, TOKENS = 2, 3, 16


def files() -> dict[str, dict]:
    """Three well-formed files about the model that `measured` describes."""
    scores = dict.fromkeys(SCORES, 0.25)
    heads = [{"layer": i // N, "head": i % N, **scores, "called": ["induction"]} for i in range(L * N)]
    prompt = {
        "id": "one", "title": "One", "text": "a b\nc", "layer": 1, "head": 2, "query": 3, "keys": [0, 1],
        "weight": 0.9, "next": " d", "says": "Layer 1, head 2: it looks back.",
    }  # fmt: skip
    depth = {"stories": {"agreement": [0.0, 0.5, 1], "cross_entropy": [20.0, 5, 3.25]}}
    measured_on = {"induction": "random tokens", "of another model": 7}
    return {
        "heads.json": {"model_sha256": HASH, "heads": heads, "measured_on": measured_on},
        "prompts.json": {"model_sha256": HASH, "prompts": [prompt]},
        "card.json": {"sha256": {"model.safetensors": HASH}, "measured": {"depth": depth}, "data": "Stories, CC0."},
    }


def read(folder, changed: dict | None = None):
    """The report of a folder with these files."""
    for name, value in {**files(), **(changed or {})}.items():
        (folder / name).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return read_report(Measured(folder, MODEL, L, N, TOKENS))


def test_report_of_the_embedded_model_is_read_whole():
    checkpoint = catalogue.find("tiny").open()
    report = read_report(Measured(OWN_MODELS / "tiny", checkpoint, 4, 8, 512))
    assert report.problems == [] and report.scores == list(SCORES) == list(report.measured_on)
    assert [(head["layer"], head["head"]) for head in report.heads] == [(i // 8, i % 8) for i in range(32)]
    assert [prompt["id"] for prompt in report.prompts] == ["coreference", "induction", "names", "tables"]
    assert {len(values) for rows in report.depth.values() for values in rows.values()} == {5}
    assert "CDLA-Sharing-1.0" in report.about["data"] and "earlier layers" in report.about["lens"]


def test_folder_without_reports_says_nothing(tmp_path):
    unhashed = SimpleNamespace()  # no file names a hash, so nobody reads all weights for theirs
    (tmp_path / "card.json").write_text('{"sha256": {}}')
    report = read_report(Measured(tmp_path, unhashed, L, N, TOKENS))
    assert not any(asdict(report).values())


def test_well_formed_files_are_read(tmp_path):
    report = read(tmp_path)
    assert report.problems == [] and len(report.heads) == 6 and report.heads[5]["induction"] == 0.25
    assert report.prompts[0]["keys"] == [0, 1] and report.depth["stories"]["agreement"] == [0, 0.5, 1]
    assert report.about == {"data": "Stories, CC0."} and report.measured_on == {"induction": "random tokens"}


def broken(name: str, path: list, value) -> dict:
    """The files with one value replaced."""
    found = deepcopy(files())
    at = found[name]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return {name: found[name]}


OTHER = "b" * 64
RULES = [
    *((name, ["model_sha256"], OTHER, "other weights") for name in ("heads.json", "prompts.json")),
    ("heads.json", ["model_sha256"], ["x"], "other weights"),
    ("card.json", ["sha256"], OTHER, "other weights"),
    ("heads.json", ["heads"], {}, "list of 6 entries"),
    ("heads.json", ["heads"], files()["heads.json"]["heads"][:5], "list of 6 entries"),
    ("heads.json", ["heads", 3, "layer"], 0, "twice"),
    ("heads.json", ["heads", 3], 7, "head 3"),
    ("heads.json", ["heads", 0], "induction", "head 0"),
    ("heads.json", ["heads", 0], {"layer": 0, "head": 0}, "no head has a score"),
    ("heads.json", ["heads", 3, "layer"], 2, "0 to 1"),
    ("heads.json", ["heads", 3, "head"], -1, "0 to 2"),
    ("heads.json", ["heads", 3, "head"], True, "0 to 2"),
    ("heads.json", ["heads", 4, "induction"], None, "number from -1 to 1"),
    ("heads.json", ["heads", 4, "induction"], "0.5", "number from -1 to 1"),
    ("heads.json", ["heads", 4, "induction"], 1.5, "number from -1 to 1"),
    ("heads.json", ["heads", 4, "called"], "induction", "list of at most 16"),
    ("heads.json", ["heads", 4, "called"], ["a\nb"], "one line"),
    ("heads.json", ["heads", 4, "called"], ["a\u2028b"], "one line"),
    ("heads.json", ["heads", 4, "called"], ["\u202egnidnatsrednu"], "one line"),
    ("heads.json", ["measured_on"], "text", "an object"),
    ("heads.json", ["measured_on", "induction"], "x" * 81, "text of 1 to 80"),
    ("prompts.json", ["prompts"], [], "list of 1 to 24"),
    ("prompts.json", ["prompts", 0, "title"], "  ", "not blank"),
    ("prompts.json", ["prompts", 0, "text"], "", "text of 1 to 4000"),
    ("prompts.json", ["prompts", 0, "text"], "\ud800", "text of 1 to 4000"),
    ("prompts.json", ["prompts", 0, "title"], "x" * 61, "text of 1 to 60"),
    ("prompts.json", ["prompts", 0, "query"], TOKENS, "0 to 15"),
    ("prompts.json", ["prompts", 0, "keys"], [], "1 to 256"),
    ("prompts.json", ["prompts", 0, "keys"], [0.5], "whole number"),
    ("prompts.json", ["prompts", 0, "weight"], 2, "number from 0 to 1"),
    ("prompts.json", ["prompts", 0, "says"], {"a": 1}, "text of 1 to 400"),
    ("card.json", ["measured", "depth"], [], "object"),
    ("card.json", ["measured", "depth", "stories", "agreement"], [0, 1], "list of 3"),
    ("card.json", ["measured", "depth", "stories", "cross_entropy", 0], -1, "number from 0"),
    ("card.json", ["data"], 5, "text of 1 to 400"),
    ("card.json", ["lens"], "a\nb", "one line"),
    ("card.json", ["training_minutes"], 10**400, "number from 0"),
]


@pytest.mark.parametrize(("name", "path", "value", "said"), RULES)
def test_broken_rule_leaves_that_file_out_with_a_sentence(tmp_path, name, path, value, said):
    report = read(tmp_path, broken(name, path, value))
    assert len(report.problems) == 1 and report.problems[0].startswith(f"{name} is left out: ")
    assert said in report.problems[0] and "\n" not in report.problems[0]
    kept = {"heads.json": report.heads, "prompts.json": report.prompts, "card.json": report.depth}
    assert not kept.pop(name) and all(kept.values())


HOSTILE = [
    b"", b"[]", b"null", b"{", b"\xff", b'{"model_sha256": NaN', b"[" * 100_000, b'{"a":' * 50 + b"1" + b"}" * 50,
    b'{"heads": ' + b"9" * 5000 + b"}", b" " * (MAX_BYTES + 1), b'{"model_sha256": 1e999}',
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("name", ["heads.json", "prompts.json"])
def test_hostile_bytes_are_left_out_with_a_sentence(tmp_path, name, content):
    assert [problem.split(" ")[0] for problem in read(tmp_path, {name: content}).problems] == [name]


def test_file_that_is_a_folder_is_left_out(tmp_path):
    (tmp_path / "heads.json").mkdir()
    assert "no regular file" in read_report(Measured(tmp_path, MODEL, L, N, TOKENS)).problems[0]


def test_numbers_out_of_json_are_finite(tmp_path):
    content = json.dumps(files()["heads.json"]).replace("0.25", "NaN", 1).encode()
    assert "must be" in read(tmp_path, {"heads.json": content}).problems[0]


def test_card_that_cannot_be_shown_hides_no_model(tmp_path, monkeypatch):
    """A lone surrogate cannot be sent at all: one such card must not take the whole list with it."""
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    for id, words in (("lone", "\ud800"), ("blank", " "), ("fine", "Fine")):
        folder = tmp_path / "models" / id
        shutil.copytree(OWN_MODELS / "tiny", folder)
        card = json.loads((folder / "card.json").read_text("utf-8"))
        (folder / "card.json").write_text(json.dumps({**card, "name": words, "about": words}), "utf-8")
    told = {model["id"]: model for model in ModelIndex().describe_all()}
    json.dumps(list(told.values()), ensure_ascii=False).encode()
    assert [told[id]["name"] for id in ("lone", "blank", "fine")] == ["lone", "blank", "Fine"]
    assert [told[id]["about"] for id in ("lone", "blank", "fine")] == ["", "", "Fine"]


def test_page_is_told_whether_weights_are_tied(tmp_path, monkeypatch):
    """The lens says that one matrix embeds and unembeds, where it does."""
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    folder = tmp_path / "models" / "copy"
    shutil.copytree(OWN_MODELS / "tiny", folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for tied in (True, False):
        (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": tied}), "utf-8")
        assert ModelIndex().find("copy").describe()["tied"] is tied


def test_report_travels_with_the_model_and_a_stale_one_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    folder = tmp_path / "models" / "copy"
    shutil.copytree(OWN_MODELS / "tiny", folder)
    index = ModelIndex()
    told = index.find("copy").describe()["report"]
    assert len(told["heads"]) == 32 and told["problems"] == []
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.seek(-2, 2)
        weights.write(b"\x00\x3c")
    told = index.find("copy").describe()["report"]
    assert told["heads"] == told["prompts"] == [] and told["depth"] == {}
    assert [problem.split(" ")[0] for problem in told["problems"]] == ["heads.json", "prompts.json", "card.json"]
    assert all("measured on other weights" in problem for problem in told["problems"])
