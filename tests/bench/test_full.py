"""Which variants the table measures: those that the product chooses among on the device, at every length, by turns.

Plan: a place of our own that tries a and b, begins with b, and also has c, which it would not try; two of ours that are
compared; what the table asks of each place.
"""

import pytest

from bench import full
from bench.errors import WrongResult
from bench.full import against, fastest, measured
from bench.turns import Spare


class Begun:
    """One that takes turns at a Place."""

    def __init__(self, place: "Place", op: str, name: str) -> None:
        self.place, self.op, self.variant, self.tried = place, op, name, ["a", "b"]

    def turn(self) -> dict:
        self.place.turns.append(self.variant if self.op == "attention" else self.op)
        if self.variant == self.place.fails:
            raise WrongResult("it fails later.")
        return {"ms": self.place.ms[self.variant], "wait_ms": 1.0}

    def end(self) -> dict:
        self.place.ended.append(self.variant)
        return {"op": self.op, "variant": self.variant, "ms": self.place.ms[self.variant]}


class Place:
    """Times by variant; wrong: the one whose result is not right, fails: the one that fails at its turn."""

    place = "here"

    def __init__(self, ms: dict[str, float], wrong: str = "", fails: str = "") -> None:
        self.ms, self.wrong, self.fails, self.asked, self.turns, self.ended = ms, wrong, fails, [], [], []

    def begin(self, given: dict) -> Begun:
        name = given.get("variant", "b")
        self.asked.append((given["T"], given.get("variant")))
        if name == self.wrong:
            raise WrongResult("a wrong kernel has no speed.")
        return Begun(self, given["op"], name)


def asked(T: int, op: str = "attention") -> dict:
    return {"op": op, "T": T}


def line(place: Place, given: dict) -> dict:
    return measured(place, given, {}, Spare(0))[0]


def test_table_measures_what_the_product_tries_at_every_length():
    place = Place({"a": 5.0, "b": 7.0, "c": 1.0})
    for T in (64, 2048):
        found = line(place, asked(T))
        assert (found["variant"], found["chosen"], found["refused"]) == ("a", "b", []) and found["given"] == asked(T)
    assert place.asked == [(64, None), (64, "a"), (2048, None), (2048, "a")]
    assert place.turns[:11] == ["b"] + ["a", "b"] * 5, "variants that are compared take turns"
    assert place.ended == ["b", "a"] * 2, "the slower one gives its buffers back"


def test_table_names_a_variant_that_gave_no_figure():
    found = line(Place({"b": 7.0}, wrong="a"), asked(64))
    assert found["variant"] == "b" and found["refused"] == ["a: a wrong kernel has no speed."]
    found = line(Place({"b": 7.0, "a": 5.0}, fails="a"), asked(64))
    assert found["variant"] == "b" and found["refused"] == ["a: it fails later."]


def test_table_has_no_figure_where_the_products_choice_is_wrong():
    found = line(Place({"a": 5.0}, wrong="b"), asked(64))
    assert found == {"op": "attention", "given": asked(64), "error": "a wrong kernel has no speed."}


def test_table_measures_a_named_variant_alone():
    place = Place({"c": 1.0})
    found = line(place, {**asked(64), "variant": "c"})
    assert found["variant"] == "c" and place.asked == [(64, "c")] and set(place.turns) == {"c"}
    assert fastest(place, {**asked(64), "variant": "c"})[1] == {"chosen": "c", "refused": []}


def test_heatmap_takes_turns_with_prefill():
    place = Place({"b": 7.0}, wrong="a")
    found = against(place, asked(2048, "heatmap"), asked(2048), Spare(0))
    assert place.turns == ["b"] + ["heatmap", "b"] * 5
    beside = {"given": asked(2048), "ms": 7.0, "ratios": {"ms": [1.0] * 5, "wait_ms": [1.0] * 5}}
    assert found["op"] == "heatmap" and found["against"] == beside


def test_heatmap_beside_a_wrong_prefill_has_no_share():
    place = Place({"b": 7.0}, wrong="a")
    found = against(place, asked(64, "heatmap"), {**asked(64), "variant": "a"}, Spare(0))
    assert found["error"].startswith("a wrong kernel")


@pytest.mark.parametrize("given", full.ALONE, ids=str)
def test_compared_lines_of_ours_are_asked_together(given, monkeypatch):
    """Heatmaps with prefill, and the window of a long text with that of a short one; the rest alone."""
    calls = []
    monkeypatch.setattr(full, "against", lambda place, given, base, spare: calls.append(base))
    monkeypatch.setattr(full, "measured", lambda *asked: (calls.append(None), None))
    run = object.__new__(full.Run)
    run.log, run.spare = lambda words: None, Spare(0)
    run.alone(Place({}), given)
    bases = {
        ("heatmap", 2048): {"op": "attention", "T": 2048}, ("heatmap", 8192): {"op": "heatmap", "T": 512},
    }  # fmt: skip
    assert calls == [bases.get((given["op"], given["T"]))]
