"""playground.bench in the page: figures for a right kernel, one sentence for a wrong one and for a wrong question."""

import statistics

import pytest

from tests.conftest import ROOT
from tests.page.conftest import Server, Watched

pytestmark = pytest.mark.chromium
ATTENTION = {"op": "attention", "T": 40, "N": 4, "K": 2, "H": 16}
SMALL = [
    ATTENTION,
    {"op": "decode", "T": 70, "N": 4, "K": 2, "H": 16},
    {"op": "heatmap", "T": 40, "N": 2, "K": 1, "H": 16, "window": 30, "pixels": 7},
    {"op": "matmul", "T": 9, "d_in": 64, "d_out": 24, "format": "q4_1"},
    {"op": "matmul", "T": 1, "d_in": 64, "d_out": 24, "format": "q8_0"},
    {"op": "lens", "T": 2, "D": 32, "V": 600},
]
ASK = "async (given) => { try { return await playground.bench(given); } catch (error) { return error.message; } }"


@pytest.mark.parametrize("given", SMALL, ids=str)
def test_bench_reports_every_field(shared: Watched, given: dict):
    found = shared.page.evaluate(ASK, given)
    assert not isinstance(found, str), found
    assert found["op"] == given["op"] and found["kernels"] and "SwiftShader" in found["adapter"]
    assert found["tried"] == [found["variant"]], "a CPU stands in for a GPU, so the page tries nothing"
    assert found["ms"] >= found["min_ms"] > 0 and found["wait_ms"] > 0 and found["gflops"] > 0 and found["gbs"] > 0
    assert 0 <= found["max_error"] <= found["tolerance"] == 1e-5
    assert found["ms"] == statistics.median(each["ms"] for each in found["readings"])
    for limit in ("fma_gflops", "read_gbs"):
        assert found["ceilings"][limit] == statistics.median(each[limit] for each in found["readings"])
    every = [found["gflops"] * found["ms"] / each["ms"] / each["fma_gflops"] for each in found["readings"]]
    assert found["of_fma"] == pytest.approx(statistics.median(every)) and found["of_read"] > 0
    assert found["runs"] >= (3 if given["op"] == "decode" else 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"op": "sums"}, 'op is "sums"; allowed are attention, decode, heatmap, matmul, lens, model.'),
        ({"T": 2.5}, "T is 2.5; attention takes whole numbers from 2 to 8192."),
        ({**ATTENTION, "variant": "fastest"}, "There is no variant 'fastest' of attention; there are "),
        (7, "bench takes an object such as"),
    ],
    ids=str,
)
def test_bench_refuses_with_one_sentence(shared: Watched, given: object, said: str):
    found = shared.page.evaluate(ASK, given)
    assert isinstance(found, str) and found.startswith(said) and "\n" not in found


def test_bench_has_a_device_of_its_own_and_keeps_it(watched: Watched, small_server: Server):
    """What a device refuses is told to all who wait for it: a prompt must not fail for a measurement."""
    page = watched.open(small_server.url)
    opened = """async (given) => {
      const { requestDevice } = GPUAdapter.prototype;
      const devices = [];
      GPUAdapter.prototype.requestDevice = async function (...all) {
        devices.push(await requestDevice.apply(this, all));
        return devices.at(-1);
      };
      const { createBuffer } = GPUDevice.prototype;
      const made = new Set();
      GPUDevice.prototype.createBuffer = function (...all) {
        made.add(this);
        return createBuffer.apply(this, all);
      };
      await playground.bench(given);
      await playground.bench(given);
      return [devices.length, made.has(devices[0])];
    }"""
    assert page.evaluate(opened, {**ATTENTION, "variant": "plain"}) == [1, True]


def test_bench_planted_mistake_has_no_speed(watched: Watched, small_server: Server):
    text = (ROOT / "webgpu" / "attention_fa2.wgsl").read_text("utf-8")
    assert "p.scale" in text
    wrong = text.replace("p.scale", "(p.scale * 1.001)")
    watched.page.route("**/attention_fa2.wgsl", lambda route: route.fulfill(body=wrong, content_type="text/plain"))
    watched.open(small_server.url)
    found = watched.page.evaluate(ASK, {**ATTENTION, "variant": "fa2"})
    assert isinstance(found, str) and found.endswith("a wrong kernel has no speed."), found


def test_bench_whole_model_agrees_with_the_oracle(shared: Watched):
    found = shared.page.evaluate(ASK, {"op": "model", "T": 9, "tokens": 3})
    assert not isinstance(found, str), found
    assert len(found["generated"]) == 4 and found["prefill_ms"] > 0 and found["decode_tokens_s"] > 0
    assert 0 <= found["max_error"] <= found["tolerance"] == 2e-3 and found["ceilings"]["fma_gflops"] > 0
