"""The main path on the small model: prompt, chips, wall, one head, lens, prediction, with the oracle's numbers.

Plan: every head has a cell and a name; the page's numbers are the oracle's; selecting a token selects it everywhere;
the newest prompt wins; empty and too long prompts are deliberate states; generation obeys its settings.
"""

import json
import urllib.request

import numpy as np
import pytest
from playwright.sync_api import Page
from safetensors.numpy import load

from tests.page.harness import Server, chip_count, type_prompt, until, wait_lens, wait_picture
from tests.page.small import MAX_TOKENS, SIZES
from tests.tolerances import PAGE_LOGITS, PAGE_PATTERN
from weights.tokens import load_tokenizer

pytestmark = pytest.mark.chromium

TEXT = "the cat sat on the mat"


def oracle(server: Server, ids: list[int], **question) -> dict[str, np.ndarray]:
    """Tensors of the oracle API."""
    body = json.dumps({"model": "small", "ids": ids, **question}).encode()
    request = urllib.request.Request(
        server.url + "api/oracle/trace", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return load(answer.read())


def test_wall_shows_every_head_with_its_name(page: Page):
    cells = page.get_by_role("grid", name="Attention heads").get_by_role("gridcell")
    assert cells.count() == SIZES["L"] * SIZES["N"]
    assert cells.nth(5).get_attribute("aria-label") == "L1 H1, K/V group 0"
    assert page.locator("#next-bars li").count() == 10


def test_trace_agrees_with_the_oracle(page: Page, small_server: Server, small_model):
    found = page.evaluate(
        """async (text) => {
          await playground.ready;
          const trace = await playground.trace(text);
          const lens = await trace.lens();
          const patterns = [];
          const {L, N, T} = trace.shape;
          for (let l = 0; l < L; l++) for (let n = 0; n < N; n++) patterns.push(Array.from(await trace.pattern(l, n)));
          const logits = Array.from(await trace.logits(T - 1));
          const ids = trace.tokens.map((token) => token.id);
          return {ids, shape: trace.shape, patterns, logits, lens: Array.from(lens.logprobs)};
        }""",
        TEXT,
    )
    ids = found["ids"]
    assert ids == load_tokenizer(small_model).encode(TEXT)
    T = len(ids)
    assert {name: found["shape"][name] for name in "LNKTHD"} == {**{n: SIZES[n] for n in "LNKHD"}, "T": T}
    truth = oracle(small_server, ids, include=["pattern", "logits", "lens_logprobs"], positions=[T - 1])
    ours = np.array(found["patterns"]).reshape(SIZES["L"], SIZES["N"], T, T)
    assert np.abs(ours - truth["pattern"]).max() < PAGE_PATTERN
    assert np.abs(ours.sum(-1) - 1).max() < 1e-5
    assert np.abs(np.array(found["logits"]) - truth["logits"][0]).max() < PAGE_LOGITS
    lens = np.array(found["lens"]).reshape(truth["lens_logprobs"].shape)
    assert np.abs(lens - truth["lens_logprobs"]).max() < PAGE_LOGITS


def test_token_selected_anywhere_is_selected_everywhere(page: Page):
    type_prompt(page, TEXT)
    until(page, "document.querySelector('#chips').dataset.count < 20")
    wait_picture(page)
    wait_lens(page)
    page.locator(".chip[data-token='3']").click()
    until(page, "document.querySelector('#row-title').textContent.startsWith('Query 3 ')")
    page.wait_for_selector("#next-title:has-text('Next token after')")
    assert page.locator(".lens-name.on").get_attribute("aria-colindex") == "5"
    page.locator("#lens-1-5").click()
    until(page, "document.querySelector('#row-title').textContent.startsWith('Query 5 ')")
    assert page.locator(".chip[aria-selected=true]").get_attribute("data-token") == "5"
    assert page.locator("#cell-title").text_content().startswith("After layer 0 at")


def test_lens_last_row_is_the_prediction(page: Page):
    wait_lens(page)
    shown = page.locator("#next-bars .bar-name").first.text_content()
    last = page.locator(".chip").count() - 1
    assert page.locator(f"#lens-{SIZES['L']}-{last}").text_content() == shown


def test_newer_prompt_replaces_older(page: Page):
    """Ten prompts in quick succession: the picture ends at the last, and nothing is reported as an error."""
    for length in range(1, 11):
        type_prompt(page, "the " * length)
    wait_picture(page)
    assert page.evaluate("document.querySelectorAll('.chip').length") == chip_count(page)
    # The lens keeps its old cells, dimmed, until it has new ones.
    page.wait_for_selector(f"#lens[aria-colcount='{chip_count(page) + 1}']")
    assert page.locator("#notice-run").count() == 0


HOLD = """async () => {
  const { store } = await import(new URL("state.js", document.querySelector("script[type=module]").src));
  const line = document.querySelector("#wall-readout");
  globalThis.said = [];
  new MutationObserver(() => said.push(line.textContent)).observe(line, { childList: true, characterData: true });
  let held = 0;
  store.on(["trace"], ({ trace }) => {
    if (!trace || held++ !== 1) return; // 0: the trace that is shown; 1: the next one
    const end = Promise.withResolvers();
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(trace));
    const methods = names.filter((name) => !/constructor|shape|destroy/.test(name));
    for (const name of methods) trace[name] = () => (globalThis.asked = true, end.promise);
    const destroy = trace.destroy;
    trace.destroy = () => (destroy.call(trace), end.reject(new Error("buffer was unmapped")));
  });
}"""


def test_prompt_replaced_while_the_wall_fills_shows_no_error(page: Page):
    """A trace goes with its questions unanswered: what it says then is nobody's error."""
    page.evaluate(HOLD)
    type_prompt(page, "the cat")
    until(page, "globalThis.asked")
    type_prompt(page, "the mat")
    until(page, "document.querySelector('#wall').dataset.drawn === '4'")
    wait_picture(page)
    shown = page.evaluate("[...said, document.body.textContent]")
    assert not [text for text in shown if "unmapped" in text]


YIELDS = """async (text) => {
  const state = new URL("state.js", document.querySelector("script[type=module]").src);
  const { store, whenIdle } = await import(state);
  const box = document.querySelector("#prompt-text");
  box.value = text;
  box.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText" }));
  const old = store.state.trace;
  await whenIdle();
  return [store.state.trace === old, store.state.shown.length === store.state.typed.length];
}"""


def test_pictures_of_the_old_prompt_wait_from_the_first_letter_on(page: Page):
    """What fills pieces of a picture would hold the device up for the prompt that comes when the typing pauses."""
    type_prompt(page, "the cat")
    wait_picture(page)
    assert page.evaluate(YIELDS, "the cat sat on") == [False, True]


def test_empty_prompt_is_a_deliberate_state(page: Page):
    type_prompt(page, "")
    page.wait_for_selector("#head .empty:visible")
    assert chip_count(page) == 0
    assert page.locator("#generate").is_disabled()
    tools = page.locator("#head .small-tools button")
    assert tools.count() == 6 and all(button.is_disabled() for button in tools.all())
    page.get_by_role("button", name="Capital", exact=True).click()
    wait_picture(page)
    assert page.locator("#prompt-text").input_value() == "The capital of France is"
    assert all(button.is_enabled() for button in tools.all())


def test_too_long_prompt_is_refused_and_the_picture_stays(page: Page):
    before = page.locator("#lens").get_attribute("aria-colcount")
    type_prompt(page, "a b " * MAX_TOKENS)
    page.wait_for_selector("#prompt-error:visible")
    assert f"at most {MAX_TOKENS}" in page.locator("#prompt-error").text_content()
    assert page.locator("#lens").get_attribute("aria-colcount") == before
    type_prompt(page, "a b")
    page.wait_for_selector("#prompt-error", state="hidden")
    wait_picture(page)


def test_generate_with_a_seed_repeats_itself_and_goes_into_the_prompt(page: Page):
    type_prompt(page, "the cat")
    until(page, "document.querySelector('#chips').dataset.count < 12")
    wait_picture(page)
    page.evaluate("document.querySelector('#next details').open = true")
    page.locator("#sampling-temperature").fill("1")
    page.locator("#sampling-max-tokens").fill("8")
    texts = []
    for seed in ("5", "5", "6"):
        page.locator("#sampling-seed").fill(seed)
        page.locator("#generate").click()
        until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
        texts.append(page.locator("#generated mark").text_content())
        page.evaluate("document.querySelector('#generate-note').textContent = ''")
    assert texts[0] == texts[1] != texts[2]
    page.locator("#take").click()
    wait_picture(page)
    assert page.locator("#prompt-text").input_value().startswith("the cat")
    assert len(page.locator("#prompt-text").input_value()) > len("the cat")
    page.wait_for_selector("#generated", state="hidden")
    assert page.locator("#take").is_hidden()


def test_next_tokens_of_the_prompt_before_stay_dimmed_until_the_new_ones_are_there(page: Page):
    type_prompt(page, "the cat")
    wait_picture(page)
    page.evaluate(
        """() => {
          const list = document.querySelector('#next-bars'), before = list.textContent;
          window.undimmed = [];
          new MutationObserver(() => {
            if (!list.classList.contains('stale')) window.undimmed.push(list.textContent === before);
          }).observe(list, {attributes: true, attributeFilter: ['class']});
        }"""
    )
    type_prompt(page, "the mat")  # as many tokens: the position alone does not tell them apart
    wait_picture(page)
    until(page, "undimmed.length > 0")
    assert not any(page.evaluate("undimmed"))


def test_cursor_of_the_rank_plot_follows_the_layer(page: Page):
    wait_lens(page)
    until(page, "document.querySelector('.rank-plot .cursor')")
    cells = page.get_by_role("grid", name="Attention heads").get_by_role("gridcell")
    places = []
    for n in (0, cells.count() - 1):
        cells.nth(n).click()
        until(page, "!document.querySelector('.stale')")
        places.append(float(page.locator(".rank-plot .cursor").get_attribute("x1")))
    assert places[0] < places[1]


def test_generated_text_goes_with_its_prompt(page: Page):
    page.evaluate("document.querySelector('#next details').open = true")
    page.locator("#sampling-max-tokens").fill("3")
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    assert page.locator("#generated").is_visible()
    assert page.locator("#generated ~ details").count() == 1, "open settings would push the text off the screen"
    page.get_by_role("button", name="Clear", exact=True).click()
    page.wait_for_selector("#generated", state="hidden")
    assert page.locator("#generate-note").text_content() == ""
    assert page.locator("#generate").is_disabled()


def test_generate_refuses_impossible_settings_in_a_sentence(page: Page):
    page.evaluate("document.querySelector('#next details').open = true")
    page.locator("#sampling-top-p").fill("7")
    page.locator("#generate").click()
    assert page.locator("#generate-note").text_content() == "Top p must be between 0.01 and 1."
    top = "document.querySelector('{}').getBoundingClientRect().top"
    assert page.evaluate(f"{top.format('#generate-note')} < {top.format('#next details')}")
    page.locator("#sampling-top-p").fill("1")
    page.locator("#sampling-top-k").fill("1.5")
    page.locator("#generate").click()
    assert page.locator("#generate-note").text_content() == "Top k must be a whole number between 0 and 100000."
    page.locator("#sampling-top-k").fill("0")
    page.locator("#sampling-max-tokens").fill("2")
    page.locator("#sampling-temperature").fill("0.01")  # between two steps of the arrows
    page.locator("#generate").click()
    until(page, "/tokens? in/.test(document.querySelector('#generate-note').textContent)")
    page.locator("#sampling-temperature").fill("0")


def test_head_exports_its_numbers(page: Page):
    type_prompt(page, "ab")
    until(page, "document.querySelector('#chips').dataset.count == 2")
    wait_picture(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this head as CSV").click()
    rows = download.value.path().read_text("utf-8").splitlines()
    assert rows[0] == "query/key,0 a,1 b"
    assert rows[1].startswith("0 a,") and abs(float(rows[1].split(",")[1]) - 1) < 1e-5 and rows[1].endswith(",")
    assert abs(sum(float(cell) for cell in rows[2].split(",")[1:]) - 1) < 1e-5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("playground.trace('')", "The prompt has no tokens"),
        ("playground.trace({ids: [1, 99999]})", "Token id 99999 is not one"),
        (f"playground.trace({{ids: Array({MAX_TOKENS + 1}).fill(1)}})", f"takes at most {MAX_TOKENS}"),
        ("playground.trace('a').then((t) => t.pattern(99, 0))", "layer is 99"),
        ("playground.trace('a').then((t) => (t.destroy(), t.lens()))", "This trace was destroyed"),
        ("playground.trace('a '.repeat(300_000))", "at most 400,000"),
        ("playground.load('nothing')", "There is no model"),
        ('playground.bench({ op: "sums" })', 'op is "sums"; allowed are attention,'),
    ],
)
def test_playground_rejects_with_a_sentence(page: Page, call: str, sentence: str):
    said = page.evaluate(f"playground.ready.then(() => {call}).then(() => 'nothing', (error) => error.message)")
    assert sentence in said
