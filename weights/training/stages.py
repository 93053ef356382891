"""The whole run: tokenizer, repeats, then one mix after the other.

Everything follows from the recipe, the seed and the text files.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from tokenizers import Tokenizer

from weights.training import mix, repeats
from weights.training.mix import LENS_SHARE, Mix, MixSource
from weights.training.network import Network
from weights.training.recipe import Recipe
from weights.training.repeats import Repeats
from weights.training.rows import NaturalRows, Text
from weights.training.run_folder import claim
from weights.training.tokenizer import train_tokenizer
from weights.training.trainer import Stage, train

Say = Callable[[str], None]
STORY_WEIGHT, BOOK_WEIGHT = 5.0, 1.0


def repeats_stage(network: Network, recipe: Repeats) -> Stage:
    """Stage one."""
    state = {"vocabulary": recipe.first, "average": 0.0, "since": 0}

    def losses(r):
        V = state["vocabulary"]
        terms = repeats.loss(network, *recipe.batch(r, V), V)
        recipe.grow(state, terms["accuracy"].item(), network.s.V)
        return terms

    return Stage(
        name="repeats",
        steps=recipe.steps,
        tokens_per_step=recipe.rows * recipe.T,
        rates=(recipe.muon, recipe.adam, recipe.decay),
        feed_forward=False,
        cool_down=recipe.cool_down,
        losses=losses,
        weigh=lambda terms: terms["loss"],
        state=state,
        watch=lambda: f"{state['vocabulary']} ids in use",
    )


def mix_stage(network: Network, recipe: Mix, tokenizer: Tokenizer, natural: NaturalRows | None) -> Stage:
    """Stage two. The terms are weighed by the tokens that stand behind them."""
    source = MixSource(recipe, tokenizer, network.s.V, network.s.L, natural)
    short_tokens = (recipe.grammar_rows + recipe.repeat_rows) * recipe.short_T
    long_tokens = recipe.natural_rows * recipe.long_T if natural else 0

    def losses(r):
        batch = source.batch(r)
        short, short_lens = mix.loss(network, batch, batch.short, batch.counted)
        terms = {"grammar": short, "lens": short_lens}
        if batch.long is not None:
            terms["text"], terms["text_lens"] = mix.loss(
                network, batch, batch.long, torch.ones_like(batch.long[:, 1:], dtype=torch.float32)
            )
        return terms

    def weigh(terms):
        short = terms["grammar"] + LENS_SHARE * terms["lens"]
        if not natural:
            return short
        long = terms["text"] + LENS_SHARE * terms["text_lens"]
        return (short_tokens * short + long_tokens * long) / (short_tokens + long_tokens)

    return Stage(
        name=recipe.name,
        steps=recipe.steps,
        tokens_per_step=short_tokens + long_tokens,
        rates=(recipe.muon, recipe.adam, recipe.decay),
        feed_forward=True,
        cool_down=recipe.cool_down,
        losses=losses,
        weigh=weigh,
    )


def natural_rows(texts: list[Text], tokenizer: Tokenizer, longest: int) -> NaturalRows | None:
    """Rows of the texts' training part; None without texts. Stories count for more than books.

    longest: the most tokens that a row will have. Raises ValueError when a text is shorter than that.
    """
    if not texts:
        return None
    natural = NaturalRows(texts, [STORY_WEIGHT if text.stories else BOOK_WEIGHT for text in texts], tokenizer)
    for text, stream in zip(texts, natural.streams, strict=True):
        if len(stream) < longest + 2:
            raise ValueError(
                f"{text.name} has {len(stream)} tokens to train on, and a row takes {longest + 1}; give a longer text."
            )
    return natural


def run(recipe: Recipe, texts: list[Text], folder: Path, say: Say = print) -> tuple[Network, Tokenizer, float]:
    """Train from the start, or from the last checkpoint in `folder`: network, tokenizer, seconds of training.

    Raises ValueError when the folder holds another run, a checkpoint cannot be read, or a text is too short.
    """
    made_of = {"recipe": asdict(recipe), "texts": {text.name: text.sha256 for text in texts}}
    claim(folder, made_of)
    tokenizer = saved_tokenizer(recipe, texts, folder)
    natural = natural_rows(texts, tokenizer, max(mix_recipe.long_T for mix_recipe in recipe.mixes))
    torch.manual_seed(recipe.seed)
    network = Network(recipe.shape)
    seconds = train(network, repeats_stage(network, recipe.repeats), folder, recipe.seed, say)
    for mix_recipe in recipe.mixes:
        seconds += train(network, mix_stage(network, mix_recipe, tokenizer, natural), folder, recipe.seed, say)
    return network, tokenizer, seconds


def saved_tokenizer(recipe: Recipe, texts: list[Text], folder: Path) -> Tokenizer:
    """The tokenizer of an interrupted run, or a new one."""
    path = folder / "tokenizer.json"
    if not path.exists():
        beside = path.with_suffix(".new")  # an interruption leaves no half of a tokenizer
        train_tokenizer([part for text in texts for part in text.train], recipe.shape.V).save(str(beside))
        beside.replace(path)
    return Tokenizer.from_file(str(path))
