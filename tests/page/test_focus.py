"""What a button changes comes into view, and the keyboard never stands on an element that is gone.

Plan: generated text put into the prompt, on a phone and under a bar that stays; Generate and Stop give the focus to
each other; the lens says which positions are in view and its buttons lead to the others, by keyboard alone.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import open_link, until, wait_lens, wait_picture
from tests.page.test_access import tab_to

pytestmark = pytest.mark.chromium

FOCUS = "document.activeElement.id"
BOX = "document.querySelector('#prompt-text').getBoundingClientRect()"


@pytest.mark.parametrize("width", [1440, 390])
def test_generated_text_put_into_the_prompt_is_in_view_with_the_cursor_at_its_end(page: Page, width: int):
    page.set_viewport_size({"width": width, "height": 600})
    open_link(page, "#gn=5&p=" + "%0A".join("the cat sat on the mat"[:i] for i in range(3, 9)))
    wait_picture(page)
    page.locator("#generate").focus()
    page.keyboard.press("Enter")
    until(page, "!document.querySelector('#take').hidden")
    assert page.evaluate(FOCUS) == "generate"  # Stop had it and gave it back
    written = page.locator("#generated mark").text_content()
    page.locator("#take").focus()
    page.keyboard.press("Enter")
    until(page, f"{FOCUS} === 'prompt-text' && {BOX}.top >= 0 && {BOX}.bottom <= innerHeight")
    bar = page.locator(".top").bounding_box() if width > 720 else {"y": 0, "height": 0}
    assert page.evaluate(f"{BOX}.top") >= bar["y"] + bar["height"]
    found = page.evaluate("(({value, selectionStart}) => [value, selectionStart])(document.activeElement)")
    assert found[0].endswith(written) and found[1] == len(found[0])
    wait_picture(page)


def test_generate_gives_the_focus_to_stop(page: Page):
    page.locator("#generate").focus()
    found = page.evaluate(
        """async () => {
          const go = document.querySelector("#generate");
          go.click();
          const during = [document.activeElement.id, document.querySelector("#next .step-number").textContent];
          document.activeElement.click();
          while (!document.querySelector("#stop").hidden) await new Promise((resolve) => setTimeout(resolve));
          return [...during, document.activeElement.id];
        }"""
    )
    assert found == ["stop", "0 s", "generate"]
    assert page.locator("#next .progress-line").is_hidden()


def test_lens_says_which_positions_are_in_view_and_leads_to_the_others(page: Page):
    open_link(page, "#p=the%20cat")
    wait_picture(page)
    wait_lens(page)
    pager = page.locator("#depth .pager")
    assert pager.is_hidden() and page.locator(".more-before, .more-after").count() == 0
    open_link(page, "#p=" + "b%20c%20d%20e%20" * 5)
    wait_picture(page)
    wait_lens(page)
    assert pager.is_visible() and page.locator(".lens-box.more-before:not(.more-after)").count() == 1
    said = "document.querySelector('#lens-range').textContent"
    first, last = (int(n) for n in page.evaluate(said).split()[1].split("–"))
    assert last == 39 and page.evaluate(said).endswith("of 40")
    column = "(parseFloat(document.querySelector('.lens-name').style.width) + 2)"
    assert page.evaluate("document.querySelector('#lens').scrollLeft % " + column) == 0  # no half column at its start
    tab_to(page, "#depth .pager")
    page.keyboard.press("Enter")
    until(page, f"{said}.startsWith('positions {first - (last - first + 1)}–{first - 1} of')")
    assert page.locator(".lens-box.more-before.more-after").count() == 1
    for _ in range(9):
        page.keyboard.press("Enter")
    until(page, f"{said}.startsWith('positions 0–')")
    assert page.locator(".lens-box.more-after:not(.more-before)").count() == 1
    assert page.evaluate("[document.activeElement.ariaLabel, document.activeElement.ariaDisabled]") == [
        "Earlier positions",
        "true",
    ]
    wait_lens(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    until(page, f"{said}.startsWith('positions {last - first + 1}–')")


def test_pager_of_the_chips_says_where_it_ends(page: Page):
    """Also of a prompt that is refused: its chips are there to be looked at."""
    open_link(page, "#p=" + "b%20c%20d%20e%20" * 40)
    page.wait_for_selector("#prompt-error:visible")
    ends = "[...document.querySelectorAll('.chips-box .pager button')].map((button) => button.ariaDisabled).join()"
    said = "document.querySelector('.chips-box .pager span').textContent"
    until(page, f"{ends} === 'false,true' && {said} === 'tokens 160–319 of 320'")
    page.get_by_role("button", name="Earlier tokens").click()
    until(page, f"{ends} === 'true,false' && {said} === 'tokens 0–159 of 320'")
