"""Which variants the table measures: those that the product chooses among on the device, at every length.

Plan: a place of our own that tries a and b, begins with b, and also has c, which it would not try.
"""

from bench.errors import WrongResult
from bench.full import fastest


class Place:
    """Times by variant; wrong: the one whose result is not right."""

    def __init__(self, ms: dict[str, float], wrong: str = "") -> None:
        self.ms, self.wrong, self.asked = ms, wrong, []

    def measure(self, given: dict) -> dict:
        name = given.get("variant", "b")
        self.asked.append((given["T"], given.get("variant")))
        if name == self.wrong:
            raise WrongResult("a wrong kernel has no speed.")
        return {"op": given["op"], "variant": name, "tried": ["a", "b"], "ms": self.ms[name]}


def asked(T: int) -> dict:
    return {"op": "attention", "T": T}


def test_table_measures_what_the_product_tries_at_every_length():
    place = Place({"a": 5.0, "b": 7.0, "c": 1.0})
    for T in (64, 2048):
        found = fastest(place, asked(T))
        assert (found["variant"], found["chosen"], found["refused"]) == ("a", "b", []) and found["given"] == asked(T)
    assert place.asked == [(64, None), (64, "a"), (2048, None), (2048, "a")]


def test_table_names_a_variant_that_gave_no_figure():
    found = fastest(Place({"b": 7.0}, wrong="a"), asked(64))
    assert found["variant"] == "b" and found["refused"] == ["a: a wrong kernel has no speed."]


def test_table_has_no_figure_where_the_products_choice_is_wrong():
    found = fastest(Place({"a": 5.0}, wrong="b"), asked(64))
    assert found == {"op": "attention", "given": asked(64), "error": "a wrong kernel has no speed."}


def test_table_measures_a_named_variant_alone():
    place = Place({"c": 1.0})
    found = fastest(place, {**asked(64), "variant": "c"})
    assert found["variant"] == "c" and place.asked == [(64, "c")]
