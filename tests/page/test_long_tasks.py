"""What would hold the page up is done elsewhere or once: counted, never timed, which `bench.long_tasks` does."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, type_prompt, until, wait_lens, wait_picture
from tests.page.small import MAX_TOKENS
from weights.tokens import load_tokenizer

pytestmark = pytest.mark.chromium

# Reads of sizes outside of the moments in which the page has been laid out: each would lay it out once more.
RECORD = """(() => {
  globalThis.measured = [];
  globalThis.formatters = 0;
  let clean = 0;
  const inside = (run) => (...given) => {
    clean += 1;
    try { return run(...given); } finally { clean -= 1; }
  };
  const frame = globalThis.requestAnimationFrame;
  globalThis.requestAnimationFrame = (run) => frame.call(globalThis, inside(run));
  const Observer = globalThis.ResizeObserver;
  globalThis.ResizeObserver = class extends Observer { constructor(run) { super(inside(run)); } };
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, run, ...rest) {
    return listen.call(this, type, type === "scroll" ? inside(run) : run, ...rest);
  };
  const note = (name) => clean || globalThis.measured.push(name + new Error().stack.split("\\n").slice(3, 5).join(""));
  const watch = (prototype, name) => {
    const { get, ...rest } = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, name, { ...rest, get() { note(name); return get.call(this); } });
  };
  const sizes = ["clientWidth", "clientHeight", "scrollLeft", "scrollTop", "scrollWidth", "scrollHeight"];
  for (const name of sizes) watch(Element.prototype, name);
  for (const name of ["offsetWidth", "offsetHeight"]) watch(HTMLElement.prototype, name);
  const box = Element.prototype.getBoundingClientRect;
  Element.prototype.getBoundingClientRect = function () { note("box"); return box.call(this); };
  const written = Number.prototype.toLocaleString;
  Number.prototype.toLocaleString = function (...given) {
    globalThis.formatters += 1;
    return written.apply(this, given);
  };
})()"""


@pytest.fixture
def recorded(watched: Watched, small_server: Server) -> Page:
    """The small model's page, open and drawn, that notes which sizes are read."""
    watched.page.add_init_script(RECORD)
    return watched.open(small_server.url)


def test_a_new_picture_measures_nothing_in_the_middle_of_changes(recorded: Page):
    wait_lens(recorded)
    recorded.evaluate("() => void measured.splice(0)")
    for text in ("the cat sat", "the cat sat on the mat " * 3):  # the second has columns of the lens out of view
        type_prompt(recorded, text)
        wait_picture(recorded)
        wait_lens(recorded)
    assert recorded.evaluate("() => measured") == []
    recorded.evaluate("() => document.querySelector('#lens').clientWidth")
    assert len(recorded.evaluate("() => measured")) == 1  # it does note them


def test_opening_needs_no_number_formatter(recorded: Page):
    assert recorded.evaluate("() => formatters") == 0
    assert recorded.evaluate("() => (8192).toLocaleString('en-US') + formatters") == "8,1921"


def test_a_long_text_is_cut_up_in_a_worker(watched: Watched, small_server: Server, small_model: Path):
    page = watched.open(small_server.url)
    text = "the cat sat on the mat, é. " * 2000
    expected = len(load_tokenizer(small_model).encode(text))
    before = len(page.workers)
    type_prompt(page, "the cat sat")
    assert len(page.workers) == before
    with page.expect_worker() as started:
        type_prompt(page, text)
    assert "tokenizer_worker" in started.value.url
    until(page, f"document.querySelector('#chips').dataset.count === '{expected}'")
    assert f"at most {MAX_TOKENS}" in page.locator("#prompt-error").text_content()
    assert page.evaluate("(text) => playground.trace(text).catch((error) => error.message)", text).startswith(
        "The prompt"
    )
    watched.assert_clean(small_server.url)


def test_a_text_typed_after_a_long_one_stays(page: Page):
    page.evaluate(
        """([long, short]) => {
          const box = document.querySelector("#prompt-text");
          for (const text of [long, short]) {
            box.value = text;
            box.dispatchEvent(new Event("input", { bubbles: true }));
          }
          return playground.trace(long + long).catch(() => {}); // answered after the first
        }""",
        ["the cat sat on the mat. " * 200, "the cat sat"],
    )
    wait_picture(page)
    assert page.locator("#prompt-error").is_hidden()
    assert page.locator(".chip").count() == int(page.locator("#chips").get_attribute("data-count")) < 10


HEIGHTS = """async (text) => {
  const [box, strip] = ["prompt-text", "chips"].map((id) => document.getElementById(id));
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  const heights = [];
  for (let frames = 0; frames < 500 && strip.children.length < 160; frames += 1) {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    heights.push(strip.getBoundingClientRect().height);
  }
  return heights;
}"""


def test_chips_that_come_bit_by_bit_move_nothing_below(page: Page):
    heights = page.evaluate(HEIGHTS, "b c d e " * 40)
    assert len(heights) > 2 and set(heights) == {heights[0]} and heights[0] > 100


# Counts chips, and cells of the lens with their names, by the picture of the page that they were made for.
COUNT = """() => {
  globalThis.made = { chips: [0], lens: [0] };
  const next = () => {
    for (const each of Object.values(made)) each.push(0);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next); // before those of the page, so that each of theirs counts for one picture
  const watch = (id, classes, name) =>
    new MutationObserver((records) => {
      const added = records.flatMap((record) => [...record.addedNodes]);
      const counted = added.filter((node) => classes.some((each) => node.classList?.contains(each)));
      made[name][made[name].length - 1] += counted.length;
    }).observe(document.getElementById(id), { childList: true, subtree: true });
  watch("chips", ["chip"], "chips");
  watch("lens", ["lens-cell", "lens-name"], "lens");
  globalThis.taken = (name) => made[name].splice(0, made[name].length, 0).filter(Boolean);
}"""


def test_chips_and_lens_are_made_a_part_for_each_picture_and_kept(watched: Watched, small_server: Server):
    """Made in one task, all of them would be laid out and painted in it."""
    page = watched.open(small_server.url)
    page.set_viewport_size({"width": 2200, "height": 900})
    wait_lens(page)
    page.evaluate(COUNT)
    text = "b c d e " * 11
    type_prompt(page, text)
    until(page, "document.querySelectorAll('.chip').length > 80")
    wait_picture(page)
    wait_lens(page)
    tokens = page.locator(".chip").count()
    chips, lens = page.evaluate("[taken('chips'), taken('lens')]")
    rows, columns = page.locator(".lens-row").count(), page.locator(".lens-name").count()
    assert tokens - 13 <= sum(chips) <= tokens and max(chips) <= 40 and len(chips) > 1
    assert sum(lens) == rows * columns > 64 and max(lens) < 64 + columns and len(lens) > 1
    page.evaluate("(lens) => void (lens.scrollLeft -= 100)", page.locator("#lens").element_handle())
    until(page, "made.lens.some(Boolean)")
    assert 0 < sum(page.evaluate("taken('lens')")) <= 3 * rows
    type_prompt(page, text + "e")
    until(page, f"document.querySelectorAll('.chip').length === {tokens + 1}")
    assert sum(page.evaluate("taken('chips')")) <= 2
