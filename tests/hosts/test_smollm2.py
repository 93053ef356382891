"""A real model on this machine's driver: SmolLM2-135M says what it is known to say, and its heads add up."""

import numpy as np
import pytest

from tests.hosts.numbers import log_softmax
from tests.tolerances import KNOWN_PROBABILITY, PATTERN_ROW_SUM
from weights.tokens import load_tokenizer

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

PROMPT = "When Mary and John went to the store, John gave a drink to"
MARY = 0.923  # probability of " Mary" in float64 with the same f16 weights


def test_smollm2_finishes_the_sentence(smollm2, load):
    tokens = load_tokenizer(smollm2)
    ids = tokens.encode(PROMPT)
    model = load(smollm2)
    trace = model.run(ids)
    logprobs = log_softmax(trace.logits(len(ids) - 1))
    assert tokens.decode([int(logprobs.argmax())]) == " Mary"
    assert np.exp(logprobs.max()) == pytest.approx(MARY, abs=KNOWN_PROBABILITY)
    pattern = np.stack([trace.read("pattern", layer) for layer in range(30)])
    assert pattern.shape == (30, 9, 14, 14)
    assert np.abs(pattern.sum(-1) - 1).max() < PATTERN_ROW_SUM
    lens = trace.lens_rows(30, len(ids) - 1, 1, int(logprobs.argmax()))
    assert lens["target_rank"][0] == 0
    assert trace.ranks(len(ids) - 1, int(logprobs.argmax()))[30] == 0
    trace.destroy()
    assert next(model.generate(ids, 1))[0] == int(logprobs.argmax())
