"""The view belongs to the picture: head, row, cell and followed token change when the new prompt's picture is there.

Plan: an example, a second one while the first is computed, Back, a head and a token chosen meanwhile, typing in an
example's text, an example of the prompt that is shown already, what changes in one frame.
Running is held back, so that "meanwhile" lasts.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, type_prompt, until, wait_lens, wait_picture

pytestmark = pytest.mark.chromium

# From here on a prompt runs when release() lets it; one that gave way meanwhile ends as it does in the engine.
HOLD = """async () => {
  const { store } = await own("/app/state.js");
  const { engine } = store.state;
  const run = engine.run;
  globalThis.asked = 0;
  globalThis.hold = () => {
    const gate = new Promise((resolve) => (globalThis.release = resolve));
    engine.run = async (ids, options) => {
      globalThis.asked += 1;
      await gate;
      return run(ids, options);
    };
  };
  hold();
}"""
SEEN = """() => {
  const text = (selector) => document.querySelector(selector).textContent;
  const lens = document.querySelector("#lens [aria-selected=true]");
  const marked = [...document.querySelectorAll("#wall [aria-selected=true]")].map((cell) => cell.id);
  return [text("#head-title"), marked.join(), text("#row-title"), lens?.id, text("#cell-title"), text("#next-title")];
}"""
CHIP = "document.querySelector('.chip[aria-selected=true]').dataset.token"


@pytest.fixture
def held(watched: Watched, tiny_server: Server) -> Iterator[Page]:
    """The embedded model on its opening, drawn; what is asked for now is held back."""
    page = watched.open(tiny_server.url)
    wait_lens(page)
    page.evaluate(HOLD)
    yield page
    watched.assert_clean(tiny_server.url)


def example(page: Page, i: int) -> str:
    """Choose an example and wait until address and chips are its own."""
    page.locator(".example").nth(i).click()
    until(page, f"document.querySelectorAll('.example')[{i}].ariaPressed === 'true'")
    text = page.locator("#prompt-text").input_value()
    until(page, f"decodeURIComponent(location.hash).endsWith({text!r})")
    return page.url


def released(page: Page) -> None:
    page.evaluate("release()")
    wait_picture(page)


def test_an_example_moves_the_view_with_its_picture(held: Page):
    before = held.evaluate(SEEN)
    address = example(held, 3)  # another head and another row
    assert held.evaluate(SEEN) == before and held.locator(".stale").count() > 0
    head = held.evaluate("new URLSearchParams(location.hash.slice(1)).get('l')")
    released(held)
    assert held.evaluate(SEEN) != before and held.url == address
    assert held.locator("#head-title").text_content().startswith(f"L{head} ")


IN_VIEW = """() => {
  const cell = document.querySelector("#lens [aria-selected=true]").getBoundingClientRect();
  const grid = document.querySelector("#lens").getBoundingClientRect();
  return cell.width > 0 && cell.left >= grid.left && cell.right <= grid.right + 1;
}"""


@pytest.mark.parametrize("i", [1, 2, 3])
def test_the_lens_goes_to_the_selected_column_of_a_longer_prompt(held: Page, i: int):
    example(held, i)
    released(held)
    wait_lens(held)
    until(held, f"({IN_VIEW})()")


def test_the_last_of_two_examples_is_the_one_that_is_shown_and_back_the_first(held: Page):
    before = held.evaluate(SEEN)
    first, second = example(held, 1), example(held, 2)
    assert first != second and held.evaluate("asked") == 2 and held.evaluate(SEEN) == before
    released(held)
    wait_lens(held)
    shown = held.evaluate(SEEN)
    assert held.url == second
    held.evaluate("hold()")
    held.go_back()
    until(held, f"location.href === {first!r} && asked === 3")
    assert held.evaluate(SEEN) == shown
    released(held)
    assert held.evaluate(SEEN) != shown and held.url == first
    held.go_back()
    until(held, "location.hash === ''")
    wait_picture(held)
    until(held, f"JSON.stringify(({SEEN})()) === JSON.stringify({before})")


def test_what_is_chosen_meanwhile_stays_chosen(held: Page):
    """A head for both pictures; a token of the new text for the new one alone."""
    row = held.locator("#row-title").text_content()
    example(held, 1)
    held.locator("#head-3-3").click()
    until(held, "document.querySelector('#head').dataset.head === 'L3 H3'")
    held.locator(".chip[data-token='1']").click()
    until(held, f"{CHIP} === '1' && /l=3&h=3&t=1&/.test(location.hash)")
    assert held.locator("#row-title").text_content() == row
    released(held)
    assert held.locator("#head").get_attribute("data-head") == "L3 H3"
    until(held, "document.querySelector('#row-title').textContent.startsWith('Query 1 ')")


def test_typing_in_an_example_lets_its_row_go_with_the_new_picture(held: Page):
    held.locator(".chip[data-token='2']").click()
    until(held, "document.querySelector('#row-title').textContent.startsWith('Query 2 ')")
    row = held.locator("#row-title").text_content()
    type_prompt(held, held.locator("#prompt-text").input_value() + " and")
    until(held, "asked === 1")
    last = held.locator("#chips").get_attribute("data-count")
    until(held, f"{CHIP} === '{int(last) - 1}'")
    assert held.locator("#row-title").text_content() == row
    released(held)
    until(held, f"document.querySelector('#row-title').textContent.startsWith('Query {int(last) - 1} ')")


def test_the_example_that_is_shown_moves_the_view_at_once(held: Page):
    before = held.evaluate(SEEN)
    held.locator("#head-3-3").click()
    until(held, "document.querySelector('#head-title').textContent === 'L3 H3'")
    held.locator(".example").first.click()
    until(held, f"JSON.stringify(({SEEN})()) === JSON.stringify({before})")
    assert held.evaluate("asked") == 0 and held.locator(".stale").count() == 0


# What stands in the panels at every frame, each once. Nothing is shown before it is in hand, however long that takes.
FRAMES = """async () => {
  const { LONGEST_MS } = await own("/app/ahead.js");
  const timer = globalThis.setTimeout;
  globalThis.setTimeout = (run, ms) => (ms === LONGEST_MS ? 0 : timer(run, ms));
  const text = (selector) => document.querySelector(selector)?.textContent;
  const wall = document.querySelector("#wall");
  globalThis.frames = [];
  const look = () => {
    const dimmed = wall.querySelector(".stale") !== null;
    const panels = ["#head-title", ".axis-rows", "#row-title", "#next-title", "#next-bars"].map(text);
    const first = [dimmed, wall.dataset.drawn, ...panels].join("|");
    const lens = ["#cell-title", ".lens-row.names"].map(text).join("|");
    for (const [name, now] of Object.entries({ first, lens }))
      if (!frames.some(([kind, seen]) => kind === name && seen === now)) frames.push([name, now]);
    requestAnimationFrame(look);
  };
  look();
}"""
# The lens waits for this.
HOLD_LENS = """async () => {
  const { store } = await own("/app/state.js");
  const trace = Object.getPrototypeOf(store.state.trace);
  const { lensAt } = trace;
  const gate = new Promise((resolve) => (globalThis.releaseLens = () => (trace.lensAt = lensAt, resolve())));
  trace.lensAt = async function (...given) { await gate; return lensAt.apply(this, given); };
}"""


def test_the_panels_of_a_new_prompt_change_together_and_the_lens_when_it_has_cells(held: Page):
    held.evaluate(HOLD_LENS)
    held.evaluate(FRAMES)
    example(held, 3)
    released(held)
    old = held.locator("#cell-title").text_content()
    assert held.locator("#lens.behind").count() == 1 and held.locator("#cell-bars.behind").count() == 1
    held.evaluate("releaseLens()")
    wait_lens(held)
    assert held.locator(".behind:not(#ranks)").count() == 0 and held.locator("#cell-title").text_content() != old
    frames = held.evaluate("frames")
    first = [seen for kind, seen in frames if kind == "first" and seen.startswith("false")]
    assert len(first) == 2, first
    named = [seen for kind, seen in frames if kind == "lens"]
    assert len(named) == 2, named
