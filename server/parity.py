"""Kernels against oracle on one prompt: which kernel, which layer, how large an error, inside its tolerance or not.

Two questions are kept apart. *Kernels*: each layer's intermediates are compared with an oracle that starts this very
layer from the residual stream the kernels arrived with, so that no kernel answers for another layer's rounding.
*Layers*: residual stream and patterns are compared with the oracle's own run from the token ids, errors added up.

An error is the largest absolute difference, for tensors without natural scale divided by the oracle's largest value.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from server.trace_names import GLOBAL_SHAPES

# The kernel that writes each tensor.
WRITTEN_BY = {
    "embed": "embedding",
    **dict.fromkeys(("attn_norm", "q_normed", "k_normed", "mlp_norm", "final_norm"), "rmsnorm"),
    **dict.fromkeys(("q_proj", "k_proj", "attn_out", "gate", "up", "mlp_out", "logits"), "matmul"),
    **dict.fromkeys(("q", "k", "v"), "rope"),
    **dict.fromkeys(("lse", "z"), "attention_fa2"),
    "pattern": "attention_probs",
    "act": "swiglu",
    **dict.fromkeys(("resid_mid", "resid_post"), "matmul"),
    "lens_logprobs": "lens",
}
ABSOLUTE = frozenset({"pattern", "lse", "lens_logprobs"})

# float32 rounds to 6e-8 of a value; a row of 1,536 products rounds to about 2e-6 of the tensor's largest value, and
# scores, which exp() then magnifies, are sums of up to 256 products of values that can exceed 100.
KERNEL_TOLERANCE = 2e-5
SCORE_TOLERANCE = 1e-4
# Rounding grows with depth: what 30 layers add up stays well below the 1e-3 that a reader could see in a figure.
LAYER_TOLERANCE = 2e-4
# Log-probabilities come out of a sum over the vocabulary of logits that can exceed 30 (2e-6 measured).
LOGPROB_TOLERANCE = 2e-4
# In the lens's early rows the final norm magnifies a residual stream it was not made for: logits reach hundreds (7e-5
# measured on SmolLM2).
LENS_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Verdict:
    """One comparison. `where` is a kernel's name or a layer's number; error and tolerance are in the tensor's unit."""

    where: str
    tensor: str
    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the error is a number and within its tolerance."""
        return bool(self.error <= self.tolerance)

    def as_json(self) -> dict:
        """For --json; an error that is not a number becomes null, which JSON can hold."""
        return {**asdict(self), "error": self.error if np.isfinite(self.error) else None, "ok": self.ok}


def error_of(name: str, given: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference, relative to the largest wanted value except for names in ABSOLUTE; infinite for NaN."""
    if not np.isfinite(given).all():
        return float("inf")
    worst = float(np.abs(given.astype(np.float64) - wanted).max(initial=0.0))
    scale = 1.0 if name in ABSOLUTE else float(np.abs(wanted).max(initial=0.0))
    return worst / scale if scale > 0 else worst


def lens_error(given: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """Largest difference of log-probability, token by token: a token in the wrong place counts with its own value."""
    worst = 0.0
    tables = [x[name] for x in (given, wanted) for name in ("lens_ids", "lens_logprobs")]
    rows = zip(*(table.reshape(-1, table.shape[-1]) for table in tables), strict=True)
    for ids, logprobs, true_ids, true_logprobs in rows:
        truth = dict(zip(true_ids.tolist(), true_logprobs.tolist(), strict=True))
        for token_id, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True):
            # A token that the oracle does not list is at most as likely as the last one it lists.
            difference = abs(logprob - truth.get(token_id, float(true_logprobs[-1])))
            worst = max(worst, difference if np.isfinite(difference) else float("inf"))
    return worst


def tolerance_of(name: str) -> float:
    """Tolerance of one kernel's tensor."""
    if name == "lens_logprobs":
        return LENS_TOLERANCE
    return SCORE_TOLERANCE if name in ("lse", "pattern", "z", "attn_out", "resid_mid") else KERNEL_TOLERANCE


def compare_kernels(kernels: dict[str, np.ndarray], oracle, ids: list[int]) -> Iterator[Verdict]:
    """One verdict per tensor: the largest error over all layers. kernels: every name, stacked over the layers."""
    wanted = oracle.trace(ids, ["embed"])["embed"]
    yield _verdict("embed", error_of("embed", kernels["embed"], wanted))
    layered = [name for name in kernels if name not in GLOBAL_SHAPES and name in WRITTEN_BY]
    worst = dict.fromkeys(layered, 0.0)
    for layer, resid_pre in enumerate(kernels["resid_pre"]):
        block = oracle.block(layer, resid_pre, layered)
        for name in layered:
            worst[name] = max(worst[name], error_of(name, kernels[name][layer], block[name]))
    for name in layered:
        yield _verdict(name, worst[name])
    top = oracle.head(kernels["resid_post"][-1])
    for name in ("final_norm", "logits"):
        yield _verdict(name, error_of(name, kernels[name], top[name]))
    streams = np.concatenate([kernels["resid_pre"], kernels["resid_post"][-1:]])
    yield _verdict("lens_logprobs", lens_error(kernels, oracle.lens(streams)))


def compare_layers(kernels: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> Iterator[Verdict]:
    """One verdict per layer and tensor, against the oracle's run from the token ids."""
    for layer in range(len(kernels["resid_post"])):
        for name in ("pattern", "resid_post"):
            error = error_of(name, kernels[name][layer], wanted[name][layer])
            yield Verdict(f"layer {layer}", name, error, LAYER_TOLERANCE)


def compare_decode(
    generate: Callable[[int], list[tuple[int, float]]], oracle, ids: list[int], tokens: int = 3
) -> Iterator[Verdict]:
    """Continue the prompt against the key/value cache; the oracle reads the whole text anew each time."""
    worst, so_far = 0.0, list(ids)
    for token_id, logprob in generate(tokens):
        logits = oracle.trace(so_far, ["logits"], positions=[len(so_far) - 1])["logits"][0].astype(np.float64)
        top = logits.max()
        true = logits[token_id] - top - np.log(np.exp(logits - top).sum())
        difference = abs(logprob - true)
        worst = max(worst, difference if np.isfinite(difference) else float("inf"))
        so_far.append(token_id)
    yield Verdict("attention_decode", "log-probability", worst, LOGPROB_TOLERANCE)


def _verdict(name: str, error: float) -> Verdict:
    return Verdict(WRITTEN_BY[name], name, error, tolerance_of(name))
