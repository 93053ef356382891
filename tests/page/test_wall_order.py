"""The wall names its heads, and is ordered and filtered by score, with the keyboard alone.

Plan: labels and marks are those of heads.json; an order by a measured score lists heads from the largest on, and arrow
keys follow it; filters leave out what they say; an order by a score on the prompt is the oracle's; a link restores it.
"""

import json

import pytest
import torch
from playwright.sync_api import Page

from python_ref import heads
from tests.page.harness import Server, Watched, open_link, until, wait_picture
from tests.page.small import SIZES
from tests.page.test_prompt_to_prediction import oracle
from weights.places import OWN_MODELS
from weights.tokens import load_tokenizer

pytestmark = pytest.mark.chromium

REPORT = json.loads((OWN_MODELS / "tiny" / "heads.json").read_text("utf-8"))
HEADS, MEASURED_ON = REPORT["heads"], REPORT["measured_on"]
CELLS = "[...document.querySelectorAll('#wall [role=gridcell]')]"


def place(head: dict) -> str:
    return f"head-{head['layer']}-{head['head']}"


def choose(page: Page, menu: str, words: str) -> None:
    """Choose an option of a menu by typing its first letters, as a keyboard user does."""
    page.locator(menu).focus()
    page.keyboard.type(words)
    until(page, f"document.querySelector('{menu}').selectedOptions[0].textContent.startsWith('{words}')")


def ids(page: Page) -> list[str]:
    return page.evaluate(CELLS + ".map((cell) => cell.id)")


def test_heads_are_labelled_and_known_ones_marked(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    page.locator("#head-1-7").focus()
    assert page.locator("#wall-readout").text_content() == "L1 H7, K/V group 1, previous-token 0.86"
    assert page.locator("#head-1-7").get_attribute("aria-label") == "L1 H7, K/V group 1, previous-token 0.86"
    marked = page.evaluate(CELLS + ".filter((cell) => cell.matches('.known')).map((cell) => cell.id)")
    assert marked == [place(head) for head in HEADS if head["called"]]
    content = "getComputedStyle(document.querySelector('#head-1-7'), '::after').content"
    assert page.evaluate(content) == '""'
    page.set_viewport_size({"width": 390, "height": 844})
    title = page.locator("#known-title")
    assert title.is_visible() and title.text_content() == "Measured beforehand"
    assert title.evaluate("({scrollWidth, clientWidth}) => scrollWidth <= clientWidth"), "no word of it is cut off"
    best = page.get_by_role("button", name="L2 H3 table look-up")
    assert MEASURED_ON["look_up"] in best.get_attribute("aria-description")
    best.press("Enter")
    page.wait_for_selector("#head[data-head='L2 H3']")
    page.get_by_role("button", name="How measured").press("Enter")
    page.wait_for_selector("#report-dialog[open]")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "How measured"
    watched.assert_clean(tiny_server.url)


def test_order_by_a_measured_score_and_walk_it_with_the_keyboard(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    choose(page, "#wall-order", "induction")
    until(page, "document.querySelector('#wall-order').value === 'measured.induction'")
    until(page, CELLS + "[0].id === 'head-2-0'")
    values = [{place(head): head for head in HEADS}[id]["induction"] for id in ids(page)]
    assert len(values) == len(HEADS) and values == sorted(values, reverse=True)
    captions = page.locator(".wall-captions span").all_text_contents()
    assert captions[:2] == ["L2 H00.96", "L2 H30.94"]
    page.locator("#head-2-0").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "head-2-3"
    on = f"measured on {MEASURED_ON['induction']}"
    assert page.locator("#wall-readout").text_content().endswith(f"; induction 0.94, {on}")
    assert page.locator("#wall-order-note").text_content().endswith(f"; {on}")
    shown = page.locator("#wall").text_content()
    assert "random tokens" in MEASURED_ON["induction"] and "held-out" not in shown
    page.keyboard.press("ArrowDown")
    columns = page.evaluate("document.querySelector('#wall [role=row]').children.length")
    assert page.evaluate("document.activeElement.id") == ids(page)[1 + columns]
    page.keyboard.press("Enter")
    opened = ids(page)[1 + columns].split("-")
    page.wait_for_selector(f"#head[data-head='L{opened[1]} H{opened[2]}']")
    until(page, "location.hash.includes('o=measured.induction')")
    second = watched.context.new_page()
    second.goto(page.url)
    wait_picture(second)
    assert ids(second) == ids(page)
    watched.assert_clean(tiny_server.url)


def test_filters_leave_out_what_they_say(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    choose(page, "#wall-only", "Known")
    known = [place(head) for head in HEADS if head["called"]]
    until(page, f"{CELLS}.length === {len(known)}")
    assert ids(page) == known
    assert page.locator("#wall-order-note").text_content().startswith(f"{len(known)} heads of {len(HEADS)}.")
    choose(page, "#wall-order", "pronoun")
    choose(page, "#wall-only", "At least 0.9")
    until(page, CELLS + ".length === 1")
    assert ids(page) == ["head-2-0"]
    page.locator("#head-2-0").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.id") == "head-2-0"
    choose(page, "#wall-order", "By layer")
    until(page, f"{CELLS}.length === {len(HEADS)}")
    assert page.locator("#wall-only").input_value() == ""
    watched.assert_clean(tiny_server.url)


def test_order_by_a_score_on_the_prompt_is_the_oracles(page: Page, small_server: Server, small_model):
    text = "the cat the cat"
    open_link(page, "#p=the%20cat%20the%20cat&o=prompt.previous_token")
    wait_picture(page)
    until(page, "document.querySelectorAll('.wall-captions span').length === 16")
    tokens = load_tokenizer(small_model).encode(text)
    pattern = torch.from_numpy(oracle(small_server, tokens, include=["pattern"])["pattern"])
    wanted = heads.previous_token(pattern).flatten()
    order = wanted.argsort(descending=True, stable=True).tolist()
    N = SIZES["N"]
    assert ids(page) == [f"head-{i // N}-{i % N}" for i in order]
    captions = [text[-4:] for text in page.locator(".wall-captions span").all_text_contents()]
    assert captions == [f"{wanted[i]:.2f}" for i in order]


def test_order_of_another_model_counts_as_none(page: Page):
    open_link(page, "#p=the%20cat&o=measured.look_up&f=known")
    wait_picture(page)
    assert page.locator("#wall [role=rowheader]").count() == SIZES["L"]
    assert page.locator("#wall-order").input_value() == "" and page.locator("#wall-only").is_disabled()


def test_prompt_without_repeats_says_that_nothing_repeats(page: Page):
    open_link(page, "#p=the&o=prompt.induction")
    wait_picture(page)
    page.wait_for_selector("#wall-order-note:has-text('nothing in it repeats')")
    assert page.locator("#wall-order-note").text_content().startswith("No query has an induction score in this prompt")


def test_wall_of_many_layers_uses_the_width_there_is(page: Page):
    """30 x 9 heads: beside the open head as wide as their panel; above it, on a phone, no taller than before."""
    script = """async (width) => {
      const at = document.querySelector("script[type=module]").src;
      const { byLayer } = await import(new URL("wall_layout.js", at));
      const layout = byLayer({ L: 30, N: 9, K: 3 }, width, width < 340);
      return [layout.size, layout.width, layout.height];
    }"""
    size, width, height = page.evaluate(script, 300)
    assert size == 27 and 300 - 9 < width <= 300 and height < 900
    assert page.evaluate(script, 370)[0] == 20
