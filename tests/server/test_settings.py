"""Settings: what cannot work is refused at start with one sentence, and every setting is documented."""

from pathlib import Path

import pytest

from server.settings import PREFIX, BadSettings, Settings, load_settings
from tests.server.small import Live


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("PLAYGROUND_PORT", "http", "PORT"),
        ("PLAYGROUND_PORT", "70000", "PORT"),
        ("PLAYGROUND_PORT", "-1", "PORT"),
        ("PLAYGROUND_HOST", "", "HOST"),
        ("PLAYGROUND_ALLOWED_HOSTS", "http://a.example", "ALLOWED_HOSTS"),
        ("PLAYGROUND_ALLOWED_HOSTS", "*", "ALLOWED_HOSTS"),
        ("PLAYGROUND_MAX_BODY_BYTES", "0", "MAX_BODY_BYTES"),
        ("PLAYGROUND_ORACLE_TIMEOUT_S", "0", "ORACLE_TIMEOUT_S"),
        ("PLAYGROUND_ORACLE_TIMEOUT_S", "nan", "ORACLE_TIMEOUT_S"),
        ("PLAYGROUND_ORACLE_TIMEOUT_S", "inf", "ORACLE_TIMEOUT_S"),
        ("PLAYGROUND_ORACLE_WAITING", "-1", "ORACLE_WAITING"),
        ("PLAYGROUND_PROT", "80", "PLAYGROUND_PORT exists"),
        ("PLAYGROUND_XYZZY", "1", "server/README.md"),
    ],
)
def test_setting_impossible_is_one_sentence(name: str, value: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_settings()  # the control: without it everything is in order
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings) as caught:
        load_settings()
    message = str(caught.value)
    assert word in message and "\n" not in message and message.endswith(".")


def test_setting_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYGROUND_PORT", "8123")
    monkeypatch.setenv("PLAYGROUND_ALLOWED_HOSTS", "a.example, B.example")
    settings = load_settings(host="::1")
    assert settings.port == 8123 and load_settings(port=1).port == 1
    assert settings.hosts >= {"a.example", "b.example", "127.0.0.1", "localhost", "::1"}


def test_every_setting_is_documented(root: Path) -> None:
    text = (root / "server" / "README.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| `{PREFIX}")]
    assert len(rows) == len(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        row = next((row for row in rows if row.startswith(f"| `{PREFIX}{name.upper()}` |")), None)
        assert row is not None, f"{name} is missing in server/README.md"
        assert field.description and field.description in row, f"server/README.md should say: {field.description}"


def test_every_route_is_documented(root: Path) -> None:
    from server.app import create_app

    text = (root / "server" / "README.md").read_text("utf-8")
    paths = {path for path in paths_of(create_app(load_settings()).routes)}
    assert len(paths) > 8
    for path in paths:
        shown = path.replace(":path", "").replace("{", "<").replace("}", ">")
        assert f"`{shown}`" in text, f"{shown} is missing in server/README.md"


def test_every_field_of_the_list_of_models_is_documented(root: Path, server: Live) -> None:
    text = (root / "server" / "README.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `/api/models`"))
    told = row[row.index("models: [{") + len("models: [{") : row.index("}]}")].split(", ")
    models = server.ask("GET", "/api/models").json()["models"]
    assert {"refused" in model for model in models} == {True, False}
    for model in models:
        fields = set(model) - {"refused"}
        assert fields <= set(told) if "refused" in model else fields == set(told)


def paths_of(routes) -> list[str]:
    """Paths of all routes, those of included routers too."""
    found = []
    for route in routes:
        inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        found += paths_of(inner) if inner else [route.path]
    return found
