"""The chosen head is in sight in the wall's own window, whoever chose it; page and focus stay where they are.

Plan: on a screen so short that the wall's window is smaller than the wall (every head listed one after the other): a
link, an example, moving by keyboard, another height of the window; a wall with room for all heads does not scroll.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, until, wait_picture

pytestmark = pytest.mark.chromium

IN_SIGHT = """((cell) => {
  if (!cell) return false;
  const [box, at] = [document.querySelector(".wall-scroll"), cell.getBoundingClientRect()];
  const { top, left } = box.getBoundingClientRect();
  return at.top >= top && at.bottom <= top + box.clientHeight && at.bottom <= innerHeight && at.left >= left;
})"""
OPEN = "document.querySelector('#wall [aria-selected=true]')"
PLACE = "[scrollY, document.activeElement.id]"


def scrolled(page: Page) -> float:
    return page.evaluate("document.querySelector('.wall-scroll').scrollTop")


@pytest.fixture
def short(watched: Watched, tiny_server: Server):
    """Tiny, its heads listed by a score (six in a row, six rows), the last head of the list open by a link."""
    watched.page.set_viewport_size({"width": 1440, "height": 640})
    page = watched.open(tiny_server.url + "#l=2&h=7&o=measured.induction")
    yield page
    watched.assert_clean(tiny_server.url)


def test_the_open_head_is_in_sight_on_load_on_an_example_and_by_keyboard(short: Page):
    until(short, f"{IN_SIGHT}({OPEN})")
    assert short.evaluate(PLACE) == [0, ""]
    listed = "[...document.querySelectorAll('#wall [role=gridcell]')]"
    assert short.evaluate(f"{listed}.indexOf({OPEN})") > 20 and scrolled(short) > 0
    short.locator(".example").first.click()
    until(short, f"{OPEN}.id === 'head-2-0'")
    wait_picture(short)
    until(short, f"{IN_SIGHT}({OPEN})")
    assert scrolled(short) == 0 and short.evaluate("scrollY") == 0
    assert short.evaluate("document.activeElement.className.includes('example')")
    short.evaluate(f"{OPEN}.focus()")
    for _ in range(5):
        short.keyboard.press("ArrowDown")
    assert scrolled(short) > 0 and short.evaluate(f"{IN_SIGHT}(document.activeElement)")


def test_an_example_of_the_head_that_is_open_brings_it_back_into_sight(short: Page):
    short.locator(".example").first.click()
    until(short, f"{OPEN}.id === 'head-2-0' && {IN_SIGHT}({OPEN})")
    wait_picture(short)
    short.evaluate("document.querySelector('.wall-scroll').scrollTop = 999")
    assert not short.evaluate(f"{IN_SIGHT}({OPEN})")
    short.locator(".example").nth(1).click()  # the same head
    wait_picture(short)
    until(short, f"{IN_SIGHT}({OPEN})")
    short.set_viewport_size({"width": 1440, "height": 1400})
    until(
        short, "document.querySelector('.wall-scroll').clientHeight >= document.querySelector('.wall-box').clientHeight"
    )
