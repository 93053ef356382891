"""The field of the followed token reads what the page writes, and says what it made of a text that is no single token.

Plan: the mark of a space, a newline and a tab; a word that is one token after a space alone; an exact token, which
always wins; several tokens; the note goes with its token.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.page.harness import Server, Watched, until

pytestmark = pytest.mark.chromium

SPACED = "Following ·barked, with the space that words begin with."


def follow(page: Page, text: str) -> tuple[str, str]:
    """Type it; the token that the plot is of then, and what the field says."""
    page.locator("#target").fill(text)
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#ranks h3') && !document.querySelector('#ranks.behind')")
    return page.locator("#ranks h3 .mono").text_content(), page.locator("#target-note").text_content()


def test_field_of_the_followed_token_reads_the_marks_of_the_page(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    assert follow(page, "·barked") == ("·barked", "")
    assert follow(page, "barked") == ("·barked", SPACED)
    page.get_by_role("button", name="First choice").click()
    expect(page.locator("#target-note")).to_be_empty()  # that was said of another token
    assert follow(page, " barked") == ("·barked", "")
    assert follow(page, "dog") == ("dog", ""), "a token as it is typed wins over the one with a space"
    assert follow(page, "↵") == ("↵ newline", "")
    assert follow(page, "→") == ("→ tab", "")
    assert follow(page, "·barked dog") == ("·barked", "That is 2 tokens; following the first, ·barked.")
    watched.assert_clean(tiny_server.url)
