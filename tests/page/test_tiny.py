"""The page opens on the embedded model, whose prompts each claim something about a head: the claim holds in the page.

Plan: the bare address shows the default prompt with its head and query; each offered prompt, chosen with the keyboard,
shows the head it names, whose weight and next token are the claimed ones; the address restores it; a prompt typed over
it lets its selection go; another model brings its own opening; earlier links that name a model still work.
"""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, open_link, until, wait_lens, wait_picture
from tests.page.readme_picture import check_readme_picture
from tests.tolerances import OFFERED_WEIGHT
from weights.places import OWN_MODELS

pytestmark = pytest.mark.chromium

PROMPTS = json.loads((OWN_MODELS / "tiny" / "prompts.json").read_text("utf-8"))["prompts"]
CARD = json.loads((OWN_MODELS / "tiny" / "card.json").read_text("utf-8"))
GENERIC = "When Mary and John went to the store, John gave a drink to"
CHOSEN = ".chip[aria-selected=true]"
VIEW = """((find) => ({
  prompt: find('#prompt-text').value, head: find('#head').dataset.head, title: find('#row-title').textContent,
  token: find('.chip[aria-selected=true]').dataset.token, readout: find('#cell-readout').textContent,
  says: find('#example-says').textContent, next: find('#next-bars .bar-name').textContent,
}))((selector) => document.querySelector(selector))"""


def shows(page: Page, prompt: dict) -> None:
    """Wait until the page shows what the prompt names: head, query row, and the line that says why."""
    head = f"L{prompt['layer']} H{prompt['head']}"
    until(
        page,
        f"document.querySelector('#prompt-text').value === {json.dumps(prompt['text'])}"
        f" && document.querySelector('#head').dataset.head === '{head}'"
        f" && document.querySelector('#row-title').textContent.startsWith('Query {prompt['query']} ')",
    )
    wait_picture(page)
    assert page.locator("#example-says").is_visible()
    assert page.locator("#example-says").text_content() == prompt["says"]
    assert page.locator(".example[aria-pressed=true]").text_content() == prompt["title"]


def claimed_weight(page: Page, prompt: dict) -> float:
    """What the head puts on the claimed keys, from the page's own pattern."""
    return page.evaluate(
        """async ({text, layer, head, query, keys}) => {
          const trace = await playground.trace(text);
          const pattern = await trace.pattern(layer, head);
          return keys.reduce((sum, key) => sum + pattern[query * trace.shape.T + key], 0);
        }""",
        prompt,
    )


