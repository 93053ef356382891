"""The address restores exactly this view; a hostile address gives the defaults and a sentence."""

import json

import pytest
from playwright.sync_api import Page

from tests.page.harness import Server, Watched, open_link, type_prompt, until, wait_lens, wait_picture

pytestmark = pytest.mark.chromium

VIEW = """((find) => ({
  prompt: find('#prompt-text').value, head: find('#head').dataset.head, scale: find('#scale').value,
  token: find('.chip[aria-selected=true]').dataset.token, readout: find('#cell-readout').textContent,
  noFirst: find('#no-first').ariaPressed, view: find('.segments [aria-pressed=true]').dataset.view,
  cell: find('#cell-title').textContent, rank: find('#ranks h3')?.textContent, zoom: find('.overview p').textContent,
}))((selector) => document.querySelector(selector))"""


def test_link_restores_the_whole_view(watched: Watched, small_server: Server):
    page = watched.open(small_server.url + "#p=the%20cat%20sat%20on%20the%20mat")
    page.locator("#head-3-1").click()
    page.locator("#scale").select_option("sqrt")
    page.locator("#no-first").click()
    page.locator(".chip[data-token='8']").click()
    page.locator("#row-bars .bar").nth(1).click()
    wait_lens(page)
    page.locator("#lens-2-8").click()
    page.locator("#next-bars .bar").nth(3).click()
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_selector(".overview:visible")
    until(page, "document.querySelector('#ranks h3')")
    until(page, "['z=', 'g=', 'd=2'].every((part) => location.hash.includes(part))")
    before = page.evaluate(VIEW)
    second = watched.context.new_page()
    second.goto(page.url)
    wait_picture(second)
    until(second, f"JSON.stringify({VIEW}) === {json.dumps(page.evaluate(f'JSON.stringify({VIEW})'))}")
    assert second.evaluate(VIEW) == before
    watched.assert_clean(small_server.url)


HOSTILE = [
    "l=-1&h=1e9&t=abc&z=1,2,3&v=evil&s=%00&k=%E0%A4%A",
    "m=../../etc/passwd&p=ok",
    "p=%ED%A0%80&&&=&==&nonsense=1",
    "l=999&h=999&t=999&d=999&g=999999&z=900,5,900,5",
]


@pytest.mark.parametrize("link", [*HOSTILE, "p=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"])
def test_hostile_link_gives_a_usable_view(page: Page, link: str):
    open_link(page, link)
    wait_picture(page)
    assert page.locator("#head").get_attribute("data-head") is not None
    if link in HOSTILE:
        page.wait_for_selector("#notice-link")


def test_what_a_link_could_not_get_is_told_of_that_link_only(page: Page):
    open_link(page, "l=99&p=the%20cat")
    wait_picture(page)
    page.wait_for_selector("#notice-link")
    open_link(page, "p=the%20cat%20sat")
    wait_picture(page)
    page.wait_for_selector("#notice-link", state="detached")
    page.locator(".chip").nth(3).click()
    until(page, "location.hash.includes('t=3')")
    type_prompt(page, "hi")
    wait_picture(page)
    until(page, "document.querySelectorAll('.chip').length === 2 && !location.hash.includes('t=')")
    assert page.locator("#notice-link").count() == 0, "nobody asked for a token of this prompt"


def test_zoom_outside_the_prompt_becomes_the_whole_picture(page: Page):
    open_link(page, "p=the%20cat%20sat")
    wait_picture(page)
    open_link(page, "p=the%20cat%20sat&z=900,5,900,5")
    page.wait_for_selector("#notice-link:has-text('a zoom up to query 904 and key 904')")
    until(page, "!location.hash.includes('z=')")
    assert page.locator(".overview").is_hidden()


def test_hostile_link_at_the_start_gives_a_usable_view(watched: Watched, small_server: Server):
    page = watched.open(small_server.url + "#" + "&".join(HOSTILE))
    page.wait_for_selector("#notice-link")
    watched.assert_clean(small_server.url)


def test_share_copies_the_address(watched: Watched, small_server: Server):
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=small_server.url)
    page: Page = watched.open(small_server.url + "#p=ab")
    page.locator("#head-1-2").click()
    page.locator("#share").click()
    heights = "['wall', 'head', 'depth'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
    page.wait_for_selector("#share:has-text('Link copied')")
    during = page.evaluate(heights)
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert "l=1&h=2" in page.url
    page.wait_for_selector("#share:has-text('Share')")
    page.locator("#copy-head").click()
    page.wait_for_selector("#copy-head:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()").startswith("query/key\t0 a\t1 b\n0 a\t")
    assert page.evaluate(heights) == during  # saying so moves nothing


def test_link_holds_the_generation_settings(watched: Watched, small_server: Server):
    page = watched.open(small_server.url + "#p=ab")
    page.evaluate("document.querySelector('#next details').open = true")
    for name, value in {"temperature": "0.8", "top-k": "40", "top-p": "0.9", "seed": "7", "max-tokens": "3"}.items():
        page.locator(f"#sampling-{name}").fill(value)
    until(page, "location.hash === '#gt=0.8&gk=40&gp=0.9&gs=7&gn=3&p=ab'")
    page.locator("#sampling-top-p").fill("7")  # not a setting: the link keeps the last one that was
    second = watched.context.new_page()
    second.goto(page.url)
    wait_picture(second)
    read = "[...document.querySelectorAll('.sampling input')].map((field) => field.value)"
    assert second.evaluate(read) == ["0.8", "40", "0.9", "7", "3"]
    second.evaluate("document.querySelector('#next details').open = true")
    second.locator("#generate").click()
    until(second, "document.querySelector('#generate-note').textContent.startsWith('3 tokens in')")
    watched.assert_clean(small_server.url)


def test_back_returns_to_the_example_before(watched: Watched, small_server: Server):
    """Choosing an example is an entry of the history, looking around in it is not."""
    page = watched.open(small_server.url + "#p=ab")
    entries = page.evaluate("history.length")
    for i, (name, text) in enumerate((("Capital", "The"), ("Repetition", "jump"), ("Repetition", "jump"))):
        page.get_by_role("button", name=name, exact=True).click()
        until(page, f"history.length === {entries + 1 + i} && /^#p={text}/.test(location.hash)")
        wait_picture(page)
        page.locator("#head-1-2").click()
        until(page, f"history.length === {entries + 1 + i} && /^#l=1&h=2&p={text}/.test(location.hash)")
    capital = "#l=1&h=2&p=The%20capital%20of%20France%20is"
    page.go_back()  # from the example with another head to the example as it was chosen the first time
    page.go_back()
    until(page, f"location.hash === '{capital}'")
    wait_picture(page)
    assert page.locator("#prompt-text").input_value() == "The capital of France is"
    page.go_back()
    until(page, "location.hash === '#p=ab'")
    wait_picture(page)
    assert page.locator("#prompt-text").input_value() == "ab"
    page.go_forward()
    until(page, f"location.hash === '{capital}'")
    watched.assert_clean(small_server.url)


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_table_view_cuts_no_column(page: Page, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    open_link(page, "#v=table&p=the%20characteristically%20long%20words%20of%20internationalisation")
    wait_picture(page)
    until(page, "document.querySelector('.head-table table tbody tr')")
    until(page, "((box) => box.scrollWidth <= box.clientWidth)(document.querySelector('.head-table .table-scroll'))")
    columns = page.locator(".head-table thead th").count() - 1
    assert columns >= 2
    page.get_by_role("button", name="Keys before").click()
    until(page, "document.querySelectorAll('.head-table tbody td.on').length === 1")  # drawn a moment later
