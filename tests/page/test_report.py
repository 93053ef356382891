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

pytestmark = pytest.mark.chromium

HEADS = json.loads((OWN_MODELS / "tiny" / "heads.json").read_text("utf-8"))["heads"]
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
    assert page.locator("#report-heads td.best").count() >= len(page.locator("#report-heads thead button").all())
    page.get_by_role("button", name="induction", exact=True).press("Enter")
    assert page.locator("#report-heads th[aria-sort=descending]").text_content() == "induction"
    values = sorted((head["induction"] for head in HEADS), reverse=True)
    assert column(page, 3) == [shown(value) for value in values]
    assert page.locator("#report-heads tbody tr").first.locator("strong").first.text_content() == "0.96"
    stories = (
        page.locator("#report-depth tr", has_text="tinystories_sample.txt: nats").locator("td").all_text_contents()
    )
    wanted = CARD["measured"]["depth"]["tinystories_sample.txt"]["cross_entropy"]
    assert stories == [f"{value:.2f}" for value in wanted]
    assert "CDLA-Sharing-1.0" in page.locator("#report-dialog").text_content()
    page.get_by_role("button", name="L3 H1: open this head").press("Enter")
    page.wait_for_selector("#head[data-head='L3 H1']")
    assert not page.locator("#report-dialog").is_visible()
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
