"""What the page says when the server is gone, a file of the model is damaged, or a link names a model that is not here:
one sentence that says what to do; and a model that ends its text ends it without a word of its own.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.page.harness import ROOT, Server, Watched, running_server, until, wait_picture, watch

pytestmark = pytest.mark.chromium

GONE = "The playground's server does not answer: start it, then try again."
LOST = ("Failed to load resource", "net::ERR_FAILED")


@pytest.mark.parametrize("pattern", ["**/tokenizer.json", "**/config.json", "**/weights_worker.js*"])
def test_server_gone_while_a_model_loads(browser, small_server: Server, pattern: str):
    watched = watch(browser.new_context(), LOST)
    watched.page.route(pattern, lambda route: route.abort())
    page = watched.open(small_server.url + "#p=ab", ready=False)
    page.wait_for_selector("#notice-load")
    assert page.locator("#notice-load").text_content().startswith(f"small could not be loaded: {GONE}")
    until(page, "!document.querySelector('.prompt-meta').textContent.includes('reading the tokenizer')")
    assert "Nothing to look at yet" not in page.locator("#prompt").text_content()
    watched.assert_clean(small_server.url)
    watched.context.close()


def test_damaged_tokenizer_is_named(watched: Watched, small_server: Server):
    watched.page.route("**/tokenizer.json", lambda route: route.fulfill(body='{"x"', content_type="application/json"))
    page = watched.open(small_server.url, ready=False)
    page.wait_for_selector(
        "#notice-load:has-text('tokenizer.json is not JSON, so it is damaged: fetch the model again')"
    )


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("nosuch", "The model nosuch is not here. Showing another one."),
        (
            "OWNER--NAME",
            "The model OWNER--NAME is not here; `playground pull OWNER/NAME` may bring it. Showing another one.",
        ),
    ],
)
def test_link_to_a_model_that_is_not_here(watched: Watched, small_server: Server, id: str, said: str):
    page = watched.open(f"{small_server.url}#m={id}")
    assert said in page.locator("#notice-link-model").text_content()


GREEDY = """async ([text, count]) => {
  const best = (logits) => logits.indexOf(Math.max(...logits));
  let trace = await playground.trace(text);
  const made = [];
  while (made.length < count) {
    made.push(best(await trace.logits(trace.ids.length - 1)));
    trace = await playground.trace({ ids: [...trace.ids, made.at(-1)] });
  }
  return made;
}"""


def test_stop_token_ends_the_text_and_is_none_of_it(watched: Watched, small_server: Server):
    """A token that the model is about to write is declared its stop token: only what comes before it is written."""
    page = watched.open(small_server.url + "#gt=0&gn=6&p=the%20on")
    made = page.evaluate(GREEDY, ["the on", 6])
    stop = next((i for i in range(1, 6) if made[i] not in made[:i]), 0)

    def declare(route):
        route.fulfill(json=route.fetch().json() | {"eos_token_id": made[stop]})

    watched.page.route("**/config.json", declare)
    page.reload()
    wait_picture(page)
    page.locator("#generate").click()
    until(page, "document.querySelector('#generate-note').textContent.endsWith('; there the model ended its text')")
    tokens = "token" if stop == 1 else "tokens"
    assert page.locator("#generate-note").text_content().startswith(f"{stop} {tokens} in")


def test_model_of_ids_opens_without_a_complaint(browser, tmp_path: Path):
    """The opening of a measured model is about words; without its tokenizer nothing of it is left."""
    folder = shutil.copytree(ROOT / "weights" / "tiny", tmp_path / "ids")
    (folder / "tokenizer.json").unlink()
    with running_server(folder) as server:
        watched = watch(browser.new_context())
        page = watched.open(server.url)
        wait_picture(page)
        assert page.locator("#notice-link").count() == 0
        until(page, "location.hash.includes('p=1')")
        assert not re.search(r"[&#][ltkh]=", page.evaluate("location.hash"))
        watched.context.close()
