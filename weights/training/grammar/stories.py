"""Short stories in simple English, so that names, pronouns and things also meet outside the bare tests."""

from random import Random

from weights.training.grammar.recall import draw_names
from weights.training.grammar.words import ANIMALS, COLOURS, FEELINGS, GIFTS, PLACES, PREDICATES

GIRL_NAMES = {"Mary", "Lily", "Anna", "Mia", "Sara", "Lucy", "Kate", "Emma", "Nora"}


def pronoun_of(name: str) -> tuple[str, str]:
    """Subject and possessive pronoun of a name."""
    return ("she", "her") if name in GIRL_NAMES else ("he", "his")


def story_text(r: Random) -> str:
    """Six to eight sentences about one person, a friend and an animal."""
    name, friend = draw_names(r)
    she, her = pronoun_of(name)
    they, _ = pronoun_of(friend)
    animal, place, thing = r.choice(ANIMALS), r.choice(PLACES), r.choice(GIFTS)
    feeling, colour = r.choice(FEELINGS), r.choice(COLOURS)
    child = "girl" if she == "she" else "boy"
    lines = [
        r.choice(["Once upon a time, there", "One day, there", "Once there"]) + f" was a little {child} named {name}.",
        r.choice([f"{name} had a {colour} {thing}.", f"{she.capitalize()} loved {her} {colour} {thing}."]),
        r.choice([f"One day, {name} went to the {place}.", f"{name} was {feeling}, so {she} went to the {place}."]),
        r.choice(
            [
                f"There {she} saw {r.choice(['a', 'a big', 'a little'])} {animal}. It {r.choice(PREDICATES[animal])}.",
                f"At the {place} {she} met {friend}. {they.capitalize()} had a {animal}.",
                f"The {animal} was {feeling} because it could not find the {thing}.",
            ]
        ),
        r.choice(
            [
                f"{friend} asked, \"Can I see your {thing}?\" {name} said, \"Yes, you can see my {thing}.\"",
                f"{name} gave the {thing} to {friend}. {friend} said, \"Thank you, {name}.\"",
                f"\"Look at my {thing},\" said {name}. \"I like your {thing},\" said {friend}.",
            ]
        ),
        r.choice([f"{name} and {friend} played together.", f"{name} and {friend} were very happy."]),
        r.choice(["They became good friends.", f"Then {name} went home.", "The end."]),
    ]
    return " ".join(lines)
