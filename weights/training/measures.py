"""What the heads of a trained model do, on texts and pairs of words that training never saw.

Every measure draws its own held-out texts from a fixed seed and gives shares, nats, or one score per head [L, N].
Scores are those of `python_ref/heads.py`.
"""

from random import Random

import torch
from torch import Tensor

from python_ref import heads
from python_ref.model import Model
from weights.training.grammar import pronouns, recall, tables
from weights.training.grammar.words import NAMES, PREDICATES
from weights.training.probe import Probe, last, look

PERIOD = 48
REPEAT_ROWS, PRONOUN_TEXTS, TABLE_TEXTS, NAME_TEXTS = 16, 400, 200, 300
DEFAULT_PROMPT = "the cat sat on the mat because it was tired."
GAP_WORDS = (" AND", " BY")
_RANDOM = f"{REPEAT_ROWS} rows of {PERIOD} random tokens said twice"
MEASURED_ON = {  # score -> the texts that it is measured on, in words for people
    "previous_token": _RANDOM,
    "induction": _RANDOM,
    "duplicate_token": _RANDOM,
    "first_token": _RANDOM,
    "selectivity": f"{PRONOUN_TEXTS} held-out texts that name three in random order",
    "receiver_first": f"those of {NAME_TEXTS} held-out texts that name the receiver first",
    "receiver_second": f"those of {NAME_TEXTS} held-out texts that name the receiver second",
    "look_up": f"{TABLE_TEXTS} held-out SQL texts with three tables, at AND and at BY",
}


def random_repeats(model: Model, rows: int = REPEAT_ROWS, seed: int = 11) -> tuple[float, dict[str, Tensor]]:
    """Random ids over the whole vocabulary, said twice: share predicted right in the second half, and scores.

    The first id of the second half is not counted: nothing says that the repeat begins.
    """
    r, right, scores = Random(seed), [], []
    V = model.config.V
    for _ in range(rows):
        ids = [r.randrange(1, V) for _ in range(PERIOD)] * 2
        pattern, logits = look(model, ids)
        right.append((logits[PERIOD:-1].argmax(-1) == torch.tensor(ids[PERIOD + 1 :])).float().mean().item())
        scores.append(
            {
                "previous_token": heads.previous_token(pattern),
                "induction": heads.induction(pattern, PERIOD),
                "duplicate_token": heads.duplicate_token(pattern, PERIOD),
                "first_token": heads.first_token(pattern),
            }
        )
    return sum(right) / rows, {name: torch.stack([score[name] for score in scores]).mean(0) for name in scores[0]}


def pronoun_choice(probe: Probe, texts: int = PRONOUN_TEXTS, seed: int = 12) -> tuple[float, Tensor]:
    """Three entities in random order, one pronoun: share of right next words; selectivity [L, N]."""
    r, right, patterns, references = Random(seed), 0, [], []
    for _ in range(texts):
        choice = pronouns.choice(r, held_out=True, count=3)
        ids = probe.tokens.encode(f"{choice.before} {choice.pronoun}")
        pattern, logits = probe.look(ids)
        verbs = {probe.one(f" {verb}") for verb in PREDICATES[choice.entities[choice.right]]}
        right += int(logits[-1].argmax()) in verbs
        spots = [last(ids, probe.one(f" {entity}")) for entity in choice.entities]
        wrong = tuple(spot for i, spot in enumerate(spots) if i != choice.right)
        patterns.append(pattern)
        references.append(heads.Reference(len(ids) - 1, spots[choice.right], wrong, choice.right))
    return right / texts, heads.selectivity(patterns, references)


def default_prompt(probe: Probe) -> dict[str, Tensor]:
    """Weights [L, N] of the default prompt's "it" on "cat" and on "mat"."""
    ids = probe.tokens.encode(DEFAULT_PROMPT)
    pattern, _ = probe.look(ids)
    row = pattern[..., last(ids, probe.one(" it")), :]
    return {noun: row[..., last(ids, probe.one(f" {noun}"))] for noun in ("cat", "mat")}


def table_columns(probe: Probe, texts: int = TABLE_TEXTS, seed: int = 13) -> tuple[dict[str, float], Tensor]:
    """Three tables, one query: share of texts in which a column of the right table follows AND, ORDER BY; look-up."""
    r, right, patterns, cases = Random(seed), dict.fromkeys(GAP_WORDS, 0), [], []
    for _ in range(texts):
        schema = tables.schema(r, held_out=True)
        table = r.choice(list(schema.tables))
        own = {probe.one(f" {column}") for column in schema.tables[table]}
        a, b, c = r.sample(schema.tables[table], 3)
        query = f"SELECT {a} FROM {table} WHERE {b} = {r.randrange(10)} AND {c} = {r.randrange(10)} ORDER BY"
        ids = probe.tokens.encode(f"{schema.text}\n{query}")
        pattern, logits = probe.look(ids)
        spans = _spans(probe, ids, schema)
        for word in GAP_WORDS:
            position = last(ids, probe.one(word))
            right[word] += int(logits[position].argmax()) in own
            patterns.append(pattern)
            wrong = tuple(span for name, span in spans.items() if name != table)
            cases.append(heads.LookUp(position, spans[table], wrong))
    return {word: count / texts for word, count in right.items()}, heads.look_up(patterns, cases)


def _spans(probe: Probe, ids: list[int], schema: tables.Schema) -> dict[str, range]:
    """Where each table's columns stand in the schema, names left out."""
    opening, closing = probe.one(" ("), probe.one(" );")
    begins = [i + 1 for i, id in enumerate(ids) if id == opening]
    ends = [i for i, id in enumerate(ids) if id == closing]
    return {name: range(*span) for name, *span in zip(schema.tables, begins, ends, strict=False)}


def name_recall(probe: Probe, texts: int = NAME_TEXTS, seed: int = 14) -> tuple[float, list[Tensor]]:
    """Share of texts in which the receiver's name is the likeliest next token; selectivity for it, twice [L, N].

    The first is over texts in which the receiver was named first, the second over the others: different heads may do
    the two. The giver's two mentions are the wrong candidates.
    """
    r, right, seen = Random(seed), 0, {0: ([], []), 1: ([], [])}
    for _ in range(texts):
        text, receiver = recall.gift(r, held_out=True)
        ids = probe.tokens.encode(text)
        pattern, logits = probe.look(ids)
        right += int(logits[-1].argmax()) == probe.one(f" {receiver}")
        forms = {probe.one(form) for name in NAMES for form in (name, f" {name}")}
        named = [position for position, id in enumerate(ids) if id in forms]
        mine = [position for position in named if ids[position] in (probe.one(receiver), probe.one(f" {receiver}"))]
        wrong = tuple(position for position in named if position not in mine)
        place = named.index(mine[0])
        patterns, references = seen[place]
        patterns.append(pattern)
        references.append(heads.Reference(len(ids) - 1, mine[0], wrong, place))
    return right / texts, [heads.selectivity(*seen[place]) for place in (0, 1)]
