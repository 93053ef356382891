"""The trained model as the evaluation sees it: the oracle with its tokenizer, one text at a time."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from python_ref.load import load_model
from python_ref.model import Model
from python_ref.trace import trace
from weights.checkpoint import open_checkpoint
from weights.errors import quoted
from weights.tokens import TokenizerMissing, Tokens, load_tokenizer


@dataclass(frozen=True)
class Probe:
    """A model and its tokenizer. positions: the longest row that training saw."""

    model: Model
    tokens: Tokens
    positions: int

    @classmethod
    def open(cls, folder: Path) -> "Probe":
        """Read a checkpoint folder in float32. Raises CheckpointError; the tokenizer is read first, being small."""
        positions = open_checkpoint(folder).config["max_position_embeddings"]
        try:
            tokens = load_tokenizer(folder)
        except TokenizerMissing:
            raise TokenizerMissing(
                f"{quoted(str(folder), 200)} has no tokenizer.json, and the evaluation reads texts; "
                "put the model's tokenizer.json there."
            ) from None
        return cls(load_model(folder, torch.float32), tokens, positions)

    def one(self, text: str) -> int:
        """The id of a text that is one token. Raises ValueError when it is not."""
        ids = self.tokens.encode(text)
        if len(ids) != 1:
            raise ValueError(f"{text!r} is {len(ids)} tokens, and the evaluation needs one.")
        return ids[0]

    def look(self, ids: list[int]) -> tuple[Tensor, Tensor]:
        """As the function of this name."""
        return look(self.model, ids)

    def lens(self, ids: list[int]) -> Tensor:
        """Logits at every depth: [L + 1, T, V]."""
        found = trace(self.model, ids, include=["resid_pre", "resid_post"])
        resid = torch.cat([found["resid_pre"][:1], found["resid_post"]])
        return self.model.logits(self.model.final_norm(resid))


def look(model: Model, ids: list[int]) -> tuple[Tensor, Tensor]:
    """pattern [L, N, T, T] and logits [T, V] of a prompt."""
    found = trace(model, ids, include=["pattern", "logits"])
    return found["pattern"], found["logits"]


def last(ids: list[int], id: int) -> int:
    """The last position of an id."""
    return len(ids) - 1 - ids[::-1].index(id)
