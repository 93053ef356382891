"""Writing on from a prompt against a KV cache, one pass a token, greedily: the device chooses and tells in four words.

Left out on purpose: drawing (static/lib/sampler.js) and steps submitted ahead; static/gpu/generate.js has both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from webgpu.next_token import TOKEN_WORDS
from webgpu.plan import CACHE, forward, prefill


def generate(model, ids: Sequence[int], max_tokens: int, stop_ids: Sequence[int] = ()) -> Iterator[tuple[int, float]]:
    """Continue a prompt: (id, log-probability), one submit a token. model: a webgpu.runtime.Model; ids: checked."""
    T, capacity = len(ids), len(ids) + max_tokens
    fixed = {"capacity": capacity, "keep": CACHE, "logits": True, "temperature": 0, "choice": model.choice}
    plans = prefill(model.config, model.placed, T=T, **fixed)
    buffers = model.allocate(plans, capacity)
    try:
        model.run_forwards(plans, ids, buffers, T)
        for position in range(T, capacity):
            words = model.kernels.read(buffers["token"], "uint32", (TOKEN_WORDS,))
            token, (logit, lse) = int(words[0]), words[1:3].view(np.float32).astype(np.float64)
            yield token, float(logit - lse)
            if token in stop_ids or position + 1 == capacity:
                return
            step = forward(model.config, model.placed, T=1, offset=position, **fixed)
            buffers.make(step.buffers)
            model.run_forwards([step], [token], buffers, position + 1)
    finally:
        buffers.destroy()
