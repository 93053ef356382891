"""The three drivers; a missing one fails the test with the command that installs it."""

import pytest

from tests.hosts.browser import open_browser
from tests.kernels import drivers


@pytest.fixture(scope="session")
def driver():
    """naga on the machine's default driver: llvmpipe where there is no GPU."""
    return drivers.Wgpu()


@pytest.fixture(scope="session")
def swiftshader():
    """naga on SwiftShader, in a child process."""
    child = drivers.SwiftShader()
    yield child
    child.close()


@pytest.fixture(scope="module")
def tint():
    """Tint on SwiftShader, in Chromium."""
    with open_browser() as browser:
        yield drivers.Chromium(browser.ask)
