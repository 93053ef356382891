"""A right kernel gets a speed beside its ceilings, a wrong one a sentence; each check has its control.

Plan: every operation once on this machine's driver; mistakes planted in the WGSL (no scale, a lane's row dropped, a
column never written, weights misread, ranks off) and refused; times that come from the clock.
"""

import dataclasses
import itertools
import statistics
from types import SimpleNamespace

import pytest

from bench import ceilings, timing
from bench.errors import BadArguments, WrongResult
from tests.conftest import ROOT
from webgpu.device import request_device
from webgpu.kernels import Kernels
from webgpu.variants import VARIANTS, first_choice, to_try

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("briefly")]
SMALL = {
    "attention": {"op": "attention", "T": 40, "N": 4, "K": 2, "H": 16, "variant": "fa2"},
    "decode": {"op": "decode", "T": 70, "N": 4, "K": 2, "H": 16, "variant": "split"},
    "heatmap": {"op": "heatmap", "T": 40, "N": 2, "K": 1, "H": 16, "variant": "rows"},
    "pixels": {"op": "heatmap", "T": 40, "N": 2, "K": 1, "H": 16, "window": 30, "pixels": 7, "variant": "rows"},
    "matmul": {"op": "matmul", "T": 9, "d_in": 64, "d_out": 24, "variant": "registers"},
    "q4_1": {"op": "matmul", "T": 9, "d_in": 64, "d_out": 24, "format": "q4_1", "variant": "quads"},
    "q8_0": {"op": "matmul", "T": 1, "d_in": 64, "d_out": 24, "format": "q8_0", "variant": "quads"},
    "lens": {"op": "lens", "T": 2, "D": 32, "V": 600, "variant": "rows"},
}
# File, what stands there, what is planted, the measurement that must notice.
MISTAKES = [
    ("attention_fa2.wgsl", "p.scale", "(p.scale * 1.001)", "attention"),
    ("attention_decode.wgsl", "p.scale", "(p.scale * 1.001)", "decode"),
    ("attention_probs.wgsl", "p.scale", "(p.scale * 1.001)", "heatmap"),
    ("attention_probs.wgsl", "p.scale", "(p.scale * 1.001)", "pixels"),
    ("lens_tile.wgsl", "exp(", "0.999 * exp(", "lens"),
]


@pytest.fixture(scope="module")
def device():
    return request_device()


@pytest.fixture(scope="module")
def kernels(device):
    return Kernels(device)


@pytest.mark.parametrize("name", SMALL)
def test_measure_reports_every_field(kernels, name):
    found = timing.measure(kernels, SMALL[name])
    assert found["op"] == SMALL[name]["op"] and found["kernels"] and found["adapter"] == kernels.device.words
    assert found["variant"] == SMALL[name]["variant"]
    assert found["ms"] >= found["min_ms"] > 0 and found["wait_ms"] > 0 and found["gflops"] > 0 and found["gbs"] > 0
    assert 0 <= found["max_error"] <= found["tolerance"] == 1e-5
    limits = found["ceilings"]
    assert found["ms"] == statistics.median(each["ms"] for each in found["readings"]) <= found["max_ms"]
    for share, limit in (("of_fma", "fma_gflops"), ("of_read", "read_gbs")):
        assert limits[limit] == statistics.median(each[limit] for each in found["readings"]) and found[share] > 0


@pytest.mark.parametrize(("file", "right", "wrong", "name"), MISTAKES, ids=lambda value: str(value)[:20])
def test_measure_planted_mistake_has_no_speed(device, file, right, wrong, name):
    text = (ROOT / "webgpu" / file).read_text("utf-8")
    assert right in text
    with pytest.raises(WrongResult, match="a wrong kernel has no speed"):
        timing.measure(Kernels(device, {file: text.replace(right, wrong)}), SMALL[name])


@pytest.mark.parametrize("name", ["attention", "matmul"])
def test_measure_unwritten_result_has_no_speed(device, name):
    """A kernel that returns at once: its output keeps what it began with, which is no number."""
    file = {"attention": "attention_fa2.wgsl", "matmul": "matmul.wgsl"}[name]
    head, opening, body = (ROOT / "webgpu" / file).read_text("utf-8").partition("@compute")
    at = body.index("{") + 1
    text = head + opening + body[:at] + "\n  if (p.T > 0) { return; }" + body[at:]
    with pytest.raises(WrongResult, match="error inf"):
        timing.measure(Kernels(device, {file: text}), SMALL[name])


