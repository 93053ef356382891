"""The next token as dispatches: the best logits of a row in lists, and the likeliest of them chosen on the device.

Greedy generation (temperature 0) chooses on the device and reads back four words; a draw reads the lists, 20 KB
whatever the vocabulary, and static/lib/sampler.js says when they suffice. Mirrored by static/gpu/next_token.js.
"""

from __future__ import annotations

from webgpu.dispatch import Dispatch, ceil_div, fold

LISTS = 256  # invocations of candidates.wgsl
LIST_WORDS = 20  # numbers of one list: m, s, h, 0, eight logits, eight ids
TOKEN_WORDS = 4  # id, its logit, log-sum-exp, 0


def candidates(logits, best, *, V, temperature) -> Dispatch:
    """logits [V] -> best [LISTS, LIST_WORDS]; sums of weights are for this temperature (0: for 1)."""
    params = {"V": V, "heat": 1 / temperature if temperature else 1}
    return Dispatch("candidates", {}, params, fold(ceil_div(LISTS, 16)), {"logits": logits, "best": best})


def choose(best, ids, token) -> Dispatch:
    """The likeliest token of the lists -> ids [1], token [TOKEN_WORDS]."""
    return Dispatch("choose", {}, {"lists": LISTS}, (1, 1, 1), {"best": best, "ids": ids, "token": token})


def next_token(plan, logits: str, temperature: float) -> None:
    """Add to a plan the lists of a draw, in `best`; at temperature 0 also the likeliest token, in `ids` and `token`."""
    V, best = plan.config.V, plan.buffer("best", LISTS * LIST_WORDS)
    plan.emit(candidates(logits=logits, best=best, V=V, temperature=temperature), 10 * V)
    if temperature == 0:
        plan.emit(choose(best=best, ids=plan.buffer("ids", 1), token=plan.buffer("token", TOKEN_WORDS)), LISTS)
