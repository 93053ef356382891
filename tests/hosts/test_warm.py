"""What the page compiles while weights arrive is what a first prompt then runs: every kernel of it, and no other.

Plan: prompts of several lengths with wall (both kinds of heatmap), prediction and lens, in each choice of variants.
"""

import pytest

from tests.hosts.configs import GOOD
from tests.hosts.test_plan import placed, plan_json
from webgpu import queries
from webgpu.plan import TRACE, prefill

QUADS = {"attention": "quads", "cells": "quads", "matmul": "quads", "matvec": "quads", "lens": "quads"}


def pipelines(plans: list[dict]) -> set[str]:
    """Kernels with their overrides, as the host tells them apart."""
    dispatches = [dispatch for plan in plans for step in plan["steps"] for dispatch in step["dispatches"]]
    return {str((each["kernel"], sorted(each["overrides"].items()))) for each in dispatches}


@pytest.mark.parametrize("dtype", ["F16", "Q4_1"])
@pytest.mark.parametrize("choice", [{}, QUADS], ids=["first", "quads"])
@pytest.mark.parametrize("name", ["llama", "smollm2", "qwen3"])
def test_warm_compiles_what_a_first_prompt_runs(name, choice, dtype, mirror):
    parsed, weights = placed(GOOD[name], dtype)
    needed: set[str] = set()
    for T in (2, 31, 300):
        plans = prefill(parsed, weights, T=T, capacity=T, keep=TRACE, choice=choice)
        for out in (min(T, 40), T):
            wall = {"layer0": 0, "layers": 1, "T": T, "out": out, "reduce": "max"}
            plans.append(queries.thumbnails(parsed, weights, **wall, choice=choice))
        plans.append(queries.logits(parsed, weights, sources=[(parsed.L, T - 1, 1)], choice=choice))
        plans.append(queries.lens(parsed, weights, sources=[(0, 0, T)], choice=choice))
        needed |= pipelines([plan_json(plan) for plan in plans])
    theirs = mirror.ask("warm", raw=GOOD[name], choice=choice, dtype=dtype, most_bytes=1 << 27)
    assert pipelines(theirs) == needed
