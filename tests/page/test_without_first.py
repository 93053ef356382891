"""Without first token: rows sum to 1 again without key 0, and every number says that it is not the model's own weight.

Plan: the legend and the bars; the readout of the chosen cell and of the one under the pointer, with the switch off,
on and off again, against the model's own pattern.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import open_link, until, wait_picture

pytestmark = pytest.mark.chromium


def test_without_first_token_renormalises_and_says_so(page: Page):
    page.locator("#no-first").click()
    page.wait_for_selector(".legend:has-text('first token left out, rows renormalised')")
    assert page.locator("#row-bars .bar").first.is_visible()
    shares = [float(text) for text in page.locator("#row-bars .bar-value").all_text_contents() if text != "<.001"]
    assert 0.3 < sum(shares) < 1.01


WEIGHTS = "async () => Array.from(await (await playground.trace('the cat sat on')).pattern(1, 1))"
READOUT = "document.querySelector('#cell-readout').textContent"


def test_without_first_token_the_readout_is_the_renormalised_weight_and_says_so(page: Page):
    """The chosen cell and the one under the pointer; with the switch off both are the model's own again."""
    open_link(page, "#p=the%20cat%20sat%20on&l=1&h=1&t=3&k=2")
    wait_picture(page)
    weights = page.evaluate(WEIGHTS)
    T = int(len(weights) ** 0.5)
    own = weights[3 * T + 2]
    assert 0.01 < weights[3 * T] < 0.99, "the first token's share must show"

    def said() -> float:
        text = page.evaluate(READOUT)
        assert text.startswith("query 3 ") and ("renormalised" in text) is switched
        return float(text.split("weight ")[1].split(",")[0].replace("−", "-"))

    for switched in (False, True, False):
        wanted = own / (1 - weights[3 * T]) if switched else own
        until(page, f"{READOUT}.includes('renormalised') === {str(switched).lower()}")
        assert abs(said() - wanted) < 0.006 * wanted
        cell = page.evaluate("document.querySelector('.heat-stage').clientWidth") / T
        page.locator(".heat-stage").hover(position={"x": 2.5 * cell, "y": 3.5 * cell})
        assert abs(said() - wanted) < 0.006 * wanted
        page.mouse.move(0, 0)
        page.locator("#no-first").click()
