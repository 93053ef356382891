"""Every prompt of tests/prompts.json, given by a link as a stranger would: as many labels as tokens, the text comes
back, nothing in it is executed, and a prompt that is too long is refused with the limit named.
"""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.page.harness import SMALL_MS, open_link, until, wait_picture
from tests.page.small import MAX_TOKENS
from weights.tokens import load_tokenizer

pytestmark = pytest.mark.chromium

PROMPTS = json.loads((Path(__file__).parents[1] / "prompts.json").read_text("utf-8"))


def text_of(prompt: dict) -> str:
    if "repeat" in prompt:
        piece, times = prompt["repeat"]
        return piece * times
    return prompt["text"]


def test_every_prompt_is_shown_truthfully(page: Page, small_model: Path):
    tokens = load_tokenizer(small_model)
    for prompt in PROMPTS:
        text = text_of(prompt)
        boxed = text.replace("\r\n", "\n")  # a text box has one kind of line end
        expected = len(tokens.encode(boxed))
        open_link(page, "p=" + quote(text, safe=""))
        until(page, f"document.querySelector('#chips').dataset.count == '{expected}'", SMALL_MS)
        if expected > MAX_TOKENS:
            page.wait_for_selector("#prompt-error:visible")
            assert f"at most {MAX_TOKENS}" in page.locator("#prompt-error").text_content(), prompt["id"]
            continue
        assert page.locator(".chip").count() == expected, prompt["id"]
        assert page.locator("#prompt-text").input_value() == boxed, prompt["id"]
        if expected == 0:
            page.wait_for_selector("#head .empty:visible")
            continue
        wait_picture(page)
        page.wait_for_selector(f"#lens[aria-colcount='{expected + 1}']", state="attached")
        again = page.evaluate(
            """async (text) => {
              const trace = await playground.trace(text);
              const bytes = trace.tokens.flatMap((token) => Array.from(token.bytes));
              return [new TextDecoder('utf-8', {ignoreBOM: true}).decode(new Uint8Array(bytes)), trace.ids];
            }""",
            text,
        )
        assert again == [text, tokens.encode(text)], prompt["id"]
    assert page.evaluate("document.querySelectorAll('img, main b').length") == 0


def test_box_and_computed_prompt_agree_on_line_ends(page: Page, small_model: Path):
    """A carriage return from a link: the chips are those of what the box shows; a script's prompt keeps its own."""
    tokens = load_tokenizer(small_model)
    open_link(page, "p=a%0D%0Ab%09c")
    wait_picture(page)
    assert page.locator("#prompt-text").input_value() == "a\nb\tc"
    assert page.locator("#chips").get_attribute("data-count") == str(len(tokens.encode("a\nb\tc")))
    ids = page.evaluate("playground.trace('a\\r\\nb\\tc').then((trace) => trace.ids)")
    assert ids == tokens.encode("a\r\nb\tc")


def test_absurdly_long_prompt_is_refused_before_it_is_cut(page: Page):
    page.evaluate("""() => {
      const box = document.querySelector('#prompt-text');
      box.value = 'a '.repeat(500_000);
      box.dispatchEvent(new Event('input'));
    }""")
    page.wait_for_selector("#prompt-error:visible")
    said = "This prompt has 1,000,000 characters; the page takes at most 400,000: shorten it. "
    said += "The picture below is still that of the last prompt that could be computed."
    assert page.locator("#prompt-error").text_content() == said
    page.wait_for_selector("#notice-long-prompt:has-text('longer than 200,000 characters')")
    assert "p=" not in page.evaluate("location.hash")
