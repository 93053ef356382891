"""`train-tiny` given what it should not take: refused in one sentence before it trains, and nothing is spoilt.

Plan: bad arguments and texts, an --out that cannot be written, a folder of another run, damaged checkpoints, and names
that a card could not hold, each beside the control that the right thing is taken; the smoke run goes on where it was
stopped.
"""

import json
import pickle
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from weights.training import command, rows, smoke, stages
from weights.training.mix import Mix
from weights.training.recipe import Recipe
from weights.training.repeats import Repeats
from weights.training.run_folder import RUN, claim, writable
from weights.training.shape import Shape

STORIES = "<|endoftext|>".join(f"Story {i}: the cat sat on the mat, and then it slept." for i in range(40))
SMALL = Shape(D=32, L=2, N=4, K=2, H=16, F=48, positions=64)


@pytest.fixture
def stories(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text(STORIES, "utf-8")
    return path


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Run the command line with a --work of its own: it must say one sentence, without having trained."""

    def trained(*_, **__):
        raise AssertionError("it trained")

    monkeypatch.setattr(stages, "train", trained)
    monkeypatch.setattr(smoke, "train", trained)

    def run(*arguments: str) -> str:
        work = [] if arguments[0] == "smoke" else ["--work", str(tmp_path / "work")]
        with pytest.raises(SystemExit) if "--threads" in arguments else nullcontext():
            assert command.main([*arguments, *work]) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said and ("--threads" in arguments or said.strip().endswith("."))
        return said

    return run


@pytest.mark.parametrize("threads", ["0", "-3", "1e3", "99999", "two"])
def test_threads_that_no_machine_has_are_refused(refused, threads):
    assert "number of threads from 1 to" in refused("train", "--threads", threads)


def test_out_that_cannot_be_written_is_refused_before_the_training(refused, stories, tmp_path):
    (tmp_path / "file").touch()
    assert "cannot be used" in refused("train", "--text", str(stories), "--out", str(tmp_path / "file"))
    assert "cannot be used" in refused("train", "--text", str(stories), "--out", str(tmp_path / "file" / "below"))
    writable(tmp_path / "new" / "below")  # control
    assert list((tmp_path / "new" / "below").iterdir()) == []


SHORT = [("", "too few"), ("one story", "too few"), ("a<|endoftext|>b", "tokens")]


@pytest.mark.parametrize(("content", "said"), SHORT)
def test_short_text_is_refused_before_the_training(refused, tmp_path, monkeypatch, content, said):
    monkeypatch.setattr(stages, "saved_tokenizer", lambda *_: BYTES)
    path = tmp_path / "short.txt"
    path.write_text(content, "utf-8")
    assert said in refused("train", "--text", str(path), "--out", str(tmp_path / "out"))


class Letters:
    """A tokenizer of one id a letter, as far as NaturalRows needs one."""

    def encode_batch(self, texts):
        return [type("Ids", (), {"ids": list(text.encode())})() for text in texts]


BYTES = Letters()


def test_text_that_is_long_enough_is_taken(stories):
    """Control: the same texts, at rows that they can fill."""
    assert stages.natural_rows(rows.read_texts([stories]), BYTES, 512) is not None
    with pytest.raises(ValueError, match="give a longer text"):
        stages.natural_rows(rows.read_texts([stories]), BYTES, 1_000_000)


def test_two_texts_of_one_name_are_refused(refused, stories, tmp_path):
    (tmp_path / "other").mkdir()
    second = tmp_path / "other" / "stories.txt"
    second.write_text(STORIES, "utf-8")
    assert "another text named 'stories.txt'" in refused("train", "--text", str(stories), "--text", str(second))
    long = tmp_path / f"{'x' * 61}.txt"
    long.write_text(STORIES, "utf-8")
    assert "at most 7 texts" in refused("train", "--text", str(long))


def test_folder_of_another_run_is_refused(refused, stories, tmp_path):
    """The tokenizer and the checkpoints of other texts would be taken up, and the card would not say so."""
    claim(tmp_path / "work", {"recipe": {}, "texts": {}})
    said = refused("train", "--text", str(stories), "--out", str(tmp_path / "out"))
    assert "a run with another recipe and other texts" in said
    (tmp_path / "work" / RUN).write_bytes(b"\xff")
    assert "cannot be read" in refused("train", "--out", str(tmp_path / "out"))
    (tmp_path / "work" / RUN).unlink()
    (tmp_path / "work" / "repeats.pt").touch()
    assert f"without {RUN}" in refused("train", "--out", str(tmp_path / "out"))
    assert f"without {RUN}" in refused("smoke", "--out", str(tmp_path / "work"))


def test_own_folder_is_taken_up_again(tmp_path):
    """Control: the same recipe and texts, given as objects and read back from the file."""
    for _ in range(2):
        claim(tmp_path, {"recipe": {"betas": (1, 2)}, "texts": {"a": "b"}})
    with pytest.raises(ValueError, match="another recipe"):
        claim(tmp_path, {"recipe": {"betas": (1, 3)}, "texts": {"a": "b"}})


@pytest.mark.parametrize("damage", ["cut", "emptied", "text", "code", "other"])
def test_damaged_checkpoint_is_named(tmp_path, damage):
    _brief(tmp_path)
    path = tmp_path / "repeats.pt"
    if damage == "other":
        torch.save({"network": {}}, path)
    else:
        data = path.read_bytes()
        content = {"cut": data[: len(data) // 2], "emptied": b"", "text": b"hello", "code": pickle.dumps(print, 2)}
        path.write_bytes(content[damage])
    with pytest.raises(ValueError, match=r"repeats\.pt is damaged \(.+\); remove it") as said:
        _brief(tmp_path)
    assert "\n" not in str(said.value)


def _brief(folder) -> None:
    network = stages.Network(SMALL)
    stages.train(network, stages.repeats_stage(network, Repeats(steps=1, rows=2, T=32, longest=12)), folder, 0, str)


def test_smoke_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    """Stopped by Ctrl-C after its 40th batch, the command says how to go on; a second call only does what is left."""
    monkeypatch.setattr("weights.training.trainer.CHECKPOINT_EVERY_S", -1.0)
    monkeypatch.setattr(smoke, "RECIPE", replace(smoke.RECIPE, steps=42, rows=2))
    batch, drawn = Repeats.batch, []

    def counting(recipe, r, V):
        if len(drawn) == 40:
            drawn.append("stopped")
            raise KeyboardInterrupt
        drawn.append(V)
        return batch(recipe, r, V)

    monkeypatch.setattr(Repeats, "batch", counting)
    assert command.main(["smoke", "--out", str(tmp_path / "smoke")]) == 130
    assert "goes on from its last checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "smoke" / "model.safetensors").exists()
    assert command.main(["smoke", "--out", str(tmp_path / "smoke")]) == 0
    assert len(drawn) == 43 and "best induction head" in capsys.readouterr().err
    assert (tmp_path / "smoke" / "model.safetensors").stat().st_size > 0
    assert set(json.loads((tmp_path / "smoke" / RUN).read_text("utf-8"))) == {"recipe", "texts"}


def test_longest_row_of_the_recipe_is_what_texts_are_held_to():
    assert max(mix.long_T for mix in Recipe().mixes) == Mix().long_T == Shape().positions
