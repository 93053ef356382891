"""The recipe of the committed model: sizes, seed, and the stages in order."""

from dataclasses import dataclass, field

from weights.training.mix import Mix
from weights.training.repeats import Repeats
from weights.training.shape import Shape

MIXES = (
    # Level rates, all kinds of text: tables and names.
    Mix(name="mix", steps=411, cool_down=0.001),
    # More pronouns, and the verb after them counts more.
    Mix(
        name="settle",
        steps=246,
        grammar_rows=9,
        repeat_rows=2,
        shares={"pronouns": 0.62, "gifts": 0.16, "loose_tables": 0.10, "recall": 0.05, "story": 0.07},
        verb_weight=4.0,
        cool_down=0.001,
    ),
    # Tables in which copying from the query does not help; rates fall over the last 60 steps.
    Mix(
        name="tables",
        steps=353,
        grammar_rows=9,
        repeat_rows=2,
        shares={"pronouns": 0.33, "gifts": 0.19, "tables": 0.36, "recall": 0.05, "story": 0.07},
        verb_weight=3.0,
        answer_weight=4.0,
        cool_down=60 / 353,
    ),
    # The same with three statements to a schema: the head that reads the schema needs many of them.
    Mix(
        name="look-up",
        steps=218,
        grammar_rows=9,
        repeat_rows=2,
        natural_rows=1,
        shares={"pronouns": 0.20, "gifts": 0.15, "every_table": 0.55, "recall": 0.04, "story": 0.06},
        verb_weight=3.0,
        answer_weight=4.0,
        cool_down=0.001,
    ),
    # More natural text; rates fall almost all the way.
    Mix(
        name="last",
        steps=220,
        grammar_rows=8,
        repeat_rows=2,
        natural_rows=3,
        shares={"pronouns": 0.30, "gifts": 0.20, "every_table": 0.40, "recall": 0.04, "story": 0.06},
        verb_weight=3.0,
        answer_weight=4.0,
        cool_down=0.75,
    ),
)


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, with the texts."""

    shape: Shape = field(default_factory=Shape)
    repeats: Repeats = field(default_factory=Repeats)
    mixes: tuple[Mix, ...] = MIXES
    seed: int = 0
