"""What the page does ahead: compiles what a first prompt then runs, no more and no less, and the rest later; binds once
what comes again, and cuts its work by what the device did before.

Plan: prompts of several lengths with wall (both kinds of heatmap) and prediction, in each choice of variants; lens and
generating; which prompts are short enough for variants that compile in a moment; order, and the change-over.
"""

import json
from pathlib import Path

import pytest

from tests.hosts.configs import GOOD
from tests.hosts.test_plan import placed, plan_json
from webgpu import queries
from webgpu.plan import CACHE, TRACE, forward, prefill
from webgpu.variants import first_choice

QUADS = {"attention": "texels", "cells": "quads", "matmul": "quads", "matvec": "quads", "lens": "quads"}
GPU = first_choice([], software=False)


def pipelines(plans: list[dict]) -> set[str]:
    """Kernels with their overrides, as the host tells them apart."""
    dispatches = [dispatch for plan in plans for step in plan["steps"] for dispatch in step["dispatches"]]
    return {str((each["kernel"], sorted(each["overrides"].items()))) for each in dispatches}


every_model = pytest.mark.parametrize("name", ["llama", "smollm2", "qwen3"])
every_choice = pytest.mark.parametrize("choice", [{}, QUADS, GPU], ids=["first", "quads", "gpu"])
every_format = pytest.mark.parametrize("dtype", ["F16", "Q4_1"])
TINY = json.loads((Path(__file__).parents[2] / "weights" / "tiny" / "config.json").read_text("utf-8"))
PLAIN = {"attention": "plain", "cells": "plain", "decode": "plain"}


def picture(parsed, weights, T, pixels, choice) -> set[str]:
    """A prompt of T tokens, its wall and its prediction."""
    plans = prefill(parsed, weights, T=T, capacity=T, keep=TRACE, choice=choice)
    for out in pixels:
        wall = {"layer0": 0, "layers": 1, "T": T, "out": out, "reduce": "max"}
        plans.append(queries.thumbnails(parsed, weights, **wall, choice=choice))
    plans.append(queries.logits(parsed, weights, sources=[(parsed.L, T - 1, 1)], choice=choice))
    return pipelines([plan_json(plan) for plan in plans])


@every_format
@every_choice
@every_model
def test_picture_compiles_what_a_first_prompt_runs(name, choice, dtype, mirror):
    parsed, weights = placed(GOOD[name], dtype)
    sizes = {"dtype": dtype, "most_bytes": 1 << 27}
    for T, pixels in ((1, [1]), (2, [2]), (24, [24]), (25, [25, 24]), (300, [300, 24])):
        taken = mirror.ask("plain_choice", raw=GOOD[name], T=T, choice=choice)
        theirs = mirror.ask("picture", raw=GOOD[name], choice=taken, T=T, **sizes)
        assert pipelines(theirs) == picture(parsed, weights, T, pixels, taken)


@every_format
@every_choice
@every_model
def test_later_compiles_what_any_prompt_the_lens_and_generating_run(name, choice, dtype, mirror):
    parsed, weights = placed(GOOD[name], dtype)
    needed: set[str] = set()
    for T in (2, 31, 300):
        needed |= picture(parsed, weights, T, (min(T, 24), T), choice)
        plans = [queries.lens(parsed, weights, sources=[(0, 0, rows)], choice=choice) for rows in (1, T)]
        step = {"T": 1, "offset": T, "capacity": 400, "keep": CACHE, "logits": True, "temperature": 0}
        plans.append(forward(parsed, weights, **step, choice=choice))
        needed |= pipelines([plan_json(plan) for plan in plans])
    theirs = mirror.ask("later", raw=GOOD[name], choice=choice, dtype=dtype, most_bytes=1 << 27)
    assert pipelines(theirs) == needed


@pytest.mark.parametrize(
    ("raw", "T", "plain"),
    [
        (TINY, 12, {**PLAIN, "matmul": "plain"}),
        (TINY, 40, PLAIN),
        (TINY, 60, {}),
        (GOOD["smollm2"], 1, PLAIN),
        (GOOD["smollm2"], 14, {}),
    ],
)
def test_plain_variants_are_for_little_work(raw, T, plain, mirror):
    assert mirror.ask("plain_choice", raw=raw, T=T, choice=QUADS) == QUADS | plain


def test_gpu_keeps_its_own_products(mirror):
    assert mirror.ask("plain_choice", raw=TINY, T=12, choice={"matmul": "groups"}) == {"matmul": "groups", **PLAIN}


def test_model_compiles_the_picture_at_once_then_one_by_one_and_changes_over(mirror):
    seen = mirror.ask("warming", raw=TINY, choice=QUADS, T=12, dtype="F16", most_bytes=1 << 27)
    quick = {"attention_plain", "attention_pixels_plain", "matvec"}
    slow = {"attention_texels", "attention_pixels_quads", "matmul_quads", "lens_tile", "attention_decode"}
    assert quick <= set(seen["picture"]) and not slow & set(seen["picture"])
    assert slow <= set(seen["all"])
    assert (
        seen["all"].index("lens_tile") < seen["all"].index("attention_texels") < seen["all"].index("attention_decode")
    )
    assert seen["most"] == {"picture": len(seen["picture"]), "all": 1}
    assert seen["unasked"] == 0, "each of the rest waits until no prompt runs"
    assert (seen["before"]["attention"], seen["after"]) == ("plain", QUADS)


def test_replay_binds_anew_only_what_changed(mirror):
    norm = {"kernel": "rmsnorm", "bindings": {"x": "a", "out": "b"}}
    moved = {"kernel": "rmsnorm", "bindings": {"x": "a@256+256", "out": "b"}}
    other = {"kernel": "add", "bindings": {"x": "a", "out": "b"}}
    runs = [[norm, norm], [norm, norm], [norm, moved], [other, moved], [other, norm]]
    assert mirror.ask("replay", runs=runs) == [[0, 1], [0, 1], [0, 2], [3, 2], [3, 4]]


def test_replay_takes_a_larger_uniform_buffer_and_groups_go_with_the_old_one(mirror):
    found = mirror.ask("uniforms", sizes=[512, 256, 1024, 512])
    assert found == {"used": [[0, 0], [0, 0], [1, 1], [1, 1]], "freed": [True, True]}


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
