"""Fixtures of the hosts' tests: the page's modules in Node.js and in a browser, a device, models on it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkpoints import checkpoint
from tests.hosts.browser import Browser, open_browser

HERE = Path(__file__).parent


class MirrorError(Exception):
    """What the JavaScript side threw: its class name, code and message."""

    def __init__(self, name: str, code: str | None, message: str) -> None:
        super().__init__(message)
        self.name, self.code, self.message = name, code, message


class Mirror:
    """The page's host in one Node.js process that answers question after question."""

    def __init__(self, node: str) -> None:
        self.process = subprocess.Popen(
            [node, str(HERE / "mirror.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, ask: str, **given):
        """One answer; raises MirrorError for what was thrown."""
        self.process.stdin.write(json.dumps({"ask": ask, **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "Node.js ended early"
        answer = json.loads(line)
        if "error" in answer:
            raise MirrorError(**answer["error"])
        return answer["ok"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def mirror(node):
    opened = Mirror(node)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A page with the host's modules; one device serves all models of a file."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def llama(browser) -> Browser:
    """The same with a small Llama loaded anew."""
    browser.open("llama-gqa", checkpoint("llama-gqa").folder)
    return browser


@pytest.fixture(scope="session")
def device():
    from webgpu.device import request_device

    return request_device()


@pytest.fixture(scope="session")
def kernels(device):
    """Kernels compiled once for every model of the session."""
    from webgpu.kernels import Kernels

    return Kernels(device)


@pytest.fixture
def load(device, kernels):
    """A function that loads a checkpoint folder; its models are freed after the test."""
    from webgpu.runtime import Model

    models = []

    def load(folder, **options):
        models.append(Model.load(device, folder, kernels=kernels, **options))
        return models[-1]

    yield load
    for model in models:
        model.destroy()
