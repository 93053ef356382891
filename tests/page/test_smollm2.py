"""The real model in a real browser: 270 heads, " Mary" at 0.92, the oracle's numbers, every prompt token by token."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.page.harness import LARGE_MS, Server, Watched, until, wait_lens, wait_picture
from tests.page.test_hostile_prompts import PROMPTS, text_of
from tests.page.test_prompt_to_prediction import oracle as small_oracle
from tests.page.test_wall_scroll import IN_SIGHT, OPEN
from tests.tolerances import PAGE_F16_LOGPROBS, PAGE_F16_PATTERN
from weights.tokens import load_tokenizer

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(1500)]

IOI = "When Mary and John went to the store, John gave a drink to"
READ = """async (text) => {
  await playground.ready;
  const trace = await playground.trace(text);
  const lens = await trace.lens();
  const T = trace.shape.T;
  const [pattern, logits] = [await trace.pattern(24, 4), await trace.logits(T - 1)].map((values) => Array.from(values));
  const [logprobs, lensIds] = [Array.from(lens.logprobs), Array.from(lens.ids)];
  return {ids: trace.ids, shape: trace.shape, pattern, logits, lens: logprobs, lensIds};
}"""


def test_ioi_prompt_shows_270_heads_and_mary(watched: Watched, large_server: Server):
    page = watched.open(large_server.url, timeout_ms=LARGE_MS)
    assert page.locator("#wall [role=gridcell]").count() == 270
    # Layer 24 of 30 is further down than the screen.
    until(page, f"document.querySelector('.wall-scroll').scrollTop > 0 && {IN_SIGHT}({OPEN})")
    first = page.locator("#next-bars li").first
    assert first.locator(".bar-name").text_content() == "·Mary"
    assert first.locator(".bar-value").text_content().startswith("0.92")
    wait_lens(page, LARGE_MS)
    assert page.locator("#lens-30-13").text_content() == "·Mary"
    assert "is first from layer 29 on" in page.locator("#rank-story").text_content()
    check_examples(page)
    check_against_oracle(page, large_server)
    check_every_prompt(page)
    watched.assert_clean(large_server.url)


EXAMPLES = [  # title, head, what its readout begins with, next token (None: none is claimed)
    ("Capital", "L23 H4", "query 4 ·is, key 3 ·France: weight 0.9", "·Paris"),
    ("Repetition", "L18 H6", "query 7 ·stone, key 3 ·map: weight 0.9", "·map"),
    ("Code", "L23 H7", "query 10 ·*, key 5 ·height: weight 0.6", "·height"),
    ("Scripts", "L4 H3", "query 22 ", None),
    ("Who gets the drink", "L24 H4", "·to reads ·Mary most: 0.8", "·Mary"),
]


def check_examples(page) -> None:
    """Every example says what to look at, and it is so."""
    group = page.get_by_role("group", name="Example prompts")
    titles = {title for title, *_ in EXAMPLES}
    assert set(group.get_by_role("button").all_text_contents()) == titles | {"Clear"}
    for title, head, readout, following in EXAMPLES:
        group.get_by_role("button", name=title).click()
        page.wait_for_selector(f"#head[data-head='{head}']", timeout=LARGE_MS)
        until(page, f"document.querySelector('#cell-readout').textContent.startsWith('{readout}')", LARGE_MS)
        wait_picture(page, LARGE_MS)
        layer, number = head.removeprefix("L").split(" H")
        assert page.locator("#example-says").text_content().startswith(f"Layer {layer}, head {number}: ")
        assert page.locator(".example[aria-pressed=true]").text_content() == title
        if following:
            assert page.locator("#next-bars .bar-name").first.text_content() == following
        elif "weight 1.00" not in (said := page.locator("#cell-readout").text_content()):
            assert "weight 0.99" in said, said
        if "by induction on this prompt it is the first" in page.locator("#example-says").text_content():
            check_first_by_induction(page, head)


def check_first_by_induction(page, head: str) -> None:
    """The page's own order puts the head that the example names before all others."""
    page.locator("#wall-order").select_option("prompt.induction")
    first = "document.querySelector('#wall .wall-captions span').textContent"
    page.wait_for_selector("#wall .wall-captions span", timeout=LARGE_MS)
    until(page, f"{first}.startsWith('{head}0.9')", LARGE_MS)
    page.locator("#wall-order").select_option("")


def check_against_oracle(page, server: Server) -> None:
    found = page.evaluate(READ, IOI)
    T = len(found["ids"])
    question = {"model": "smollm2-135m", "positions": [T - 1], "layers": [24]}
    truth = small_oracle(server, found["ids"], include=["pattern", "logits", "lens_ids", "lens_logprobs"], **question)
    ours = np.array(found["pattern"]).reshape(T, T)
    assert np.abs(ours - truth["pattern"][0, 4]).max() < PAGE_F16_PATTERN
    assert np.abs(ours.sum(-1) - 1).max() < 1e-5
    best = np.argsort(-truth["logits"][0])[:50]
    errors = log_softmax(np.array(found["logits"]))[best] - log_softmax(truth["logits"][0].astype(np.float64))[best]
    assert np.abs(errors).max() < PAGE_F16_LOGPROBS
    lens = np.array(found["lens"]).reshape(31, T, 10)
    assert np.abs(lens - truth["lens_logprobs"]).max() < PAGE_F16_LOGPROBS * 5
    assert (np.array(found["lensIds"]).reshape(31, T, 10)[..., 0] == truth["lens_ids"][..., 0]).mean() > 0.99


def check_every_prompt(page) -> None:
    """Chips of every prompt; the picture is waited for where a software GPU computes it in seconds."""
    from weights.catalogue import resolve

    tokens = load_tokenizer(Path(resolve("smollm2-135m")))
    for prompt in PROMPTS:
        text = text_of(prompt)
        ids = tokens.encode(text.replace("\r\n", "\n"))  # a text box has one kind of line end
        page.evaluate("(text) => { location.hash = 'p=' + encodeURIComponent(text) }", text)
        until(page, f"document.querySelector('#chips').dataset.count == '{len(ids)}'", LARGE_MS)
        shown = page.evaluate("document.querySelectorAll('.chip').length")
        assert shown == min(len(ids), 160), prompt["id"]
        if 0 < len(ids) <= 24:
            wait_picture(page, LARGE_MS)
    too_long = json.dumps("word " * 9000)
    page.evaluate(f"location.hash = 'p=' + encodeURIComponent({too_long})")
    page.wait_for_selector("#prompt-error:visible", timeout=LARGE_MS)
    assert "at most 8,192" in page.locator("#prompt-error").text_content()


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
