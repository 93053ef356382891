"""Pictures, words and buttons speak of one prompt, or say in a sentence what they wait for.

Plan: nothing is written on from two prompts at once; a page opened on a refused prompt promises no picture; panels say
what they wait for; the axes name what is chosen and read most; examples are lit while what they show is looked at;
controls that cannot be used say why.
"""

from itertools import pairwise

import pytest
from playwright.sync_api import Page

from tests.page.harness import Held, Server, Watched, chip_count, open_link, type_prompt, until, wait_lens, wait_picture
from tests.page.small import MAX_TOKENS

pytestmark = pytest.mark.chromium


def test_generate_never_mixes_two_prompts(page: Page):
    """What is written on belongs to the prompt in the box: with another one there it goes; a refused one gets none."""
    type_prompt(page, "the cat")
    until(page, "document.querySelector('#chips').dataset.count < 12")
    wait_picture(page)
    page.evaluate("document.querySelector('#next details').open = true")
    page.locator("#sampling-max-tokens").fill("3")
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    type_prompt(page, "a b " * MAX_TOKENS)
    page.wait_for_selector("#prompt-error:visible")
    assert page.locator("#generate").is_disabled()
    assert "cannot be computed" in page.locator("#generate-refused").text_content()
    assert page.locator("#take").is_hidden() and page.locator("#generated").is_hidden()
    type_prompt(page, "the mat")
    until(page, "document.querySelector('#prompt-error').hidden")
    assert page.locator("#generate-refused").text_content() == ""
    wait_picture(page)
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    assert page.locator("#generated .dim").text_content() == "the mat"


def test_generate_waits_for_the_picture_of_the_prompt_in_the_box(page: Page):
    """Between typing and the picture, text and tokens are of two prompts."""
    found = page.evaluate(
        """async () => {
          const box = document.querySelector("#prompt-text");
          box.value = "the cat sat";
          box.dispatchEvent(new Event("input", { bubbles: true }));
          await Promise.resolve();
          await new Promise((resolve) => queueMicrotask(resolve));
          const { disabled, title } = document.querySelector("#generate");
          return { disabled, title };
        }"""
    )
    assert found == {"disabled": True, "title": "The prompt in the box is not computed yet."}
    wait_picture(page)
    until(page, "!document.querySelector('#generate').disabled")


CUTS = """async () => {
  const [{ store }, { setPrompt }] = [await own("/app/state.js"), await own("/app/session.js")];
  const asked = [];
  const { tokens } = store.state;
  tokens.cut = (text) => new Promise((resolve) => asked.push({ text, resolve }));
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  const wait = async (done) => {
    for (let i = 0; i < 3000 && !done(); i += 1) await turn();
  };
  const long = (i) => "a b ".repeat(600) + i;
  try {
    const before = store.state.trace;
    setPrompt("the cat sat there", { now: true });
    for (let i = 0; i < 9; i += 1) {
      setPrompt(long(i));
      await turn();
    }
    await wait(() => store.state.trace !== before && !store.state.progress);
    await turn();
    const { disabled } = document.querySelector("#generate");
    const first = asked.length;
    asked[0].resolve({ ids: [5], missing: [] });
    await turn();
    const texts = asked.map(({ text }) => text);
    asked[1].resolve({ ids: [5, 6], missing: [] });
    await wait(() => store.state.trace.ids.length === 2);
    return { disabled, first, newest: texts.length === 2 && texts[1] === long(8) };
  } finally {
    delete tokens.cut;
  }
}"""


def test_a_long_text_is_cut_one_at_a_time_and_the_picture_before_it_is_stale(page: Page):
    """Typing in a long text asks for it at every letter; a run that ends meanwhile belongs to another prompt."""
    assert page.evaluate(CUTS) == {"disabled": True, "first": 1, "newest": True}
    until(page, "!document.querySelector('#generate').disabled")


def test_ranks_come_back_with_the_prompt(page: Page):
    for prompt in ("the cat", "", "the cat"):
        type_prompt(page, prompt)
        if prompt:
            wait_picture(page)
            page.wait_for_selector("#rank-story")
        else:
            page.wait_for_selector("#rank-story", state="detached")


def test_reload_on_a_too_long_prompt_promises_no_picture(watched: Watched, small_server: Server):
    watched.open(small_server.url + "#p=" + "a%20b%20" * MAX_TOKENS, ready=False)
    page = watched.page
    page.wait_for_selector("#prompt-error:visible")
    assert page.locator("#prompt-error").text_content().endswith("There is no picture yet.")
    for place in ("#head .empty", "#depth .panel-top p", "#cell p", "#next p"):
        until(page, f"document.querySelector('{place}').textContent.includes('cannot be computed')")
    type_prompt(page, "the cat")
    wait_picture(page)
    assert page.locator("#head .empty").is_hidden()
    type_prompt(page, "a b " * MAX_TOKENS)
    page.wait_for_selector("#prompt-error:visible")
    assert "picture below is still" in page.locator("#prompt-error").text_content()
    watched.assert_clean(small_server.url)


def test_panels_say_that_the_model_is_loading(watched: Watched, small_server: Server):
    weights = Held(watched.page, "**/model.safetensors")
    page = watched.open(small_server.url, ready=False)
    page.wait_for_selector(".chip")
    for place in ("#head .empty", "#depth .panel-top p", "#cell p", "#next p"):
        until(page, f"document.querySelector('{place}').textContent === 'The model is being loaded.'")
    weights.release()
    wait_picture(page)


