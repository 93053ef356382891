"""The page as it runs where a real GPU is: its first choice of kernels, a trial after the picture, what it remembers.

Plan: the driver here is said to be a GPU; the kernels for one draw the first picture before anything is tried and pass
Verify; the trial ends, is remembered, and what it chose passes Verify too.
"""

import re

import pytest

from tests.page.harness import SMALL_MS, Server, Watched, until, wait_lens

pytestmark = pytest.mark.chromium

FOR_GPUS = {"matmul_few_groups", "matvec_groups", "rmsnorm_groups", "lens_groups"}


COMPILED = """globalThis.compiled = [];
const make = GPUDevice.prototype.createComputePipelineAsync;
GPUDevice.prototype.createComputePipelineAsync = function (what) {
  compiled.push(what.label);
  return make.call(this, what);
};"""


@pytest.mark.timeout(240)
def test_gpu_draws_first_tries_later_and_verifies(watched: Watched, small_server: Server):
    def as_gpu(route):
        answer = route.fetch()
        text = answer.text()
        assert text.count("software: true }") == 1, "describe no longer says so in these words"
        route.fulfill(response=answer, body=text.replace("software: true }", "software: false }"))

    watched.page.route(re.compile(r".*/gpu/device\.js.*"), as_gpu)
    watched.page.add_init_script(COMPILED)
    page = watched.open(small_server.url + "#p=the%20cat%20sat%20on%20the%20mat")
    texts = [address for address in watched.requests if "/kernels/" in address]
    assert not any("attention_tile" in address for address in texts), "fetched before anything is tried"
    remembered = "Object.keys(localStorage).filter((key) => key.startsWith('variant/')).length"
    assert page.evaluate(remembered) == 0, "a trial ended before the first picture"
    first = set(page.evaluate("compiled"))
    assert not first & {"matmul", "matvec", "rmsnorm", "lens_tile", "attention_tile"}
    wait_lens(page)
    assert set(page.evaluate("compiled")) >= FOR_GPUS
    assert page.evaluate("playground.parity()")["passed"]
    until(page, f"{remembered} === 4", 2 * SMALL_MS)
    assert set(page.evaluate("compiled")) >= {"matmul", "matvec", "attention_tile"}, "what was tried"
    report = page.evaluate("playground.parity()")
    assert report["passed"] and len(report["checks"]) > 70
    texts = [address for address in watched.requests if "/kernels/" in address]
    assert len(texts) == len(set(texts)) and all("/kernels/v-" in address for address in texts)
    watched.assert_clean(small_server.url)
