"""The logit lens: what the model would predict if it stopped at each depth. nostalgebraist 2020.

    row 0: the embedding; row l: after layer l; row L: after the last layer, which is the model's own prediction
    logprobs = log_softmax(W_U RMSNorm_final(residual stream at that depth))

The final norm is recomputed at each depth from that depth's own residual stream.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from .model import Model

TOP = 10


@torch.inference_mode()
def logit_lens(model: Model, residuals: Iterable[Tensor], k: int = TOP) -> tuple[Tensor, Tensor]:
    """The k likeliest tokens at every depth and position.

    residuals: [T, D] for each depth -> ids [depths, T, k] int32 and their natural log-probabilities, likeliest first,
    the lower id first among equals; k is V where the vocabulary is smaller. One depth's [T, V] is held at a time.
    """
    rows = [_top(model.logits(model.final_norm(resid)), k) for resid in residuals]
    ids, logprobs = zip(*rows, strict=True)
    return torch.stack(ids), torch.stack(logprobs)


def _top(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """[T, V] -> ids [T, k] int32, log-probabilities [T, k]."""
    ids = top_ids(logits, k)
    return ids.int(), logits.gather(-1, ids) - logits.logsumexp(-1, keepdim=True)


def top_ids(logits: Tensor, k: int) -> Tensor:
    """Ids of the k largest, largest first, the lower id first among equals. [T, V] -> [T, k] int64."""
    k = min(k, logits.shape[-1])
    values, ids = logits.topk(k)
    ids = ids.sort(-1).values
    order = logits.gather(-1, ids).argsort(dim=-1, descending=True, stable=True)
    ids = ids.gather(-1, order)
    # topk may take any of the tokens that share the k-th value: sort such rows whole.
    tied = (logits >= values[:, -1:]).sum(-1) > k
    ids[tied] = logits[tied].argsort(dim=-1, descending=True, stable=True)[:, :k]
    return ids
