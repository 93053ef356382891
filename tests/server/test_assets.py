"""Static files, vendor modules and kernels: what is there is served with a type and a tag, and nothing else exists.

Each hostile path has a control beside it, so that a 404 means refusal and not a wrong test.
"""

import json
import re
from pathlib import Path

import pytest

from server import assets
from server.assets import find_static, static_base
from server.errors import NotFound
from tests.server.small import Live

HOSTILE = [
    "/static/../play.py",
    "/static/%2e%2e/play.py",
    "/static/%2E%2E%2Fplay.py",
    "/static/app/../../play.py",
    "/static/app/..%2f..%2fpyproject.toml",
    "/static/..%5cplay.py",
    "/static//etc/passwd",
    "/static/%2fetc/passwd",
    "/static/app/theme.js%00",
    "/static/app/theme.js%00.css",
    "/static/%00",
    "/static/.",
    "/static/",
    "/static/app",
    "/static/app/",
    "/static/app/theme.js/",
    "/static/./app/theme.js",
    "/static/APP/../app/theme.js",
    "/static/package.json",
    "/static/package-lock.json",
    "/static/node_modules/@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "/static/app/.hidden.js",
    "/static/%ff%fe.js",
    "/static/" + "a" * 5000 + ".js",
    "/vendor/../app/theme.js",
    "/vendor/tokenizers.mjs%00",
    "/vendor/@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "/vendor/",
    "/vendor/package.json",
    "/kernels/../device.py",
    "/kernels/device.py",
    "/kernels/runtime.py",
    "/kernels/manifest.json%00",
    "/kernels/%2e%2e%2fplay.py",
    "/kernels/",
    "/kernels/v-0123456789abcdef/device.py",
    "/kernels/v-0123456789abcdef/../device.py",
    "/kernels/v-0123456789abcdef/",
    "/kernels/app/manifest.json",
    "/models/small/../../x/config.json",
    "/models/small/" + "0" * 64 + "/config.json",
    "/models/../models/small/x/config.json",
    "/docs",
    "/redoc",
    "/openapi.json",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_path_hostile_is_not_found(server: Live, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.status == 404 and answer.code in ("not-found", "unknown-model")


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/static/app/theme.js", "text/javascript; charset=utf-8"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/favicon.ico", "image/svg+xml"),
        ("/vendor/tokenizers.mjs", "text/javascript; charset=utf-8"),
        ("/kernels/manifest.json", "application/json"),
        ("/kernels/attention_fa2.wgsl", "text/plain; charset=utf-8"),
        ("/healthz", "application/json"),
    ],
)
def test_path_known_is_served_with_its_type(server: Live, path: str, media_type: str) -> None:
    got, head = server.ask("GET", path), server.ask("HEAD", path)
    assert got.status == head.status == 200
    assert got.headers["content-type"] == head.headers["content-type"] == media_type
    assert head.body == b"" and int(head.headers["content-length"]) == len(got.body) > 0


def test_asset_unchanged_is_not_sent_again(server: Live) -> None:
    first = server.ask("GET", "/static/app/theme.js")
    again = server.ask("GET", "/static/app/theme.js", headers={"If-None-Match": first.headers["etag"]})
    other = server.ask("GET", "/static/app/theme.js", headers={"If-None-Match": '"other"'})
    assert (again.status, again.body) == (304, b"") and again.headers["etag"] == first.headers["etag"]
    assert other.status == 200 and other.body == first.body
    assert first.headers["cache-control"] == "no-cache"