def test_axis_names_the_strongest_keys_and_none_touch(page: Page):
    """On 60 tokens not every name fits: the selected row and the keys it reads most come before their neighbours."""
    type_prompt(page, "a b c d e " * 6)
    until(page, "document.querySelector('#chips').dataset.count > 50")
    wait_picture(page)
    T = chip_count(page)
    for query in (T - 2, T - 9, 31):
        chips = page.locator(f".chip[data-token='{query}']")
        chips.click()
        until(page, f"document.querySelector('#row-title').textContent.startsWith('Query {query} ')")
        bars = page.locator("#row-bars .bar").all()
        strong = [
            int(bar.locator(".bar-name").get_attribute("title").removeprefix("key "))
            for bar in bars
            if bar.locator(".bar-value").text_content() > "0.060"
        ]
        places = {axis: axis_places(page, axis) for axis in ("rows", "cols")}
        assert query in places["rows"]
        assert strong and strong[0] in places["cols"]
        for axis, room in (("rows", 12), ("cols", 15)):
            at = sorted(places[axis].values())
            assert min(b - a for a, b in pairwise(at)) >= room - 0.01
        crowded = [key for key in strong[:4] if key not in places["cols"]]
        cell = page.locator("#heatmap").bounding_box()["width"] / T
        assert all(min(abs(key - other) for other in strong[:4] if other != key) * cell < 15 for key in crowded)


def axis_places(page: Page, axis: str) -> dict[int, float]:
    """Position -> where its name stands on the axis, CSS pixels."""
    side = "top" if axis == "rows" else "left"
    found = page.evaluate(
        f"[...document.querySelectorAll('.axis-{axis} > span')]"
        f".map((span) => [Number(span.dataset.position), parseFloat(span.style.{side})])"
    )
    return {int(place): at for place, at in found}


def test_example_is_lit_only_while_its_head_and_row_are_shown(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    lit = page.locator(".example[aria-pressed=true]")
    assert lit.count() == 1
    page.locator("#head-1-1").click()
    until(page, "!document.querySelector('.example[aria-pressed=true]')")
    page.locator("#head-2-0").click()
    until(page, "document.querySelector('.example[aria-pressed=true]')")
    page.locator(".chip[data-token='3']").click()
    until(page, "!document.querySelector('.example[aria-pressed=true]')")
    page.locator(".example").first.click()
    until(page, "document.querySelector('.example[aria-pressed=true]')")
    until(page, "document.querySelector('#row-title').textContent.startsWith('Query 7 ')")
    watched.assert_clean(tiny_server.url)


def test_closed_menus_and_switches_say_what_they_are(page: Page):
    only = page.locator("#wall-only")
    assert only.is_disabled() and "choose an order" in only.get_attribute("title")
    open_link(page, "#p=the%20cat%20the%20cat&o=prompt.induction")
    wait_picture(page)
    chosen = "document.querySelector('{}').selectedOptions[0].textContent"
    until(page, f"{chosen.format('#wall-order')} === 'induction, this prompt'")
    assert only.is_enabled() and page.evaluate(chosen.format("#wall-only")) == "All heads"
    follow = page.locator("#lock-row")
    assert follow.text_content() == "Follow pointer" and follow.get_attribute("aria-pressed") == "false"
    follow.click()
    until(page, "document.querySelector('#lock-row').ariaPressed === 'true'")


def test_frame_of_the_open_head_is_clear_of_its_caption(page: Page):
    open_link(page, "#p=the%20cat%20the%20cat&o=prompt.previous_token")
    wait_picture(page)
    until(page, "document.querySelectorAll('.wall-captions span').length === 16")
    cell = page.locator("#wall [aria-selected=true]").bounding_box()
    places = page.evaluate(
        "[...document.querySelectorAll('.wall-captions span')].map((s) => s.getBoundingClientRect().top)"
    )
    frame = 3  # 2 px, 1 px off the thumbnail
    assert min(top for top in places if top > cell["y"]) >= cell["y"] + cell["height"] + frame


def test_one_more_key_has_its_share(page: Page):
    type_prompt(page, "abcdefghi")
    until(page, "document.querySelector('#chips').dataset.count == 9")
    wait_picture(page)
    until(page, "document.querySelector('#row-title').textContent.includes('(1 more key has ')")
    type_prompt(page, "abcdefghij")
    until(page, "document.querySelector('#row-title').textContent.includes('(2 more keys share ')")


def test_lens_counts_the_cells_that_are_there(page: Page):
    """Columns fill all rows at once: a count of full rows would stay at none until the end."""
    found = page.evaluate(
        """async () => {
          const at = document.querySelector("script[type=module]").src;
          const { LensData } = await import(new URL("lens_data.js", at));
          const data = new LensData({ shape: { L: 2, T: 4 } }, () => {}, () => {});
          data.wish = { position: 3, depth: 0, from: 1, to: 4 };
          data.cells.set(0 * 4 + 3, {}).set(1 * 4 + 3, {});
          return data.progress;
        }"""
    )
    assert found == {"done": 2, "total": 9}
    wait_lens(page)
    assert page.locator("#lens-status").text_content() == ""
