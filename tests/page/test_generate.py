"""The panel that writes on: it stops when told, says how it ended, and leaves nothing of a prompt that went away.

Plan: Stop after the first token, the text so far is kept and can be taken; another prompt in the middle; a prompt that
fills the context. Settings, seeds and what may be written on are in test_prompt_to_prediction.py and test_states.py.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from tests.page.harness import type_prompt, until, wait_picture
from tests.page.small import MAX_TOKENS

pytestmark = pytest.mark.chromium

NOTE = "document.querySelector('#generate-note').textContent"
# Presses a button as soon as the first token is told, before the page takes the second; keeps all that is said.
AFTER_ONE = """(label) => {
  const button = [...document.querySelectorAll("button")].find((each) => each.textContent === label);
  const note = document.querySelector("#generate-note");
  window.said = [];
  window.watching = new MutationObserver(() => {
    said.push(note.textContent);
    if (note.textContent === "Generating: 1 token so far.") button.click();
  });
  watching.observe(note, { childList: true });
}"""


@pytest.fixture
def press_after_one(page: Page) -> Iterator[Callable[[str], None]]:
    """Have a button pressed, by its label, when the first token is told; the page serves other tests afterwards."""
    yield lambda label: page.evaluate(AFTER_ONE, label)
    page.evaluate("watching.disconnect()")


def begin(page: Page, tokens: int) -> None:
    page.evaluate("document.querySelector('#next details').open = true")
    page.locator("#sampling-max-tokens").fill(str(tokens))
    page.locator("#generate").click()


def test_stop_ends_the_text_and_keeps_what_is_there(page: Page, press_after_one):
    type_prompt(page, "the cat")
    wait_picture(page)
    press_after_one("Stop")
    begin(page, 50)
    until(page, f"{NOTE} === 'Stopped after 1 token.'")
    assert page.locator("#stop").is_hidden() and page.locator("#generate").is_enabled()
    text = page.locator("#generated mark").text_content()
    assert text
    page.locator("#take").click()
    until(page, f"document.querySelector('#prompt-text').value === 'the cat' + {text!r}")
    assert page.locator("#generate-note").text_content() == "" and page.locator("#take").is_hidden()


def test_text_goes_on_from_the_selected_token_and_back_returns_to_its_prompt(page: Page):
    type_prompt(page, "the cat sat on the mat")
    wait_picture(page)
    page.locator(".chip").nth(2).click()
    until(page, "location.hash.includes('t=2')")
    prompt = page.locator("#prompt-text").input_value()
    chips = "[...document.querySelectorAll('.chip')].slice(0, 3)"
    first = page.evaluate(f"{chips}.map((chip) => chip.textContent.replaceAll('·', ' ')).join('')")
    begin(page, 3)
    until(page, f"{NOTE}.startsWith('3 tokens in')")
    assert page.locator("#generated .dim").text_content() == first
    text = page.locator("#generated mark").text_content()
    page.locator("#take").click()
    until(page, f"document.querySelector('#prompt-text').value === {first + text!r}")
    until(page, f"decodeURIComponent(location.hash).endsWith({first + text!r})")  # written a moment later
    wait_picture(page)
    page.go_back()
    until(page, f"document.querySelector('#prompt-text').value === {prompt!r}")


PLACED = """() => {
  const [button, panel] = ["#generate", "#next"].map((part) => document.querySelector(part).getBoundingClientRect());
  const { scrollWidth, clientWidth } = document.documentElement;
  return [button.left >= panel.left && button.right <= panel.right && button.height < 40, scrollWidth <= clientWidth];
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_button_says_where_it_goes_on_from(page: Page, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    type_prompt(page, "the cat the" + " " * 60 + "a あ b")
    wait_picture(page)
    button, chips = page.locator("#generate"), page.locator(".chip")
    assert button.text_content() == "Generate"
    for i, (glyph, name) in enumerate((("the", "the"), ("·", "· space"), ("c", "c"))):
        chips.nth(i).click()
        assert chips.nth(i).text_content().startswith(glyph)
        until(page, f"document.querySelector('#generate').textContent === 'Generate after {name}'")
        assert page.evaluate(PLACED) == [True, True]
    chips.last.click()
    until(page, "document.querySelector('#generate').textContent === 'Generate'")


def test_settings_say_what_turns_them_off(page: Page):
    page.evaluate("document.querySelector('#next details').open = true")
    for name in ("temperature", "top-k", "top-p", "seed"):
        said = page.locator(f"#{page.locator(f'#sampling-{name}').get_attribute('aria-describedby')}")
        assert said.is_visible()
        words = said.text_content()
    for part in ("Temperature 0 always takes the likeliest", "the seed is unused", "Top k 0 and top p 1 are off"):
        assert part in words


def test_another_prompt_in_the_middle_takes_the_text_away(page: Page, press_after_one):
    type_prompt(page, "the cat")
    wait_picture(page)
    press_after_one("Clear")
    begin(page, 50)
    until(page, "document.querySelector('#stop').hidden && said.includes('Generating: 1 token so far.')")
    assert page.locator("#generated").is_hidden() and page.locator("#take").is_hidden()
    said = page.evaluate("said")
    assert said[-1] == "" and not any(words.startswith("Stopped") for words in said)
    assert page.locator("#generate").is_disabled()


def test_prompt_that_fills_the_context_is_said_to(page: Page):
    type_prompt(page, "z" * MAX_TOKENS)
    until(page, f"document.querySelector('#chips').dataset.count == {MAX_TOKENS}")
    wait_picture(page)
    begin(page, 5)
    until(page, f"{NOTE}.startsWith('The prompt already fills')")
    assert page.locator("#generate-note.error").count() == 1 and page.locator("#stop").is_hidden()
