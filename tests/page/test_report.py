"""What a model's folder says of its heads, in the model menu: a table to sort and to open heads from; nothing stale.

Plan: the dialog shows the numbers of heads.json and card.json, sorts by a column and opens a head, with the keyboard;
a head of a model that is not in use loads that model; a model without a report says so in one line; stale and broken
files are named with the reason, and the page of that model is as any other's.
"""

import json

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, until, wait_picture
from tests.page.test_tiny import GENERIC
from weights.places import OWN_MODELS
from weights.training.summary import NAMED

pytestmark = pytest.mark.chromium

REPORT = json.loads((OWN_MODELS / "tiny" / "heads.json").read_text("utf-8"))
HEADS, MEASURED_ON = REPORT["heads"], REPORT["measured_on"]
CARD = json.loads((OWN_MODELS / "tiny" / "card.json").read_text("utf-8"))


def open_report(page: Page) -> None:
    """Open the embedded model's report with the keyboard."""
    page.locator("#model-button").press("Enter")
    page.get_by_role("button", name="What its heads do: Tiny").press("Enter")
    page.wait_for_selector("#report-dialog[open]")


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"#report-heads tbody td:nth-child({number})").all_text_contents()


def shown(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def test_report_shows_every_head_sorts_and_opens(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    open_report(page)
    assert column(page, 3) == [shown(head["induction"]) for head in HEADS]
    assert column(page, 6) == [shown(head["selectivity"]) for head in HEADS]
    best = {score: max(head[score] for head in HEADS) for score in HEADS[0] if score not in ("layer", "head", "called")}
    assert min(best.values()) < NAMED  # a column whose best is nothing has nothing bold
    named = [shown(value) for score, value in best.items() if value >= NAMED]
    bold = page.locator("#report-heads td.best").all_text_contents()
    assert set(bold) == set(named) and len(bold) >= len(named)
    page.get_by_role("button", name="induction", exact=True).press("Enter")
    assert page.locator("#report-heads th[aria-sort=descending]").text_content() == "induction"
    values = sorted((head["induction"] for head in HEADS), reverse=True)
    assert column(page, 3) == [shown(value) for value in values]
    assert page.locator("#report-heads tbody tr").first.locator("strong").first.text_content() == "0.96"
    stories = page.locator("#report-depth tr", has_text="TinyStories: nats").locator("td").all_text_contents()
    wanted = CARD["measured"]["depth"]["tinystories_sample.txt"]["cross_entropy"]
    assert stories == [f"{value:.2f}" for value in wanted]
    words = page.locator("#report-dialog").text_content()
    assert "CDLA-Sharing-1.0" in words and "agrees with the model’s final answer" in words
    assert ".txt" not in words and ".py" not in words
    assert page.locator(".report-terms dt").count() == page.locator("#report-heads thead button").count()
    about = page.locator(".report-terms dd").all_text_contents()
    assert all(text.endswith(f"; measured on {on}") for text, on in zip(about, MEASURED_ON.values(), strict=True))
    page.get_by_role("button", name="L3 H1: open this head").press("Enter")
    page.wait_for_selector("#head[data-head='L3 H1']")
    assert not page.locator("#report-dialog").is_visible()
    watched.assert_clean(tiny_server.url)


def test_focus_returns_from_the_report_to_the_menu(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    for leave in ("Escape", "Enter"):  # Enter: on Close, the first control of the dialog
        open_report(page)
        page.keyboard.press(leave)
        page.wait_for_selector("#report-dialog", state="hidden")
        assert page.evaluate("document.activeElement.id") == "model-button", leave


FOCUS = "document.activeElement.textContent"


def test_report_table_is_one_tab_stop_and_arrows_go_through_it(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    open_report(page)
    stops = "document.querySelectorAll('#report-heads [tabindex=\"0\"]').length"
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS) == "L0 H0" and page.evaluate(stops) == 1
    for keys, focus in (
        ("ArrowDown ArrowDown ArrowRight", shown(HEADS[2]["previous_token"])),
        ("End ArrowRight", shown(HEADS[2]["look_up"])),
        ("PageDown PageDown PageDown PageDown Home", "L3 H7"),
        ("ArrowDown ArrowLeft", "L3 H7"),
        ("Control+Home ArrowUp ArrowRight", "previous-token"),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        assert page.evaluate(FOCUS) == focus, keys
        assert page.evaluate(stops) == 1, keys
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUS) == "previous-token" and page.evaluate(stops) == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    best = max(HEADS, key=lambda head: head["previous_token"])
    assert page.evaluate(FOCUS) == f"L{best['layer']} H{best['head']}"
    header = "document.querySelector('#report-heads thead th').getBoundingClientRect().bottom"
    page.keyboard.press("Control+End")
    page.keyboard.press("Home")
    for _ in HEADS[1:]:
        page.keyboard.press("ArrowUp")
        covered = f"document.activeElement.getBoundingClientRect().top < {header} - 1"
        assert not page.evaluate(covered), "the head of the table lies over the focus"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.contains(document.querySelector('#report-depth'))")
    watched.assert_clean(tiny_server.url)


PHONE = {"width": 390, "height": 844}
INSIDE = """(selector) => [...document.querySelectorAll(selector)].every((element) => {
  const { left, right } = element.getBoundingClientRect();
  return left >= 0 && right <= innerWidth;
})"""


def test_menu_and_report_fit_a_phone(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    page.set_viewport_size(PHONE)
    page.locator("#model-button").click()
    page.wait_for_selector("#model-panel button:has-text('Use')")
    assert page.evaluate(INSIDE, "#model-panel, #model-panel *")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.locator(".report-button").first.click()
    dialog = "document.querySelector('#report-dialog')"
    assert page.evaluate(f"{dialog}.scrollWidth <= {dialog}.clientWidth")
    box = "document.querySelector('#report-heads').parentElement"
    assert page.evaluate(f"{box}.scrollWidth > {box}.clientWidth")
    assert "gradient" in page.evaluate(f"getComputedStyle({box}).backgroundImage")
    assert page.evaluate(INSIDE, ".table-scroll")
    watched.assert_clean(tiny_server.url)


def test_head_of_a_model_not_in_use_loads_it(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url + "#m=small")
    open_report(page)
    page.get_by_role("button", name="L1 H7: open this head").click()
    page.wait_for_selector("#head[data-head='L1 H7']")
    wait_picture(page)
    assert page.locator("#model-button").text_content().startswith("Tiny")
    watched.assert_clean(tiny_server.url)


def test_model_without_a_report_says_so_in_one_line(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    page.locator("#model-button").click()
    row = page.locator("#model-panel .menu-row", has_text="small").first
    assert "Its heads were not measured" in row.text_content()
    assert row.get_by_role("button", name="What its heads do").count() == 0


def test_stale_and_broken_files_are_named_and_the_page_is_whole(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url + "#m=stale")
    assert page.locator("#prompt-text").input_value() == GENERIC
    assert page.locator("#example-says").is_hidden() and page.locator("#known-heads").is_hidden()
    assert page.locator("#wall .known").count() == 0
    assert page.locator("#wall-order optgroup").count() == 1
    page.locator("#model-button").click()
    page.wait_for_selector("#model-panel .problem")
    problems = page.locator("#model-panel .menu-row[aria-current] .problem").all_text_contents()
    assert [text.split(" ")[0] for text in problems] == ["heads.json", "prompts.json"]
    assert "measured on other weights" in problems[0] and "is not JSON" in problems[1]
    until(
        page, "document.querySelector('#model-panel .menu-row[aria-current] .report-button')"
    )  # card.json still counts
    watched.assert_clean(tiny_server.url)
