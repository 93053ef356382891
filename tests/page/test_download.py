"""Weights arrive in pieces, survive a cancel and a reload, and are refused when their hash is wrong.

Control: an undisturbed second visit takes the weights from the browser's own cache, without asking the server.
"""

import pytest

from tests.page.harness import Held, Server, Watched, wait_picture

pytestmark = pytest.mark.chromium

WEIGHTS = "**/model.safetensors"


def test_second_visit_downloads_nothing(watched: Watched, small_server: Server):
    page = watched.open(small_server.url)
    watched.requests.clear()
    page.reload()
    wait_picture(page)
    assert not [address for address in watched.requests if "model.safetensors" in address]
    watched.assert_clean(small_server.url)


def test_cancelled_download_can_be_resumed(watched: Watched, small_server: Server):
    weights = Held(watched.page, WEIGHTS)
    page = watched.open(small_server.url, ready=False)
    page.wait_for_selector("#cancel:visible")
    page.locator("#cancel").click()
    page.wait_for_selector("#notice-load:has-text('Loading stopped')")
    weights.release()  # what was asked before the cancel has gone with it; the next request passes
    page.get_by_role("button", name="Resume").click()
    wait_picture(page)
    assert page.locator("#notice-load").count() == 0


def test_damaged_weights_are_refused(watched: Watched, small_server: Server):
    def damage(route):
        answer = route.fetch()
        body = bytearray(answer.body())
        body[-1] ^= 1
        route.fulfill(response=answer, body=bytes(body))

    watched.page.route(WEIGHTS, damage)
    page = watched.open(small_server.url, ready=False)
    page.wait_for_selector("#notice-load:has-text('does not have the announced SHA-256')")
    page.unroute(WEIGHTS)
    page.get_by_role("button", name="Try again").click()
    wait_picture(page)


def test_menu_names_size_heads_and_hash(watched: Watched, small_server: Server):
    page = watched.open(small_server.url)
    page.locator("#model-button").click()
    page.wait_for_selector("#model-panel li[aria-current]")
    words = page.locator("#model-panel li[aria-current]").text_content()
    for part in ("4 layers × 4 heads (2 K/V)", "MB", "sha256", "loaded, hash verified"):
        assert part in words
    page.keyboard.press("Escape")
    assert page.locator("#model-panel").is_hidden()


def test_without_cache_the_download_still_works(watched: Watched, small_server: Server):
    full = "Cache.prototype.put = async () => { throw new DOMException('full', 'QuotaExceededError') }"
    watched.page.add_init_script(full)
    page = watched.open(small_server.url)
    assert page.locator("#next-bars li").count() == 10
    watched.assert_clean(small_server.url)


def test_worker_that_brings_weights_ends_with_the_load(watched: Watched, small_server: Server):
    seen = []
    watched.page.on("worker", lambda worker: seen.append(worker.url))
    page = watched.open(small_server.url)
    assert [address for address in seen if address.endswith("/weights_worker.js")]
    assert not page.workers
    watched.assert_clean(small_server.url)