# A question without a variant, the operation of webgpu/variants.py that it asks about, and its letters there.
CHOSEN = [
    ({"op": "decode", "T": 70, "N": 4, "K": 2, "H": 16}, "decode", {"N": 4, "K": 2, "H": 16}),
    ({"op": "matmul", "T": 1, "d_in": 64, "d_out": 24, "format": "q4_1"}, "matvec", {"D": 64, "F": 24, "fmt": 3}),
    ({"op": "heatmap", "T": 40, "N": 2, "K": 1, "H": 16}, "cells", {"H": 16}),
]


@pytest.mark.parametrize(("given", "operation", "sizes"), CHOSEN, ids=lambda value: str(value)[:20])
def test_measure_without_a_variant_takes_what_a_model_begins_with(kernels, given, operation, sizes):
    """As the page does where a CPU stands in for a GPU."""
    found = timing.measure(kernels, given)
    begins = first_choice(kernels.device.features, True)[operation]
    assert [found["variant"]] == found["tried"] == [begins] != [VARIANTS[operation][0].name]


@pytest.mark.parametrize(("given", "operation", "sizes"), CHOSEN[:2], ids=lambda value: str(value)[:20])
def test_measure_without_a_variant_takes_what_the_trial_finds_on_a_gpu(device, monkeypatch, given, operation, sizes):
    """This driver said to be a GPU; on a clock of ours each run is shorter than the one before."""
    gpu = Kernels(dataclasses.replace(device, info={**device.info, "adapter_type": "DiscreteGPU"}))
    real, seconds = timing.chosen, itertools.accumulate(1 / turn for turn in itertools.count(1))
    monkeypatch.setattr(timing, "chosen", lambda *asked: real(*asked, lambda: next(seconds)))
    found = timing.measure(gpu, given)
    assert found["tried"] == to_try(operation, device.features, False, **sizes) and len(found["tried"]) > 1
    assert found["variant"] == found["tried"][-1]


def test_measure_says_that_a_forced_variant_is_not_tried_here(kernels):
    found = timing.measure(kernels, {**SMALL["heatmap"], "variant": "plain"})
    assert found["variant"] == "plain" and "plain" not in found["tried"]


def test_measure_unknown_variant_is_refused(kernels):
    with pytest.raises(BadArguments, match="There is no variant 'fastest' of attention"):
        timing.measure(kernels, {**SMALL["attention"], "variant": "fastest"})


def test_readings_come_from_the_clock(monkeypatch):
    """Runs of 4 ms by a clock of ours: R fills a batch, ms is one run, waiting is a single one with its overhead."""
    now = [0.0]
    monkeypatch.setattr(ceilings.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing, "BATCH_MS", 40.0)

    def run(count: int) -> None:
        now[0] += 0.004 * count + 0.001

    runs = timing.runs_in_a_row(run)
    assert runs == 8  # 40 / (4 + 1)
    found = timing.reading(run, runs)
    assert found["ms"] == pytest.approx((8 * 4 + 1) / 8) and found["wait_ms"] == pytest.approx(5)
    assert timing.reading(run, 1) == {"ms": pytest.approx(5), "wait_ms": pytest.approx(5)}


def test_share_of_a_ceiling_is_by_turns(monkeypatch):
    """The machine gets twice as slow in the middle of five turns: of each reading the share is that of its own minute.

    One work of 2 Mflop takes 2 ms, 1 GFLOP/s, beside 4 GFLOP/s before and 6 after it: a fifth, slow or not.
    """
    case = SimpleNamespace(flops=2e6, bytes=4e6, words="", dispatches=[], checked="")
    readings = [
        {"ms": 2.0 * slow, "wait_ms": 2.0 * slow, "fma_gflops": 5 / slow, "read_gbs": 4 / slow}
        for slow in (1, 1, 2, 2, 1)
    ]
    readings[1]["fma_gflops"] = 50  # a spike
    found = timing.report(SMALL["attention"], case, readings, 0.0)
    assert (found["ms"], found["gflops"], found["of_fma"], found["of_read"]) == (2, 1, 0.2, 0.5)
    assert found["ceilings"] == {"fma_gflops": 5, "read_gbs": 4} and found["readings"] == readings


def test_turn_reads_the_ceilings_around_its_batch(kernels, monkeypatch):
    found = timing.Measurement(kernels, SMALL["decode"])
    order = []
    given = iter([10.0, 30.0])
    monkeypatch.setattr(found.ceilings, "fma_gflops", lambda: order.append("fma") or next(given))
    monkeypatch.setattr(found.ceilings, "read_gbs", lambda: order.append("read") or 2.0)
    monkeypatch.setattr(found, "run", lambda count: order.append(count))
    turn = found.turn()
    assert order == ["fma", found.runs, 1, "fma", "read"] and found.runs >= 3
    assert (turn["fma_gflops"], turn["read_gbs"]) == (20, 2) and found.readings == [turn]
    found.free()
