"""Stage two: natural text, the grammar, and repeats, which keep the induction heads at strength.

    loss = next token after the last layer + LENS_SHARE * next token read off an earlier layer through the same norm and
           unembedding (one layer a step, by LENS_ODDS)

The second term makes the logit lens legible: layers speak the language of the unembedding before the end.
It is deep supervision (Lee et al. 2015) with no parameters of its own; the model card says that it was used.
"""

from dataclasses import dataclass, field
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from weights.training import rows
from weights.training.grammar import SHARES, document
from weights.training.grammar.words import PREDICATES
from weights.training.network import Network
from weights.training.optimise import next_token_loss

LENS_SHARE = 0.3
ANSWER_AFTER = [" WHERE", " AND", " BY", " to"]
LENS_EVERY = 4  # positions: a quarter of them teaches the lens as well, for a quarter of the cost


@dataclass(frozen=True)
class Batch:
    """Short rows (grammar, repeats) with the targets that count, and long rows of natural text; both (rows, T + 1)."""

    short: Tensor
    counted: Tensor
    long: Tensor | None
    lens_layer: int
    lens_first: int


@dataclass(frozen=True)
class Mix:
    """The recipe. Tokens of one step: (grammar_rows + repeat_rows) * short_T + natural_rows * long_T.

    shares: of the kinds of grammar texts. verb_weight, answer_weight: how much those targets count that only a head
    which finds something can predict: the verb after a pronoun, the word after one of ANSWER_AFTER.
    """

    name: str = "mix"
    steps: int = 1_500
    shares: dict[str, float] = field(default_factory=lambda: dict(SHARES))
    verb_weight: float = 1.0
    answer_weight: float = 1.0
    grammar_rows: int = 8
    repeat_rows: int = 3
    short_T: int = 128
    natural_rows: int = 2
    long_T: int = 512
    shortest: int = 8
    longest: int = 60
    muon: float = 0.015
    adam: float = 2e-3
    decay: float = 0.05
    cool_down: float = 0.4


class MixSource:
    """Draws batches. natural: None trains on the grammar alone."""

    def __init__(self, recipe: Mix, tokenizer: Tokenizer, V: int, L: int, natural: rows.NaturalRows | None):
        self.recipe, self.tokenizer, self.V, self.L, self.natural = recipe, tokenizer, V, L, natural
        self.weight = torch.ones(V)
        verbs = [f" {verb}" for own in PREDICATES.values() for verb in own]
        self.weight[[ids.ids[0] for ids in tokenizer.encode_batch(verbs)]] = recipe.verb_weight
        self.weight_after = torch.ones(V)
        self.weight_after[[ids.ids[0] for ids in tokenizer.encode_batch(ANSWER_AFTER)]] = recipe.answer_weight

    def batch(self, r: Random) -> Batch:
        """The batch of one step."""
        recipe, T = self.recipe, self.recipe.short_T
        grammar = rows.packed(lambda n: self._documents(r, n), recipe.grammar_rows, T)
        counted = [self.weight[grammar[:, 1:]] * self.weight_after[grammar[:, :-1]]]
        repeats = torch.full((recipe.repeat_rows, T + 1), rows.END_ID)
        for row in repeats:
            ids, block = rows.repeated(r, T, self.V, recipe.shortest, recipe.longest)
            lead = r.randrange(2)
            row[lead:] = torch.tensor(ids[: T + 1 - lead])
            counted.append((torch.arange(T) >= block + lead).float()[None])
        long = self.natural.draw(r, recipe.natural_rows, recipe.long_T) if self.natural else None
        short = torch.cat([grammar, repeats])
        return Batch(short, torch.cat(counted), long, self._lens_layer(r), r.randrange(LENS_EVERY))

    def _lens_layer(self, r: Random) -> int:
        """Half of the time the last layer but one, where the lens should already know; else any earlier one."""
        return self.L - 1 if r.random() < 0.5 else r.randrange(1, self.L)

    def _documents(self, r: Random, count: int) -> list[list[int]]:
        return [ids.ids for ids in self.tokenizer.encode_batch([document(r, self.recipe.shares) for _ in range(count)])]


def loss(network: Network, batch: Batch, ids: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy at the end and at the lens layer, in nats. ids: (B, T + 1), counted: (B, T)."""
    stream, targets = network(ids[:, :-1]), ids[:, 1:]
    some = slice(batch.lens_first, None, LENS_EVERY)
    final = next_token_loss(network.logits(stream[-1]), targets, counted)
    early = next_token_loss(network.logits(stream[batch.lens_layer][:, some]), targets[:, some], counted[:, some])
    return final, early
