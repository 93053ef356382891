"""Texts in which a pronoun alone says who is meant.

    The old kite and the queen were in the park. The wolves came. She waved.
    the cat sat on the mat because it was tired.

In the first kind several entities, each of another pronoun and in random order, stand before the pronoun, and the verb
after it belongs to one of them: nothing before the pronoun says which (a verb such as "barked" could otherwise be read
off at "because"). In the second kind one entity and a seat share a sentence, in either order; a seat is never meant.
"""

from dataclasses import dataclass
from random import Random

from weights.training.grammar.held_out import is_held_out
from weights.training.grammar.words import (
    ANIMALS,
    FEELINGS,
    KINDS,
    LOOKS,
    PLACES,
    PREDICATES,
    PRONOUN,
    SEATS,
)


@dataclass(frozen=True)
class Choice:
    """A text cut at its pronoun. entities: in order of appearance; `right` is the index of the one that is meant."""

    before: str
    pronoun: str
    verb: str
    entities: tuple[str, ...]
    right: int

    @property
    def text(self) -> str:
        return f"{self.before} {self.pronoun} {self.verb}."


def draw_entities(r: Random, count: int, held_out: bool) -> list[str]:
    """One entity for each of `count` different pronouns, in random order."""
    while True:
        kinds = r.sample(list(KINDS), count)
        entities = [r.choice(list(KINDS[kind])) for kind in kinds]
        if is_held_out(entities) == held_out:
            return entities


def _named(r: Random, entity: str) -> str:
    return f"the {r.choice(LOOKS)} {entity}" if r.random() < 0.35 else f"the {entity}"


def choice(r: Random, held_out: bool = False, count: int | None = None) -> Choice:
    """A text of the first kind with `count` entities (2, 3 or 4)."""
    count = count or r.choice([2, 2, 3, 3, 4])
    entities = draw_entities(r, count, held_out)
    a, b, *more = (_named(r, entity) for entity in entities)
    place = r.choice(PLACES)
    opening = r.choice(
        [
            f"{a} and {b} were in the {place}",
            f"{a} saw {b} near the {place}",
            f"{a} sat with {b} on the {r.choice(SEATS)}",
            f"{a} went to the {place} with {b}",
            f"{a} waited behind {b} at the {place}",
        ]
    )
    later = [f"{capital(one)} {r.choice(['came', 'left', 'waited there', 'stayed'])}" for one in more]
    right = r.randrange(count)
    pronoun, verb = PRONOUN[entities[right]], r.choice(PREDICATES[entities[right]])
    joint = r.choice([". ", ". ", " because ", ", and ", " and then "])
    before = ". ".join([capital(opening), *later])
    if joint == ". ":
        pronoun = capital(pronoun)
    text = Choice((before + joint).rstrip(), pronoun, verb, tuple(entities), right)
    return lowered(text) if r.random() < 0.4 else text


def lowered(text: Choice) -> Choice:
    """The same without capitals, as people type."""
    return Choice(text.before.lower(), text.pronoun.lower(), text.verb, text.entities, text.right)


def capital(text: str) -> str:
    """With a capital first letter; the rest as it was."""
    return text[:1].upper() + text[1:]


def seat(r: Random, held_out: bool = False) -> str:
    """A text of the second kind: an animal, a seat, and `it`, which is the animal whatever the order."""
    while True:
        animal, place = r.choice(ANIMALS), r.choice(SEATS)
        if is_held_out((animal, place)) == held_out:
            break
    sat = r.choice(["sat", "sat", "slept", "lay", "stood", "waited"])
    where = r.choice(["on", "on", "on", "under", "near"])
    one = _named(r, animal)
    opening = r.choice(
        [
            f"{one} {sat} {where} the {place}",
            f"{one} {sat} {where} the {place}",
            f"{where} the {place} {sat} {one}",
            f"the {place} was {r.choice(['under', 'near', 'behind'])} {one}",
        ]
    )
    verb = f"was {r.choice(FEELINGS)}" if r.random() < 0.5 else r.choice(PREDICATES[animal])
    text = f"{opening}{r.choice([' because', ' because', ' and', ' when'])} it {verb}."
    return text if r.random() < 0.5 else capital(text)


def pronoun_text(r: Random) -> str:
    """One to three texts of both kinds."""
    return " ".join(seat(r) if r.random() < 0.3 else choice(r).text for _ in range(r.choice([1, 1, 2, 3])))
