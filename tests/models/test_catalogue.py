"""The list of models.

Plan: the project's own come first, broken folders stay in the list with their sentence, ids never act as paths, the
default is tiny where it is there.
"""

import json
import os

import pytest

from tests.models.small import make_small_model
from weights import catalogue


@pytest.fixture(autouse=True)
def homes(tmp_path, monkeypatch):
    """An empty cache and an empty folder of own models."""
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(catalogue, "OWN_MODELS", tmp_path / "own")
    return tmp_path / "own", tmp_path / "cache/models"


def test_empty_catalogue_has_a_default_and_no_entries():
    assert catalogue.entries() == []
    assert catalogue.default_model() == "smollm2-135m"
    with pytest.raises(catalogue.UnknownModel, match="playground pull smollm2-135m"):
        catalogue.resolve("smollm2-135m")


def test_own_models_come_first_and_hide_the_same_id(homes):
    own, cached = homes
    make_small_model(cached / "alpha")
    make_small_model(cached / "tiny")
    make_small_model(own / "tiny")
    assert [entry.id for entry in catalogue.entries()] == ["tiny", "alpha"]
    assert catalogue.resolve("tiny") == own / "tiny"
    assert catalogue.default_model() == "tiny"
    make_small_model(cached / "smollm2-135m")
    assert catalogue.default_model() == "tiny"
    entry = catalogue.find("alpha")
    assert (entry.family, entry.licence, entry.problem) == ("llama", "CC0-1.0", None)
    assert entry.bytes == sum(file.bytes for file in entry.open().files) and entry.tokens().encode("the")


def test_broken_folder_stays_in_the_list_with_its_sentence(homes):
    own, cached = homes
    make_small_model(own / "good")
    os.truncate(make_small_model(cached / "short") / "model.safetensors", 9000)
    (make_small_model(cached / "nocard") / "card.json").write_text("[" * 100_000)
    (cached / "astray").mkdir()
    (cached / "astray/pointer.json").write_text(json.dumps({"folder": "a\0b"}))
    (cached / "notes").mkdir()
    problems = {entry.id: entry.problem for entry in catalogue.entries()}
    assert problems["good"] is None and problems["nocard"] is None
    assert "Fetch it again" in problems["short"] and "pull the folder again" in problems["astray"]
    assert "notes" not in problems


@pytest.mark.parametrize("model", ["../own/good", "a/../b", "", "\0", "x" * 9000, ".", "..", "nope", "~nobody/x"])
def test_id_is_never_a_path(homes, model):
    own, _ = homes
    make_small_model(own / "good")
    assert catalogue.find(model) is None


def test_folder_is_resolved_and_unknown_name_lists_what_is_here(homes, tmp_path):
    own, _ = homes
    make_small_model(own / "good")
    assert catalogue.resolve(str(tmp_path)) == tmp_path
    for model in ("nope", "\0", "x" * 9000, ""):
        with pytest.raises(catalogue.UnknownModel, match="models here: good"):
            catalogue.resolve(model)
