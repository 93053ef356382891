"""What the page does ahead: compiles what a first prompt then runs, no more and no less; binds once what comes again,
and cuts its work by what the device did before.

Plan: prompts of several lengths with wall (both kinds of heatmap), prediction and lens, in each choice of variants.
"""

import pytest

from tests.hosts.configs import GOOD
from tests.hosts.test_plan import placed, plan_json
from webgpu import queries
from webgpu.plan import TRACE, prefill
from webgpu.variants import first_choice

QUADS = {"attention": "quads", "cells": "quads", "matmul": "quads", "matvec": "quads", "lens": "quads"}
GPU = first_choice([], software=False)


def pipelines(plans: list[dict]) -> set[str]:
    """Kernels with their overrides, as the host tells them apart."""
    dispatches = [dispatch for plan in plans for step in plan["steps"] for dispatch in step["dispatches"]]
    return {str((each["kernel"], sorted(each["overrides"].items()))) for each in dispatches}


@pytest.mark.parametrize("dtype", ["F16", "Q4_1"])
@pytest.mark.parametrize("choice", [{}, QUADS, GPU], ids=["first", "quads", "gpu"])
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
        for rows in (1, T):
            plans.append(queries.lens(parsed, weights, sources=[(0, 0, rows)], choice=choice))
        needed |= pipelines([plan_json(plan) for plan in plans])
    theirs = mirror.ask("warm", raw=GOOD[name], choice=choice, dtype=dtype, most_bytes=1 << 27)
    assert pipelines(theirs) == needed


def test_replay_binds_anew_only_what_changed(mirror):
    norm = {"kernel": "rmsnorm", "bindings": {"x": "a", "out": "b"}}
    moved = {"kernel": "rmsnorm", "bindings": {"x": "a@256+256", "out": "b"}}
    other = {"kernel": "add", "bindings": {"x": "a", "out": "b"}}
    runs = [[norm, norm], [norm, norm], [norm, moved], [other, moved], [other, norm]]
    assert mirror.ask("replay", runs=runs) == [[0, 1], [0, 1], [0, 2], [3, 2], [3, 4]]


@pytest.mark.parametrize(
    ("runs", "budgets"),
    [
        ([[(500e6, 200), (100e6, 900)]], [250e6]),  # the second is nearly empty
        ([[(500e6, 125), (500e6, 100)], [(400e6, 100)]], [400e6, 400e6]),  # the slowest counts
        ([[(500e6, 10_000)], [(125e6, 10_000)]], [125e6, 50e6]),  # a quarter at a time, and not below the least
        ([[(500e6, 0)], [(2e9, 1)], [(8e9, 1)], []], [2e9, 8e9, 20e9, 20e9]),  # four times, and not above the most
    ],
)
def test_pace_follows_the_slowest_submit(runs, budgets, mirror):
    assert mirror.ask("pace", runs=runs) == budgets
