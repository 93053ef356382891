"""One forward pass with everything in it: every named intermediate of every layer.

    found = trace(model, ids)                                     all of it
    found = trace(model, ids, include=["pattern", "lse"], layers=[0, 7])
    found["pattern"]                                              [2, N, T, T]: layers 0 and 7, in the order asked for

Shapes have no batch dimension; names of a layer carry the requested layers in front. Values have the model's dtype.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from .errors import EmptyPrompt, UnknownLayer, UnknownName, UnknownTokenId
from .lens import logit_lens
from .model import Model

LENS_NAMES = ("lens_ids", "lens_logprobs")  # [L + 1, T, 10] each
MODEL_NAMES = ("token_ids", "embed", "final_norm", "logits", *LENS_NAMES)  # [T], [T, D], [T, D], [T, V]
# Named for what they hold: residual stream and norms [T, D], heads [T, N or K, H], lse [N, T], pattern [N, T, T].
LAYER_NAMES = (
    *("resid_pre", "attn_norm", "q_proj", "k_proj", "v", "q_normed", "k_normed", "q", "k", "lse", "pattern", "z"),
    *("attn_out", "resid_mid", "mlp_norm", "gate", "up", "act", "mlp_out", "resid_post"),
)
HEADS_FIRST = {"q_proj", "k_proj", "v", "q_normed", "k_normed", "q", "k", "z"}  # in the modules, that is


def trace_names(model: Model) -> tuple[str, ...]:
    """Every name that a trace of this model can hold."""
    return (*MODEL_NAMES, *(name for name in LAYER_NAMES if model.config.qk_norm or not name.endswith("_normed")))


@torch.inference_mode()
def trace(
    model: Model, ids: Sequence[int], include: Iterable[str] | None = None, layers: Sequence[int] | None = None
) -> dict[str, Tensor]:
    """Run the model on one prompt and keep the intermediates in `include`, of `layers`; all by default.

    Raises EmptyPrompt, UnknownTokenId, UnknownName, UnknownLayer.
    """
    tokens = check_ids(model, ids)
    names = check_names(model, include)
    layers = check_layers(model, layers)
    found: dict[tuple[int | None, str], Tensor] = {(None, "token_ids"): tokens.int()}
    residuals: list[Tensor] = []

    def keep(layer: int | None, name: str, x: Tensor) -> Tensor:
        if name in ("embed", "resid_post"):
            residuals.append(x[0])
        if name in names and (layer is None or layer in layers):
            found[layer, name] = without_batch(name, x)
        return x

    model(tokens[None], keep)
    if names & set(LENS_NAMES):
        found[None, "lens_ids"], found[None, "lens_logprobs"] = logit_lens(model, residuals)
    return {
        name: found[None, name] if name in MODEL_NAMES else torch.stack([found[layer, name] for layer in layers])
        for name in trace_names(model)
        if name in names
    }


@torch.inference_mode()
def trace_block(model: Model, layer: int, resid_pre: Tensor, include: Iterable[str] | None = None) -> dict[str, Tensor]:
    """One layer alone, from its resid_pre [T, D]: the same numbers that `trace` gives for it, without the layers below.

    Shapes have no layer dimension. Raises UnknownName, UnknownLayer.
    """
    names = check_names(model, include)
    check_layers(model, [layer])
    found: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor) -> Tensor:
        if name in names:
            found[name] = without_batch(name, x)
        return x

    model.blocks[layer](resid_pre[None], keep)
    return found


def without_batch(name: str, x: Tensor) -> Tensor:
    """(1, ...) -> (...), positions first where the modules put heads first."""
    return x[0].transpose(0, 1).contiguous() if name in HEADS_FIRST else x[0]


def check_ids(model: Model, ids: Sequence[int]) -> Tensor:
    """Token ids as [T] int64. Raises EmptyPrompt, UnknownTokenId."""
    ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if not ids:
        raise EmptyPrompt()
    for position, value in enumerate(ids):
        if type(value) is not int or not 0 <= value < model.config.V:
            raise UnknownTokenId(position, value, model.config.V)
    return torch.tensor(ids)


def check_names(model: Model, include: Iterable[str] | None) -> set[str]:
    """The names asked for, all by default. Raises UnknownName."""
    allowed = trace_names(model)
    names = list(allowed if include is None else include)
    for name in names:
        if name not in allowed:
            raise UnknownName(name, allowed)
    return set(names)


def check_layers(model: Model, layers: Sequence[int] | None) -> list[int]:
    """The layers asked for, all by default. Raises UnknownLayer."""
    L = model.config.L
    layers = list(range(L) if layers is None else layers)
    for layer in layers:
        if type(layer) is not int or not 0 <= layer < L:
            raise UnknownLayer(layer, L)
    return layers
