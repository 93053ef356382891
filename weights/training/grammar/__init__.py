"""Texts written by rules, so that heads are needed whose work can be checked.

`document(r)` draws one text for training; every module keeps some pairs of words for the evaluation (held_out.py).
"""

from random import Random

from weights.training.grammar.pronouns import pronoun_text
from weights.training.grammar.recall import gift_text, recall_text
from weights.training.grammar.stories import story_text
from weights.training.grammar.tables import every_table_text, loose_table_text, table_text

KINDS = {
    "pronouns": pronoun_text,
    "gifts": gift_text,
    "loose_tables": loose_table_text,
    "tables": table_text,
    "every_table": every_table_text,
    "recall": recall_text,
    "story": story_text,
}
SHARES = {"pronouns": 0.45, "gifts": 0.20, "loose_tables": 0.16, "recall": 0.10, "story": 0.09}


def document(r: Random, shares: dict[str, float] = SHARES) -> str:
    """One text of a kind drawn by its share."""
    return KINDS[r.choices(list(shares), list(shares.values()))[0]](r)
