"""Clear can be taken back: Back and the button itself bring the prompt and its view again.

Plan: a prompt of one's own with a head, a token and a followed token; the opening example, whose token Clear lets go;
what else empties the box.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, type_prompt, until, wait_picture

pytestmark = pytest.mark.chromium

OWN = "#l=2&h=1&t=2&g=70&p=The%20dog%20barked%20because"
TITLES = "['#head-title', '#next-title', '#ranks h3'].map((part) => document.querySelector(part)?.textContent)"


def cleared(page: Page) -> None:
    page.locator("#clear").click()
    page.wait_for_selector("#head .empty:visible")
    assert page.locator("#prompt-text").input_value() == ""
    assert page.evaluate("document.activeElement.id") == "prompt-text"
    until(page, "location.hash.endsWith('p=')")


@pytest.mark.parametrize("link", [OWN, ""])
def test_back_and_undo_bring_a_cleared_prompt_and_its_view_back(watched: Watched, tiny_server: Server, link: str):
    page = watched.open(tiny_server.url + link)
    until(page, "document.querySelector('#ranks h3')")
    prompt, titles = page.locator("#prompt-text").input_value(), page.evaluate(TITLES)
    for again in (page.go_back, page.locator("#clear").click):
        cleared(page)
        assert page.locator("#clear").text_content() == "Undo"
        again()
        until(page, f"location.hash === '{link}'")
        wait_picture(page)
        until(page, f"JSON.stringify({TITLES}) === JSON.stringify({titles})")
        assert page.locator("#prompt-text").input_value() == prompt
        assert page.locator("#clear").text_content() == "Clear"
    watched.assert_clean(tiny_server.url)


def test_undo_is_offered_for_the_last_clear_alone(page: Page):
    cleared(page)
    type_prompt(page, "ab")
    assert page.locator("#clear").text_content() == "Clear"
    type_prompt(page, "")  # the box itself takes that back
    assert page.locator("#clear").text_content() == "Clear"
