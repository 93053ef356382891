"""Byte-level BPE in which every word of the demonstrations is one token, with and without a space before it.

A byte-level vocabulary can write any text; merges are learned from the corpus, and the grammar's words are counted so
often that they are merged first. Sennrich et al. 2016; the byte alphabet is GPT-2's.
"""

from collections.abc import Iterable
from pathlib import Path
from random import Random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from weights.training.grammar import document, words

END = "<|endoftext|>"
GRAMMAR_DOCUMENTS = 3_000
WORD_COUNT = 1_000


def whole_words() -> list[str]:
    """The texts that must be one token each."""
    spaced = {*words.PREDICATES, *(verb for verbs in words.PREDICATES.values() for verb in verbs), *words.SEATS}
    spaced |= {*words.FEELINGS, *words.LOOKS, *words.PLACES, *words.NAMES, *words.GIFTS, *words.COLOURS, *words.ITEMS}
    spaced |= {*words.TABLES, *words.COLUMNS, "it", "she", "he", "they", "It", "She", "He", "They", "because"}
    return sorted(f" {word}" for word in spaced) + sorted(set(words.BARE))


def train_tokenizer(texts: Iterable[str], V: int, seed: int = 0) -> Tokenizer:
    """Learn V tokens from the texts and from the grammar. Id 0 is the end of a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=V,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(texts, seed), trainer)
    split = [word for word in whole_words() if len(tokenizer.encode(word).ids) != 1]
    if split:
        raise ValueError(f"{len(split)} words of the grammar are not one token, first {split[0]!r}; raise WORD_COUNT.")
    return tokenizer


def _corpus(texts: Iterable[str], seed: int) -> Iterable[str]:
    r = Random(seed)
    yield from texts
    yield from (document(r) for _ in range(GRAMMAR_DOCUMENTS))
    for word in whole_words():
        # one word a text, so that a word without a space stands at the start as it does in a prompt
        yield from [word] * WORD_COUNT


def save_tokenizer(tokenizer: Tokenizer, folder: Path, positions: int) -> None:
    """Write tokenizer.json and tokenizer_config.json, as transformers reads them."""
    import json

    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": positions,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
