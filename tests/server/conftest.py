"""One server with one small model for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.app import create_app
from server.settings import load_settings
from tests.server.small import Live, live, write_model


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that holds the model `small`, and `refused`, whose config cannot be run exactly."""
    folder = tmp_path_factory.mktemp("cache")
    write_model(folder / "models" / "small")
    write_model(folder / "models" / "refused", hidden_act="gelu")
    return folder


@pytest.fixture
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the catalogue look into that cache."""
    monkeypatch.setenv("PLAYGROUND_CACHE", str(cache))
    return cache


@pytest.fixture(scope="module")
def server(cache: Path) -> Iterator[Live]:
    """A running server whose default model is `small`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYGROUND_CACHE", str(cache))
        with live(create_app(load_settings(model="small", max_body_bytes=4096, oracle_max_tokens=32))) as running:
            yield running
