"""Where WebGPU is missing the page says why and the server computes the same views.

Plan: absent (no flag), insecure origin (a host name over plain http), device lost once (picture stays, one button
brings the model back) and twice (server); the fallback's numbers are the oracle's by construction, its pictures are
checked against the GPU's.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright

from tests.page.conftest import WIDE
from tests.page.harness import (
    SWIFTSHADER,
    Server,
    Watched,
    launch,
    running_server,
    until,
    wait_lens,
    wait_picture,
    watch,
)

pytestmark = pytest.mark.chromium

TEXT = "#p=the%20cat%20sat%20on%20the%20mat&l=1&h=2"
READ = """async () => {
  const trace = await playground.trace('the cat sat on the mat');
  const lens = await trace.lens();
  return {
    pattern: Array.from(await trace.pattern(1, 2)), ids: Array.from(lens.ids),
    logits: Array.from(await trace.logits(trace.shape.T - 1)),
    shown: [...document.querySelectorAll('#next-bars .bar-name, .lens-cell')].map((e) => e.textContent),
    rank: document.querySelector('#rank-story').textContent,
    readout: document.querySelector('#cell-readout').textContent,
  };
}"""


@pytest.fixture(scope="module")
def plain_browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """Chromium without WebGPU; lan.test is this machine under a name that is not localhost."""
    browser = launch(playwright, chromium, "--host-resolver-rules=MAP lan.test 127.0.0.1", "--disable-features=WebGPU")
    yield browser
    browser.close()


def read(page: Page) -> dict:
    wait_lens(page)
    page.wait_for_selector("#rank-story")
    return page.evaluate(READ)


def test_server_shows_the_same_views(watched: Watched, plain_browser: Browser, small_server: Server):
    with_gpu = read(watched.open(small_server.url + TEXT))
    context = plain_browser.new_context(viewport=WIDE)
    other = watch(context)
    page = other.open(small_server.url + TEXT)
    said = page.locator("#notice-gpu").text_content()
    assert said.startswith("No WebGPU here, so the server computes the same views.")
    without = read(page)
    for name in ("shown", "rank", "readout", "ids"):
        assert without[name] == with_gpu[name], name
    for name in ("pattern", "logits"):
        assert max(abs(a - b) for a, b in zip(without[name], with_gpu[name], strict=True)) < 1e-3, name
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    page.locator("#proof-badge").click()
    page.locator("#verify-start").click()
    assert "no kernels to verify" in page.locator("#verify-status").text_content()
    other.assert_clean(small_server.url)
    context.close()


def test_insecure_origin_says_so(plain_browser: Browser, small_model):
    with running_server(small_model, PLAYGROUND_ALLOWED_HOSTS="lan.test") as server:
        context = plain_browser.new_context(viewport=WIDE)
        watched = watch(context, allowed=("Cross-Origin-Opener-Policy",))
        page = watched.open(f"http://lan.test:{server.port}/")
        assert "only on https or localhost" in page.locator("#notice-gpu").text_content()
        wait_lens(page)
        watched.assert_clean(f"http://lan.test:{server.port}/")
        context.close()


def test_no_adapter_says_so(playwright: Playwright, chromium: str, small_server: Server):
    browser = launch(playwright, chromium, *SWIFTSHADER)
    context = browser.new_context(viewport=WIDE)
    watched = watch(context)
    watched.page.add_init_script("navigator.gpu.requestAdapter = async () => null")
    page = watched.open(small_server.url)
    assert "found no graphics adapter" in page.locator("#notice-gpu").text_content()
    browser.close()


def test_lost_device_keeps_the_picture_and_twice_moves_to_the_server(watched: Watched, small_server: Server):
    watched.page.add_init_script("""
      const request = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...given) {
        const device = await request.apply(this, given);
        let lose;
        Object.defineProperty(device, 'lost', { value: new Promise((resolve) => (lose = resolve)) });
        window.loseDevice = () => lose({ reason: 'unknown', message: 'lost by the test' });
        return device;
      };
    """)
    page = watched.open(small_server.url)
    page.evaluate("playground.trace('a').then((trace) => { window.kept = trace; })")
    page.evaluate("loseDevice()")
    page.wait_for_selector("#notice-gpu:has-text('was lost')")
    assert page.locator("#next-bars li").count() == 10
    page.get_by_role("button", name="Load the model again").click()
    until(page, "!document.querySelector('#notice-gpu')")
    wait_picture(page)
    said = page.evaluate("kept.lens().catch((error) => error.message)")
    assert said.startswith("This trace's model was replaced;")
    page.evaluate("loseDevice()")
    page.wait_for_selector("#notice-gpu:has-text('lost twice')")
    wait_picture(page)
    assert page.evaluate("playground.adapter.kind") == "server"
