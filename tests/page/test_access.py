"""Keyboard, screen readers, widths, colours: nothing needs a mouse, a wide screen or light.

Plan: a keyboard-only walk from the prompt to one cell of one head and one lens cell; axe finds nothing serious in any
view in either theme; no width scrolls sideways; the theme survives a reload.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import ROOT, Held, Server, Watched, open_link, until, wait_lens, wait_picture

pytestmark = pytest.mark.chromium

AXE = ROOT / "static" / "node_modules" / "axe-core" / "axe.min.js"
LINK = "#p=the%20cat%20sat"


def tab_to(page: Page, inside: str, most: int = 40) -> None:
    """Press Tab until the focus is inside this element."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.querySelector('{inside}').contains(document.activeElement)"):
            return
    focus = page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    raise AssertionError(f"Tab never reached {inside}; the focus is on {focus}")


def test_keyboard_walk_from_prompt_to_cell_to_lens(page: Page):
    open_link(page, LINK)
    wait_picture(page)
    wait_lens(page)
    tab_to(page, "#prompt-text")
    page.keyboard.press("Control+A")
    page.keyboard.type("on the mat")
    until(page, "document.querySelector('#chips').dataset.count == 6")
    wait_picture(page)
    tab_to(page, "#chips")
    page.keyboard.press("ArrowLeft")
    until(page, "document.querySelector('#row-title').textContent.startsWith('Query 4 ')")
    tab_to(page, ".wall-grid")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "L1 H1, K/V group 0"
    page.keyboard.press("Enter")
    page.wait_for_selector("#head[data-head='L1 H1']")
    tab_to(page, "#heatmap")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    until(page, "/^query 3 .*, key 2 .*: weight /.test(document.querySelector('#cell-readout').textContent)")
    said = "document.querySelector('#announce').textContent"
    until(page, said + " === document.querySelector('#cell-readout').textContent")
    tab_to(page, "#lens")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    until(page, "document.activeElement.id === 'lens-3-2'")
    until(page, "document.querySelector('#cell-title').textContent.startsWith('After layer 2 at')")
    tab_to(page, "#next")