def test_bare_address_opens_on_the_default_prompt_and_its_head(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    shows(page, PROMPTS[0])
    assert page.locator("#prompt-text").input_value() == "the cat sat on the mat because it was tired."
    assert page.locator("#cell-readout").text_content().startswith("query 7 ·it, key 1 ·cat: weight 0.99")
    page.locator("#head-1-1").click()
    until(page, "location.hash.includes('l=1')")
    page.locator("#head-2-0").click()
    until(page, "location.hash === ''")  # back at the opening, the address says nothing again
    watched.assert_clean(tiny_server.url)


def test_each_offered_prompt_keeps_its_claim(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    group = page.get_by_role("group", name="Example prompts")
    assert group.get_by_role("button").all_text_contents() == [prompt["title"] for prompt in PROMPTS] + ["Clear"]
    for prompt in reversed(PROMPTS):
        group.get_by_role("button", name=prompt["title"]).focus()
        page.keyboard.press("Enter")
        shows(page, prompt)
        assert abs(claimed_weight(page, prompt) - prompt["weight"]) < OFFERED_WEIGHT, prompt["id"]
        bars = page.locator("#row-bars .bar").all()[: len(prompt["keys"])]
        keys = sorted(int(bar.locator(".bar-name").get_attribute("title").removeprefix("key ")) for bar in bars)
        assert keys == prompt["keys"]
        assert page.locator("#next-bars .bar-name").first.text_content() == prompt["next"].replace(" ", "·")
    watched.assert_clean(tiny_server.url)


def test_an_example_left_for_another_head_says_so_and_leads_back(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    shows(page, PROMPTS[0])
    assert page.locator("#example-back").count() == 0
    page.locator("#head-1-1").click()
    page.wait_for_selector(".example-says.dim #example-back")
    page.locator("#example-back").focus()
    page.keyboard.press("Enter")
    until(page, "document.activeElement.matches('.example[aria-pressed=true]')")
    shows(page, PROMPTS[0])
    watched.assert_clean(tiny_server.url)


def test_no_false_weight_is_said_while_a_longer_prompt_is_computed(watched: Watched, tiny_server: Server):
    """The keys of the next prompt may lie beyond the picture that is still there: it says nothing of them."""
    page = watched.open(tiny_server.url + "#p=one")
    page.evaluate("""() => {
      window.said = [];
      const readout = document.querySelector('#cell-readout');
      const changes = {childList: true, characterData: true, subtree: true};
      new MutationObserver(() => window.said.push(readout.textContent)).observe(readout, changes);
    }""")
    for prompt in (PROMPTS[0], PROMPTS[1]):
        open_link(page, "#p=one")
        wait_picture(page)
        page.get_by_role("button", name=prompt["title"]).click()
        shows(page, prompt)
    said = page.evaluate("window.said")
    assert [text for text in said if "∞" in text or "not a number" in text] == []
    assert any(text.startswith("query 7 ·it, key 1 ·cat: weight 0.99") for text in said)


def test_lens_names_blanks_and_says_what_the_first_row_is(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url + "#p=" + quote("a\n\n·  b"))
    wait_lens(page)
    tokens = page.evaluate("playground.trace('a\\n\\n·  b').then((trace) => trace.tokens.map(({text}) => text))")
    assert {"\n", "\ufffd", " "} <= set(tokens), tokens  # a middle dot is no space, and is not shown as one
    names = page.locator("#lens .lens-name").all_text_contents()
    first = [page.locator(f"#lens-0-{i}").text_content() for i in range(len(tokens))]
    for text, name, echo in zip(tokens, names, first, strict=True):
        assert name == {"\n": "↵ newline", " ": "· space", " b": "·b", "a": "a"}.get(text, name)
        assert echo == name, "the embedding row of tied weights echoes its token"
    legend = page.locator("#lens-legend").text_content()
    assert "a token may come out as itself" in legend  # true of a model that echoes only some, too
    assert legend.endswith(f" Tiny: {CARD['lens']}.") and "earlier layers" in CARD["lens"]
    assert ": · space " in page.locator(f"#lens-0-{tokens.index(' ')}").get_attribute("aria-label")


def test_selected_token_of_a_long_example_is_in_view_on_a_phone(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name=PROMPTS[3]["title"]).click()
    shows(page, PROMPTS[3])
    assert page.evaluate("""() => {
      const box = (selector) => document.querySelector(selector).getBoundingClientRect();
      const [strip, chip] = [box('#chips'), box('.chip[aria-selected=true]')];
      return chip.top >= strip.top && chip.bottom <= strip.bottom && document.querySelector('#chips').scrollTop > 0;
    }""")
    assert page.evaluate("scrollY") == 0
    box = "(({scrollHeight, clientHeight}) => scrollHeight <= clientHeight)(document.querySelector('#prompt-text'))"
    assert page.evaluate(box)


@pytest.mark.parametrize("prompt", [PROMPTS[1], PROMPTS[3]], ids=lambda prompt: prompt["id"])
def test_link_of_an_offered_prompt_restores_it(watched: Watched, tiny_server: Server, prompt: dict):
    page = watched.open(tiny_server.url)
    page.get_by_role("button", name=prompt["title"]).click()
    shows(page, prompt)
    until(page, f"location.hash.includes('t={prompt['query']}')")
    before = page.evaluate(VIEW)
    second = watched.context.new_page()
    second.goto(page.url)
    shows(second, prompt)
    until(second, f"JSON.stringify({VIEW}) === {json.dumps(page.evaluate(f'JSON.stringify({VIEW})'))}")
    assert second.evaluate(VIEW) == before


def test_prompt_typed_over_an_example_lets_its_selection_go(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    page.locator("#prompt-text").fill("Once upon a time there was a little dog")
    until(page, "document.querySelector('#chips').dataset.count === '9'")
    wait_picture(page)
    assert page.locator(CHOSEN).get_attribute("data-token") == "8"
    assert "names a head" in page.locator("#example-says").text_content()
    assert page.locator(".example[aria-pressed=true]").count() == 0


def test_another_model_brings_its_own_opening(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    choose(page, "small")
    assert page.locator("#prompt-text").input_value() == GENERIC
    assert page.locator("#head").get_attribute("data-head") == "L2 H0" and page.locator("#example-says").is_hidden()
    assert page.locator(CHOSEN).get_attribute("data-token") == str(page.locator(".chip").count() - 1)
    until(page, "location.hash === '#m=small'")
    choose(page, "Tiny")
    shows(page, PROMPTS[0])
    page.locator("#prompt-text").fill("my own words")
    until(page, "document.querySelector('#chips').dataset.count < 8")
    wait_picture(page)
    choose(page, "small")
    assert page.locator("#prompt-text").input_value() == "my own words"
    watched.assert_clean(tiny_server.url)


def choose(page: Page, name: str) -> None:
    """Choose a model in the menu."""
    page.locator("#model-button").click()
    page.get_by_role("button", name=f"Use: {name}").click()
    until(page, f"document.querySelector('#model-button').textContent.startsWith('{name}')")
    wait_picture(page)


OLD_LINKS = [
    ("#m=small&l=3&h=1&p=the%20cat", "the cat", "L3 H1"),
    ("#m=small&l=3&h=1", GENERIC, "L3 H1"),  # the prompt was left out where it was the example
    ("#m=tiny&l=1&h=7&t=2&p=a%20b%20c", "a b c", "L1 H7"),
    ("#l=1&h=7", PROMPTS[0]["text"], "L1 H7"),
]


@pytest.mark.parametrize(("link", "prompt", "head"), OLD_LINKS)
def test_earlier_links_still_work(watched: Watched, tiny_server: Server, link: str, prompt: str, head: str):
    page = watched.open(tiny_server.url + link)
    assert page.locator("#prompt-text").input_value() == prompt
    assert page.locator("#head").get_attribute("data-head") == head
    watched.assert_clean(tiny_server.url)


def test_page_is_told_of_all_its_modules_at_once(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    told = page.evaluate("[...document.querySelectorAll('link[rel=modulepreload]')].map((link) => link.href)")
    loaded = {url for url in watched.requests if url.endswith(("js", ".mjs")) and not url.endswith("/theme.js")}
    assert set(told) <= loaded and len(told) > 60
    assert [url for url in loaded - set(told) if not url.endswith("_worker.js")] == []


def test_readme_picture_shows_the_opening(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    wait_lens(page)
    page.wait_for_selector("#rank-story")
    check_readme_picture(page)


def test_a_text_that_ends_for_the_model_is_said_to(watched: Watched, tiny_server: Server):
    """The opening ends with a full stop, after which the model writes nothing: no count of tokens explains that.

    From the word that the opening selects it writes on.
    """
    page = watched.open(tiny_server.url)
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    assert page.locator("#generated").text_content().startswith("the cat sat on the mat because it meowed")
    page.locator(".chip").last.click()
    page.locator("#generate").click()
    until(page, "document.querySelector('#generate-note').textContent.startsWith('For the model the text ends here')")
    assert page.locator("#take").is_hidden() and page.locator("#generated").is_hidden()
