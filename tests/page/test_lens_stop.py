"""The lens can be stopped and go on: what is there stays, what is missing is said, another prompt begins anew.

Plan: the second question of the lens is held back on its way; the keyboard stops it, nothing more is asked, and goes
on; the same with another prompt after stopping; the data alone: a question given up is asked again, and nothing twice.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import until, wait_lens, wait_picture

pytestmark = pytest.mark.chromium

# Questions of the next trace; from the second on they wait for release(), or for their signal.
HOLD = """async (text) => {
  const address = (name) => new URL(name, document.querySelector("script[type=module]").src);
  const { store } = await import(address("state.js"));
  const trace = Object.getPrototypeOf(store.state.trace);
  const { lensAt } = trace;
  const old = store.state.trace;
  const gate = Promise.withResolvers();
  Object.assign(globalThis, { questions: 0, release: gate.resolve, restore: () => (trace.lensAt = lensAt) });
  trace.lensAt = async function (sources, options) {
    if (this !== old && ++globalThis.questions > 1) {
      const ended = new Promise((_, reject) =>
        options.signal.addEventListener("abort", () => reject(options.signal.reason)));
      await Promise.race([gate.promise, ended]);
    }
    return lensAt.call(this, sources, options);
  };
  const box = document.querySelector("#prompt-text");
  box.value = text;
  box.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }));
}"""
STATUS, STOP = "#lens-status", "#lens-stop"
ABOVE = """(() => {
  const top = (id) => document.getElementById(id).getBoundingClientRect().top;
  return top("lens") - top("depth");
})()"""
FILLED = "document.querySelectorAll('.lens-cell:not(.pending)').length"


@pytest.fixture
def stopped(page: Page):
    """The shared page, a new prompt's lens stopped by keyboard after its first question."""
    wait_picture(page)
    wait_lens(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate(HOLD, "cat in the")
    try:
        until(page, f"questions === 2 && !document.querySelector('{STOP}').hidden")
        assert page.locator(STOP).text_content() == "Cancel"
        page.locator(STOP).focus()
        page.keyboard.press("Enter")
        yield page
    finally:
        page.evaluate("void (release(), restore())")
        wait_lens(page)


def test_lens_stops_keeps_its_cells_and_goes_on(stopped: Page):
    page = stopped
    height = page.evaluate(ABOVE)
    assert page.locator(STOP).text_content() == "Continue"
    total = page.locator(".lens-cell").count()
    assert page.evaluate(FILLED) == 8 and total > 16
    said = f"stopped at 8 of {total}"
    assert page.locator(STATUS).text_content() == said and said in page.locator("#announce").text_content()
    page.evaluate("release()")
    page.locator("#lens-0-0").click()
    until(page, "document.querySelector('#cell').textContent.includes('not computed: the lens is stopped')")
    assert page.locator("#lens-0-0").get_attribute("aria-label").endswith(": not computed yet")
    assert page.evaluate("questions") == 2 and page.locator(STATUS).text_content() == said
    page.locator(STOP).focus()
    page.keyboard.press("Enter")
    wait_lens(page)
    assert page.evaluate(FILLED) == total and page.evaluate("questions") > 2
    assert page.locator(STATUS).text_content() == "" and page.locator(STOP).is_hidden()
    assert page.evaluate(ABOVE) == height  # with words and button as without, on a phone
    until(page, "document.activeElement.id === 'lens-0-0'")  # the button is gone: the focus is not lost with it


def test_another_prompt_after_stopping_fills_by_itself(stopped: Page):
    page = stopped
    page.evaluate("release()")
    page.locator("#prompt-text").fill("on the mat")
    until(page, f"document.querySelector('#lens').ariaColCount === '11' && {FILLED} === 0 || {FILLED} > 8")
    wait_lens(page)
    wait_picture(page)
    assert page.locator(STATUS).text_content() == "" and page.locator(STOP).is_hidden()
    assert "stopped" not in page.locator("#cell").text_content()


GIVEN_UP = """async () => {
  const at = document.querySelector("script[type=module]").src;
  const { LensData } = await import(new URL("lens_data.js", at));
  const asked = [];
  const lensAt = (sources, { signal }) =>
    new Promise((resolve, reject) => {
      const rows = sources.reduce((sum, [, , rows]) => sum + rows, 0);
      const zeros = Array(rows * 10).fill(0);
      asked.push([sources, () => resolve({ ids: zeros, logprobs: zeros, entropy: zeros }), signal]);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const next = async (count) => {
    for (let i = 0; asked.length < count && i < 2000; i++) await new Promise((resolve) => setTimeout(resolve));
    if (asked.length < count) throw new Error(`${asked.length} questions were asked, not ${count}: ${failed}`);
  };
  const came = [], failed = [];
  const data = new LensData({ shape: { L: 1, T: 6 }, lensAt, lensAtOnce: 8 },
    (places) => came.push(places.length), (error) => failed.push(error.message));
  data.want({ position: 5, depth: 1, from: 0, to: 6 });
  await next(1);
  data.stop();
  data.resume(); // before the question has noticed
  await next(2);
  const again = JSON.stringify(asked[0][0]) === JSON.stringify(asked[1][0]);
  data.want({ position: 5, depth: 1, from: 0, to: 6 }); // while one is on its way: no second one
  asked[1][1]();
  await next(3);
  data.close();
  data.want({ position: 0, depth: 0, from: 0, to: 6 });
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve));
  return [again, came, failed, asked.map(([, , signal]) => signal.aborted)];
}"""


def test_a_question_given_up_is_asked_again_when_the_lens_goes_on(page: Page):
    wait_lens(page)
    assert page.evaluate(GIVEN_UP) == [True, [8], [], [True, False, True]]
