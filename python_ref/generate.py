"""Greedy continuation, the slow and obvious way: the whole sequence is run again for every new token.

Left out on purpose: sampling and a key/value cache. With dynamic RoPE scaling this also differs from a cache, which
would keep keys that were rotated for a shorter sequence.
"""

from collections.abc import Collection, Sequence

import torch

from .lens import top_ids
from .model import Model
from .trace import check_ids


@torch.inference_mode()
def generate(model: Model, ids: Sequence[int], max_new_tokens: int, stop_ids: Collection[int] = ()) -> list[int]:
    """The likeliest continuation (the lower id among equals), without the prompt; a stop id ends it and is included.

    Raises EmptyPrompt, UnknownTokenId.
    """
    tokens = check_ids(model, ids).tolist()
    new: list[int] = []
    while len(new) < max_new_tokens and not (new and new[-1] in stop_ids):
        logits = model(torch.tensor([tokens + new]))[0, -1:]  # (1, V)
        new.append(int(top_ids(logits, 1)))
    return new
