"""`playground train-tiny`: the command line reaches weights.training, and a mistake is one line and status 2."""

import json

import pytest

from server import cli
from tests.conftest import ROOT
from weights.training import command
from weights.training.evaluate import Report


def test_help_names_the_three_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train-tiny", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("train", "evaluate", "smoke"))


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_text_that_cannot_be_read_is_one_sentence(tmp_path, capsys, content):
    path = tmp_path / "stories.txt"
    if content is not None:
        path.write_bytes(content)
    arguments = ["train", "--text", str(path), "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    assert command.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("train-tiny: ") and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_evaluate_without_a_tokenizer_says_what_it_needs(tmp_path, capsys):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(ROOT / "weights" / "tiny" / name)
    assert command.main(["evaluate", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("train-tiny: ") and said.count("\n") == 1
    assert "no tokenizer.json, and the evaluation reads texts; put" in said and "ids" not in said


def test_evaluate_prints_the_figures(monkeypatch, capsys, tmp_path):
    import torch

    heads = dict.fromkeys(
        ("previous_token", "induction", "duplicate_token", "first_token", "selectivity", "look_up"),
        torch.zeros(2, 4),
    )
    heads |= {"receiver_first": torch.zeros(2, 4), "receiver_second": torch.zeros(2, 4)}
    heads |= {"it_to_cat": torch.eye(2, 4), "it_to_mat": torch.zeros(2, 4)}
    monkeypatch.setattr("weights.training.evaluate.evaluate", lambda folder, texts: Report({"x": 0.5}, heads, {}))
    assert command.main(["evaluate", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == {"x": 0.5}