def test_kernels_served_are_the_headless_hosts_bytes(server: Live, root: Path) -> None:
    for file in sorted((root / "webgpu").glob("*.wgsl")):
        answer = server.ask("GET", f"/kernels/{file.name}")
        assert answer.status == 200 and answer.body == file.read_bytes(), file.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A static folder with one good file and several that must stay hidden."""
    static = tmp_path / "static"
    (static / "app").mkdir(parents=True)
    (static / "node_modules").mkdir()
    for name in ("app/good.js", "app/notes.txt", "app/page.html", ".env.js", "node_modules/x.js"):
        (static / name).write_text("x")
    (tmp_path / "secret.js").write_text("secret")
    (static / "app" / "link.js").symlink_to(tmp_path / "secret.js")
    (static / "app" / "inner.js").symlink_to(static / "app" / "good.js")
    (static / "out").symlink_to(tmp_path)
    return static.resolve()


@pytest.mark.parametrize(
    "path",
    [
        *("app/link.js", "app/inner.js", "out/secret.js", "app/notes.txt", "app/page.html", ".env.js", "app"),
        *("node_modules/x.js", "app/\x00good.js", "app\\good.js", "app//good.js", "app/good.js\n", "", "../secret.js"),
    ],
)
def test_find_static_hidden_file_raises(folder: Path, path: str) -> None:
    with pytest.raises(NotFound):
        find_static(folder, path)


def test_find_static_plain_file_is_found(folder: Path) -> None:
    assert find_static(folder, "app/good.js") == folder / "app" / "good.js"


def test_vendor_not_installed_names_the_command(server: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    answer = server.ask("GET", "/vendor/tokenizers.mjs")
    assert answer.status == 404 and "python3 play.py" in answer.json()["error"]["message"]


def test_page_names_its_files_by_an_address_that_may_be_kept_for_good(server: Live) -> None:
    page = server.ask("GET", "/").body.decode()
    base = re.search(r'src="(/static/v-[0-9a-f]{16})/app/early.js"', page)[1]
    kept = server.ask("GET", f"{base}/app/theme.js")
    assert kept.status == 200 and "immutable" in kept.headers["cache-control"]
    assert server.ask("GET", f"{base}/../app/theme.js").status == 404
    other = server.ask("GET", "/static/v-0123456789abcdef/app/theme.js")  # of a page from before a change
    assert other.body == kept.body and other.headers["cache-control"] == "no-cache"
    assert server.ask("GET", "/static/app/theme.js").headers["cache-control"] == "no-cache"


def settings_of(server: Live) -> dict:
    """What the page tells its scripts."""
    page = server.ask("GET", "/").body.decode()
    return json.loads(re.search(r'<script type="application/json" id="settings">(.*?)</script>', page, re.DOTALL)[1])


def test_page_names_its_kernels_by_an_address_that_may_be_kept_for_good(server: Live, root: Path) -> None:
    base = settings_of(server)["kernels"]
    for name in ("manifest.json", "attention_plain.wgsl"):
        kept = server.ask("GET", f"{base}/{name}")
        assert kept.body == (root / "webgpu" / name).read_bytes() and "immutable" in kept.headers["cache-control"]
        other = server.ask("GET", f"/kernels/v-0123456789abcdef/{name}")  # of a page from before a change
        assert other.body == kept.body and other.headers["cache-control"] == "no-cache"


def test_page_names_the_modules_of_its_first_script_and_tells_it_the_rest(server: Live) -> None:
    page = server.ask("GET", "/").body.decode()
    first = [name.split("/", 3)[3] for name in re.findall(r'rel="modulepreload" href="([^"]+)"', page)]
    rest = settings_of(server)["modules"]
    assert first[0] == "app/early.js" and "gpu/plan.js" in first and len(first) < 30
    assert "app/main.js" in rest[0] and any(name.endswith("/app/wall.js") for name in rest)
    assert not {name.split("/", 3)[-1] for name in rest} & set(first)
    assert all(server.ask("HEAD", name).status == 200 for name in rest)


def test_page_outlines_its_default_model(server: Live) -> None:
    outline = settings_of(server)["first"]
    entry = server.ask("GET", "/api/models").json()["models"][0]
    config = next(file["url"] for file in entry["files"] if file["name"] == "config.json")
    assert outline["id"] == entry["id"] and outline["config"] == server.ask("GET", config).json()
    assert outline["formats"]["model.layers.*.mlp.down_proj.weight"] == ["F32"]
    assert outline["formats"]["model.embed_tokens.weight"] == ["F32"]
    assert not any("norm" in name or ".0." in name for name in outline["formats"])


def test_changed_file_gives_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("app", "css", "node_modules"):
        (tmp_path / folder).mkdir()
    (tmp_path / "app/a.js").write_text("1")
    monkeypatch.setattr("server.assets.STATIC", tmp_path)
    first = static_base()
    (tmp_path / "node_modules/b.js").write_text("1")
    assert static_base() == first
    (tmp_path / "app/a.js").write_text("12")
    assert static_base() != first
