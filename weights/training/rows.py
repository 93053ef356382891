"""Documents packed into rows of token ids.

Nothing stands before the first token of a row, because nothing stands before a prompt in the playground; between two
documents stands the end token. Rows of the grammar are short, so that a document often meets the start of a row; rows
of natural text are as long as the model's positions.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

END_ID = 0
HELD_OUT_EVERY = 20
STORY_MARK = "<|endoftext|>"
BOOK_PART_CHARACTERS = 4_000
MOST_TEXTS, LONGEST_NAME = 7, 60  # weights/report.py reads no more: eight with the grammar


@dataclass(frozen=True)
class Text:
    """A text file cut into documents, every twentieth held out. Stories are cut at <|endoftext|>, books by length."""

    name: str
    sha256: str
    stories: bool
    train: list[str]
    held_out: list[str]


def read_text(path: Path) -> Text:
    """Read a UTF-8 text file. Raises OSError, and ValueError when it is no such text or too short to be parted."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); convert it first.") from None
    if STORY_MARK in text:
        parts = [part.strip() for part in text.split(STORY_MARK)]
    else:
        parts = [text[i : i + BOOK_PART_CHARACTERS] for i in range(0, len(text), BOOK_PART_CHARACTERS)]
    parts = [part for part in parts if part]
    if len(parts) < 2:
        raise ValueError(
            f"{path} has {len(text)} characters, too few to hold a part out; give a longer text, its stories ended by "
            f"{STORY_MARK}."
        )
    train = [part for i, part in enumerate(parts) if i % HELD_OUT_EVERY]
    return Text(path.name, hashlib.sha256(data).hexdigest(), STORY_MARK in text, train, parts[::HELD_OUT_EVERY])


def read_texts(paths: Iterable[Path]) -> list[Text]:
    """Read text files whose names tell them apart, as the card names them. Raises as `read_text`, and ValueError."""
    texts = [read_text(path) for path in paths]
    for i, text in enumerate(texts):
        if text.name in ("grammar", *(other.name for other in texts[:i])):
            raise ValueError(f"There is another text named {text.name!r}; give one of them another name.")
        if len(text.name) > LONGEST_NAME or len(texts) > MOST_TEXTS:
            raise ValueError(
                f"A card names at most {MOST_TEXTS} texts in {LONGEST_NAME} characters each; not {len(texts)}, one of "
                f"{len(text.name)}."
            )
    return texts


class NaturalRows:
    """Rows cut from natural text at random places, each at the start of a document half of the time.

    weights: how often a row comes from each text.
    """

    def __init__(self, texts: list[Text], weights: list[float], tokenizer: Tokenizer):
        self.weights = weights
        self.streams, self.starts = [], []
        for text in texts:
            documents = [[*ids.ids, END_ID] for ids in tokenizer.encode_batch(text.train)]
            self.streams.append(np.fromiter((id for ids in documents for id in ids), np.int64))
            self.starts.append(np.cumsum([0, *(len(ids) for ids in documents[:-1])]))

    def draw(self, r: Random, rows: int, T: int) -> Tensor:
        """(rows, T + 1) ids."""
        drawn = []
        for which in r.choices(range(len(self.streams)), self.weights, k=rows):
            stream, starts = self.streams[which], self.starts[which]
            last = len(stream) - T - 1
            begin = int(r.choice(starts)) if r.random() < 0.5 else r.randrange(last)
            drawn.append(stream[min(begin, last) :][: T + 1])
        return torch.from_numpy(np.stack(drawn))


def packed(documents: Callable[[int], Iterable[list[int]]], rows: int, T: int) -> Tensor:
    """(rows, T + 1) ids of documents set one after the other; the one that does not fit a row is cut.

    documents(n) gives at least n lists of ids, which are drawn in turn.
    """
    out, pool = np.full((rows, T + 1), END_ID, np.int64), iter(())
    for row in out:
        filled = 0
        while filled < T + 1:
            ids = next(pool, None)
            if ids is None:
                pool = iter(documents(rows))
                continue
            part = [*ids, END_ID][: T + 1 - filled]
            row[filled : filled + len(part)] = part
            filled += len(part)
    return torch.from_numpy(out)


def repeated(r: Random, T: int, V: int, shortest: int, longest: int) -> tuple[list[int], int]:
    """A random block of ids said again and again until T + 1 ids are there, and the length of the block.

    Ids are 1 .. V - 1: the end token never stands inside.
    """
    block = [r.randrange(1, V) for _ in range(r.randint(shortest, longest))]
    return (block * (T // len(block) + 2))[: T + 1], len(block)
