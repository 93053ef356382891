"""One Node.js for the folder, one set of kernels on this machine's driver."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="package")
def mirror(node: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """Ask tests/bench/mirror.mjs: {"answer": ...} or {"error": sentence}."""
    process = subprocess.Popen(
        [node, "tests/bench/mirror.mjs"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(what: str, **given: Any) -> dict[str, Any]:
        process.stdin.write(json.dumps({"what": what, **given}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait(20)
    process.stdout.close()


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few short batches: these tests ask whether a figure appears, not how large it is."""
    from bench import ceilings, timing, turns

    monkeypatch.setattr(turns, "ROUNDS", ())
    monkeypatch.setattr(turns, "REPEATS", 0)
    monkeypatch.setattr(timing, "BATCH_MS", 1.0)
    monkeypatch.setattr(ceilings, "READ_BYTES", 1 << 20)
    monkeypatch.setattr(ceilings, "FMA_TURNS", 8)
    monkeypatch.setattr(ceilings, "CEILING_MS", 0.0)