@pytest.mark.parametrize("bars", ["#row-bars", "#cell-bars", "#next-bars"])
def test_bars_are_one_tab_stop_and_arrows_go_through_them(page: Page, bars: str):
    open_link(page, LINK)
    wait_picture(page)
    wait_lens(page)
    stops = f"document.querySelectorAll('{bars} .bar:not([tabindex=\"-1\"])').length"
    assert page.locator(f"{bars} .bar").count() > 2
    assert page.evaluate(stops) == 1
    page.locator(f"{bars} .bar[tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    focused = f"[...document.querySelectorAll('{bars} .bar')].indexOf(document.activeElement)"
    assert page.evaluate(focused) == 2
    page.keyboard.press("Enter")
    until(page, f"document.querySelectorAll('{bars} .bar')[2].ariaPressed === 'true'")
    assert page.evaluate(focused) == 2
    assert page.evaluate(stops) == 1


LINKS = {
    "heatmap": "",
    "arcs": "&v=arcs",
    "table": "&v=table",
    "zoomed": "&z=0,8,0,8&s=row&x=1",
    "ordered": "&o=prompt.first_token",
}
OPENERS = {
    "menu": ("#model-button", "#model-panel li"),
    "help": ("#help", "dialog[open]"),
    "verify": ("#proof-badge", "dialog[open]"),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, theme: str):
    page.emulate_media(color_scheme=theme)
    page.evaluate(AXE.read_text("utf-8"))
    for name, extra in LINKS.items():
        open_link(page, LINK + extra)
        wait_picture(page)
        wait_lens(page)
        assert not serious(page), name
    for name, (button, opened) in OPENERS.items():
        page.locator(button).click()
        page.wait_for_selector(opened)
        assert not serious(page), name
        page.keyboard.press("Escape")
    open_link(page, "#p=")
    page.wait_for_selector("#head .empty:visible")
    assert not serious(page), "empty"
    open_link(page, "#p=" + "a%20b%20" * 96)
    page.wait_for_selector("#prompt-error:visible")
    assert not serious(page), "refused"
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_measured_model(watched: Watched, tiny_server: Server, theme: str):
    watched.page.emulate_media(color_scheme=theme)
    page = watched.open(tiny_server.url)
    wait_lens(page)
    page.evaluate(AXE.read_text("utf-8"))
    assert not serious(page), "opening"
    open_link(page, "#o=measured.induction&f=known")
    page.wait_for_selector(".wall-captions span")
    assert not serious(page), "ordered"
    page.locator("#model-button").click()
    page.locator(".report-button").first.click()
    page.wait_for_selector("#report-dialog[open]")
    assert not serious(page), "report"


def serious(page: Page) -> list:
    """What axe finds of serious or critical impact: rule, places, words."""
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
    return [
        (violation["id"], [(node["html"][:160], node["failureSummary"][:300]) for node in violation["nodes"][:3]])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


def test_no_width_scrolls_sideways(page: Page):
    sections = "[...document.querySelectorAll('main > section')]"
    for width in (320, 360, 768, 800, 1024, 1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        if width >= 720:
            lines = 2 if width >= 1360 else 1  # 16 px each
            assert page.locator("#device").bounding_box()["height"] < 16 * lines + 4, width
            device = "document.querySelector('#device')"
            assert page.evaluate(f"{device}.scrollWidth <= {device}.clientWidth"), width
        for view in ("table", "arcs", "heatmap"):
            page.locator(f"[data-view={view}]").click()
            until(page, f"document.querySelector('[data-view={view}]').ariaPressed === 'true'")
            wait_picture(page)
            until(page, "document.documentElement.scrollWidth <= innerWidth", 5000)
        assert page.evaluate(sections + ".map((s) => s.id)") == ["prompt", "wall", "head", "depth", "cell", "next"]
        if width < 720:
            tops = page.evaluate(sections + ".map((section) => section.getBoundingClientRect().top)")
            assert tops == sorted(tops)


def test_no_button_of_the_top_bar_stands_alone_on_a_line(page: Page):
    tops = "[...document.querySelectorAll('.top > button')].map((button) => button.getBoundingClientRect().top)"
    for width in (320, 360, 390, 412, 430, 600):
        page.set_viewport_size({"width": width, "height": 800})
        for proof in ("not verified here", "oracle’s numbers", "verifying", "out of tolerance"):
            page.evaluate("(words) => (document.querySelector('#proof-badge').textContent = words)", proof)
            lines = page.evaluate(tops)
            assert all(lines.count(top) > 1 for top in lines), (width, proof, lines)
    page.evaluate("document.querySelector('#proof-badge').textContent = 'not verified here'")


def test_line_that_names_a_head_covers_nothing_above_the_wall(page: Page):
    """On a phone it sticks to the screen's edge while the wall goes on below, and stays beside the wall."""
    page.set_viewport_size({"width": 390, "height": 800})
    top = "document.querySelector('{}').getBoundingClientRect().top"
    page.set_viewport_size({"width": 390, "height": int(page.evaluate(top.format("#wall-title"))) + 40})
    assert page.evaluate(f"{top.format('#wall-title')} < innerHeight && {top.format('.wall-scroll')} > innerHeight")
    assert page.evaluate(f"{top.format('#wall-readout')} >= {top.format('.wall-scroll')}")


def test_top_bar_of_a_long_model_name_is_not_cut(page: Page):
    """The longest name and device that are met, on a usual desktop."""
    page.evaluate(
        """() => {
          const button = document.querySelector("#model-button");
          button.firstChild.textContent = "SmolLM2-135M-Instruct";
          button.lastChild.textContent = " 30 layers × 9 heads (3 K/V) · 97 MB";
        }"""
    )
    cut = "(({{scrollWidth, clientWidth}}) => scrollWidth > clientWidth)(document.querySelector('{}'))"
    for width in (1280, 1366, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for part in ("#model-button", "#device"):
            assert not page.evaluate(cut.format(part)), (part, width)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    longest = "'W'.repeat(80)"  # weights/catalogue.py cuts a card's name there
    page.evaluate(f"document.querySelector('#model-button').firstChild.textContent = {longest}")
    for width in (320, 800, 1280, 1366, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, "document.documentElement.scrollWidth <= innerWidth", 5000)  # pictures follow a moment later
        assert page.locator("#help").bounding_box()["x"] < width
    page.reload()
    wait_picture(page)


def test_theme_is_kept(watched: Watched, small_server: Server):
    page = watched.open(small_server.url, ready=False)
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.locator("#theme").text_content() == "Theme: dark"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_first_paint_does_not_wait_for_weights(watched: Watched, small_server: Server):
    """With the weights held back, the page already has its prompt, its chips and the names of all heads."""
    weights = Held(watched.page, "**/model.safetensors")
    page = watched.open(small_server.url, ready=False)
    page.wait_for_selector(".chip")
    page.wait_for_selector("#head-3-3", state="attached")
    assert page.locator("#next-bars li").count() == 0
    until(page, "document.querySelector('.progress-line:not([hidden])')")
    weights.release()
    wait_picture(page)


SMALL_TARGETS = """() => {
  const small = [];
  for (const each of document.querySelectorAll("button, select, summary, a, input, [role=option]")) {
    const { width, height } = each.getBoundingClientRect();
    const seen = each.checkVisibility() && width > 1 && !each.closest(".skip");
    if (seen && Math.min(width, height) < 24) small.push(each.outerHTML.slice(0, 90));
  }
  return small;
}"""


@pytest.mark.parametrize("view", ["heatmap", "arcs", "table"])
def test_what_is_pressed_is_at_least_24_pixels_in_both_directions(page: Page, view: str):
    """The cells of wall and lens, which are data first, are larger where a finger presses them."""
    open_link(page, f"#p=a.%20the%20cat%20.&v={view}")
    wait_picture(page)
    wait_lens(page)
    assert page.evaluate(SMALL_TARGETS) == []
