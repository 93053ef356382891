"""Make a grouped-query model from a multi-head one: one key/value head per group, the mean of the group's heads.

Ainslie et al. 2023 (GQA), section 2.1. It is where their further training begins, not a model of equal quality: only
when the heads of a group are equal is the result the same function.
"""

import copy
from dataclasses import replace
from typing import TypeVar

from torch import Tensor, nn

from .attention import Attention
from .errors import UnevenGroups
from .model import Model

Module = TypeVar("Module", Attention, Model)


def average_heads(rows: Tensor, heads: int, groups: int) -> Tensor:
    """Average consecutive heads. rows: (heads * H, ...) -> (groups * H, ...), a weight or a bias.

    Raises UnevenGroups when `groups` does not divide `heads`.
    """
    if groups < 1 or heads % groups:
        raise UnevenGroups(heads, groups)
    H = rows.shape[0] // heads
    return rows.reshape(groups, heads // groups, H, *rows.shape[1:]).mean(1).reshape(groups * H, *rows.shape[1:])


def mha_to_gqa(module: Module, K: int) -> Module:
    """A copy of an attention layer, or of a whole model, with K key/value heads. Raises UnevenGroups."""
    module = copy.deepcopy(module)
    for attention in [part for part in module.modules() if isinstance(part, Attention)]:
        for projection in (attention.w_k, attention.w_v):
            _average_projection(projection, attention.K, K)
        attention.K = K
    if isinstance(module, Model):
        module.config = replace(module.config, K=K)
    return module


def _average_projection(projection: nn.Linear, heads: int, groups: int) -> None:
    """Average the output heads of one projection in place."""
    for name in ("weight", "bias"):
        old = getattr(projection, name)
        if old is not None:
            new = average_heads(old.detach(), heads, groups)
            setattr(projection, name, nn.Parameter(new, requires_grad=old.requires_grad))
    projection.out_features = projection.weight.shape[0]
