"""Texts written by rules, so that heads are needed whose work can be checked.

`document(r)` draws one text for training; every module keeps some pairs of words for the evaluation (held_out.py).
"""

from random import Random

from weights.training.grammar.pronouns import pronoun_text
from weights.training.grammar.recall import gift_text, recall_text
from weights.training.grammar.stories import story_text
from weights.training.grammar.tables import table_text

SHARES = {pronoun_text: 0.45, gift_text: 0.20, table_text: 0.16, recall_text: 0.10, story_text: 0.09}


def document(r: Random) -> str:
    """One text of a kind drawn by SHARES."""
    return r.choices(list(SHARES), list(SHARES.values()))[0](r)
