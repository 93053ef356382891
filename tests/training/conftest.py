"""What the tests of the embedded model share: its folder, and one run of the evaluation."""

import json
from pathlib import Path

import pytest

from weights.places import OWN_MODELS


@pytest.fixture(scope="session")
def tiny() -> Path:
    """The committed model's folder."""
    return OWN_MODELS / "tiny"


@pytest.fixture(scope="session")
def card(tiny) -> dict:
    """The committed model's card."""
    return json.loads((tiny / "card.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def report(tiny):
    """The evaluation of the committed model, run once."""
    from weights.training.evaluate import evaluate

    return evaluate(tiny)
