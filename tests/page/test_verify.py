"""Verify on this device: passes with the kernels as they are, and names the kernel when one is wrong.

Plan: the table and the badge after a pass; a scale planted wrong in attention_fa2.wgsl is found where it is made;
waiting for an oracle that is being installed is said; another prompt ends it.
"""

import re

import pytest

from tests.page.harness import SMALL_MS, Held, Server, Watched, until, wait_picture

pytestmark = pytest.mark.chromium
VARIANTS = {"attention_fa2", "attention_texels", "attention_plain"}


def verify(watched: Watched, server: Server):
    page = watched.open(server.url + "#p=the%20cat%20sat%20on%20the%20mat")
    page.locator("#proof-badge").click()
    page.locator("#verify-start").click()
    return page


def test_verify_passes_and_says_how_close(watched: Watched, small_server: Server):
    page = verify(watched, small_server)
    page.wait_for_selector("#proof-badge[data-verdict=passed]", timeout=SMALL_MS)
    assert re.fullmatch(r"verified on this device: largest error .*", page.locator("#proof-badge").text_content())
    kernels = set(page.locator("#verify-results tbody tr td:first-child").all_text_contents())
    assert len(kernels & VARIANTS) == 1, "the variant that ran, whichever suits device and length"
    others = {"attention_probs", "lens", "embedding", "rmsnorm", "matmul", "rope", "swiglu"}
    assert kernels - VARIANTS == others
    assert page.locator("#verify-results tr.failed").count() == 0
    report = page.evaluate("playground.parity()")
    assert report["passed"]
    assert len(report["checks"]) > 70
    watched.assert_clean(small_server.url)


def test_verify_names_the_kernel_that_is_wrong(watched: Watched, small_server: Server):
    def spoil(route):
        answer = route.fetch()
        text = answer.text()
        wrong = re.sub(r"\bp\.scale\b|\bparams\.scale\b", lambda found: f"({found[0]} * 0.7)", text)
        assert wrong != text, "the kernel no longer reads its scale by that name"
        route.fulfill(response=answer, body=wrong)

    whichever = re.compile(r".*/kernels/.*attention_(fa2|texels|plain)\.wgsl.*")
    watched.page.route(whichever, spoil)
    page = verify(watched, small_server)
    page.wait_for_selector("#proof-badge[data-verdict=failed]", timeout=SMALL_MS)
    assert page.locator("#proof-badge").text_content() == "out of tolerance"
    said = page.locator("#verify-status").text_content()
    assert re.search(r"of layer 0, written by the kernel attention_(fa2|texels|plain);", said)
    assert page.locator("#verify-results tr.failed").count() > 0


def test_verify_stops_when_the_prompt_changes(watched: Watched, small_server: Server):
    """What was compared is no proof for the prompt that is shown now, nor said to be one."""
    page = verify(watched, small_server)
    until(page, "document.querySelector('#verify-results td')")
    page.locator("#verify-dialog").get_by_text("Close").click()
    page.locator("#prompt-text").fill("a dog")
    said = "Stopped: prompt or model changed meanwhile."
    until(page, f"document.querySelector('#verify-status').textContent === '{said}'")
    assert page.locator("#verify-results td").count() == 0
    assert page.locator("#proof-badge").text_content() == "not verified here"
    wait_picture(page)
    watched.assert_clean(small_server.url)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("installing", "PyTorch is on its way. 40 %"),
        ("installing", "Downloaded (52 %)."),
        ("absent", "PyTorch is on its way."),
    ],
)
def test_verify_waits_for_the_oracle_and_says_so(watched: Watched, small_server: Server, state: str, words: str):
    detail = words.removesuffix(" 40 %")  # a sentence with a number of its own gets no second one
    answer = {"oracle": {"state": state, "detail": detail, "progress": 0.4}, "versions": {}}
    watched.page.route("**/api/status", lambda route: route.fulfill(json=answer))
    page = verify(watched, small_server)
    until(page, f"document.querySelector('#verify-status').textContent === '{words}'")
    if state == "absent":
        assert page.locator("#proof-badge").text_content() == "not verified here"
        return
    page.unroute("**/api/status")
    page.wait_for_selector("#proof-badge[data-verdict=passed]", timeout=SMALL_MS)


def test_page_says_when_pytorch_has_come(watched: Watched, small_server: Server):
    """Served before PyTorch was there: it is installed, then ready; the line leads to Verify and goes."""
    told = iter(["absent", "installing"])
    page = watched.page

    def earlier(route):
        answer = route.fetch()
        text = answer.text().replace('"ready": true', '"ready": false')
        assert '"ready": false' in text
        route.fulfill(response=answer, body=text)

    def status(route):
        route.fulfill(json={"oracle": {"state": next(told, "ready"), "detail": "", "progress": None}, "versions": {}})

    page.route(small_server.url, earlier)
    page.route("**/api/status", status)
    watched.open(small_server.url)
    assert page.locator("#notice-oracle").count() == 0
    page.wait_for_selector("#notice-oracle:has-text('PyTorch has arrived')", timeout=SMALL_MS)
    page.locator("#notice-oracle").get_by_text("Verify").click()
    assert page.locator("#verify-dialog").is_visible() and page.locator("#notice-oracle").count() == 0
    watched.assert_clean(small_server.url)


# The run says a quarter of itself and then stands until finish().
STANDS = """async () => {
  const { store } = await own("/app/state.js");
  const { engine } = store.state;
  const run = engine.run;
  const gate = new Promise((resolve) => (globalThis.finish = resolve));
  engine.run = async (ids, options) => {
    engine.run = run;
    options.onProgress(0.25);
    await gate;
    return run(ids, options);
  };
}"""


def test_verify_counts_what_is_done_and_the_seconds(watched: Watched, small_server: Server):
    page = watched.open(small_server.url + "#p=the%20cat%20sat%20on%20the%20mat")
    page.evaluate(STANDS)
    comparing = Held(page, "**/api/oracle/trace")
    page.locator("#proof-badge").focus()
    page.keyboard.press("Enter")
    page.locator("#verify-start").focus()
    page.keyboard.press("Enter")
    number = "document.querySelector('#verify-dialog .step-number').textContent"
    until(page, f"/^25 % of this step, [1-9] s in all$/.test({number})")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Stop"
    page.evaluate("finish()")
    until(page, f"/^[0-9]+ s$/.test({number})")  # asked for the embedding: nobody can tell how much of that is done
    assert page.locator("#verify-status").text_content().startswith("Waiting for PyTorch")
    comparing.release()
    page.wait_for_selector("#proof-badge[data-verdict=passed]", timeout=SMALL_MS)
    assert page.locator("#verify-dialog .progress-line").is_hidden()
    assert page.evaluate(focused) == "Verify on this device"
    watched.assert_clean(small_server.url)
