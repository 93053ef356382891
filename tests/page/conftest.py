"""One Chromium and one server per model for the whole folder; a fresh context per test."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.page.harness import SWIFTSHADER, Server, Watched, launch, open_link, running_server, wait_picture, watch
from tests.page.small import make_small_model
from weights.places import OWN_MODELS

WIDE = {"width": 1440, "height": 900}


# Scope "package": Playwright's event loop and Chromium's GPU work end with this folder; tests after it need both gone.
@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """Chromium with WebGPU on its software adapter."""
    browser = launch(playwright, chromium, *SWIFTSHADER)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_model(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="package")
def small_server(small_model: Path) -> Iterator[Server]:
    with running_server(small_model) as server:
        yield server


@pytest.fixture(scope="package")
def tiny_server(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded model as the default; in the cache, `small`, and `stale`: a copy whose reports went wrong."""
    cache = tmp_path_factory.mktemp("cache")
    shutil.copytree(small_model, cache / "models" / "small")
    stale = shutil.copytree(OWN_MODELS / "tiny", cache / "models" / "stale")
    heads = json.loads((stale / "heads.json").read_text("utf-8"))
    (stale / "heads.json").write_text(json.dumps({**heads, "model_sha256": "0" * 64}), "utf-8")
    card = json.loads((stale / "card.json").read_text("utf-8"))
    (stale / "card.json").write_text(json.dumps({**card, "name": "Stale"}), "utf-8")
    (stale / "prompts.json").write_text('{"prompts": [', "utf-8")
    with running_server("tiny", PLAYGROUND_CACHE=str(cache)) as server:
        yield server


@pytest.fixture(scope="package")
def large_server(smollm2: Path) -> Iterator[Server]:
    with running_server("smollm2-135m") as server:
        yield server


@pytest.fixture(scope="package")
def _shared(browser: Browser, small_server: Server) -> Iterator[Watched]:
    context = browser.new_context(viewport=WIDE, color_scheme="light", reduced_motion="reduce")
    shared = watch(context)
    shared.open(small_server.url)
    yield shared
    context.close()


@pytest.fixture
def shared(_shared: Watched, small_server: Server) -> Iterator[Watched]:
    """A page on the small model that is opened once and brought back to its first view for each test."""
    page = _shared.page
    page.set_viewport_size(WIDE)
    page.evaluate("document.querySelectorAll('dialog[open]').forEach((dialog) => dialog.close())")
    open_link(page, "#p=")
    open_link(page, "")
    wait_picture(page)
    _shared.problems.clear()
    yield _shared
    _shared.assert_clean(small_server.url)


@pytest.fixture
def page(shared: Watched) -> Page:
    return shared.page


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A page in a fresh context, 1440 x 900, light."""
    context = browser.new_context(viewport=WIDE, color_scheme="light")
    yield watch(context)
    context.close()
