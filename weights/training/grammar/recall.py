"""Texts that are completed by finding something said before: a name, a value, the next word of a list.

    When Mary and John went to the store, John gave a drink to Mary.
    apple: red, key: blue. key: blue, apple: red.
    bread shell map cat. bread shell map cat.
"""

from random import Random

from weights.training.grammar.held_out import is_held_out
from weights.training.grammar.words import ANIMALS, COLOURS, GIFTS, ITEMS, NAMES, PLACES


def draw_names(r: Random, held_out: bool = False) -> tuple[str, str]:
    """Two different names in random order."""
    while True:
        names = r.sample(NAMES, 2)
        if is_held_out(names) == held_out:
            return names[0], names[1]


def gift(r: Random, held_out: bool = False) -> tuple[str, str]:
    """A text up to the name that ends it, and that name: the one of two that did not give. Wang et al. 2022 (IOI)."""
    first, second = draw_names(r, held_out)
    giver, receiver = r.choice([(first, second), (second, first)])
    place, thing = r.choice(PLACES), r.choice(GIFTS)
    gave = r.choice(["gave", "gave", "handed", "showed"])
    text = r.choice(
        [
            f"When {first} and {second} went to the {place}, {giver} {gave} a {thing} to",
            f"{first} and {second} were at the {place}. {giver} {gave} a {thing} to",
            f"After {first} met {second} in the {place}, {giver} {gave} the {thing} to",
            f"{first} and {second} played in the {place}. Then {giver} {gave} a {thing} to",
        ]
    )
    return text, receiver


def gift_text(r: Random) -> str:
    """One or two gifts, sometimes with the receiver's joy."""
    parts = []
    for _ in range(r.choice([1, 1, 2])):
        text, receiver = gift(r)
        parts.append(f"{text} {receiver}.")
        if r.random() < 0.3:
            parts.append(f"{receiver} was {r.choice(['happy', 'glad'])}.")
    return " ".join(parts)


def pairs(r: Random) -> str:
    """Keys with values, then the same in another order."""
    count = r.randint(2, 5)
    keys = r.sample(NAMES + ANIMALS + ITEMS, count)
    values = r.sample(COLOURS + PLACES, count)
    told = [f"{key}: {value}" for key, value in zip(keys, values, strict=True)]
    again = r.sample(told, count)
    return ", ".join(told) + ". " + ", ".join(again) + "."


def words_again(r: Random) -> str:
    """A list of words two to four times over."""
    count = r.randint(3, 9)
    words = r.sample(ITEMS + ANIMALS + COLOURS + NAMES + PLACES, count)
    joint = r.choice([" ", " ", ", "])
    end = r.choice([". ", " ", ", "])
    return end.join([joint.join(words)] * r.randint(2, 4)) + "."


def recall_text(r: Random) -> str:
    """A text of one of the two list-like kinds."""
    return r.choice([pairs, words_again, words_again])(r)
