"""Models: listed with sizes and hashes, served at addresses that hold the hash, whole and in ranges."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from server.app import create_app
from server.settings import load_settings
from tests.server.small import CONFIG, Live, live, write_model


def files_of(server: Live, model_id: str) -> dict[str, dict]:
    """The files of one model in /api/models, by name."""
    listed = {model["id"]: model for model in server.ask("GET", "/api/models").json()["models"]}
    return {file["name"]: file for file in listed[model_id]["files"]}


@pytest.fixture(scope="module")
def weights(server: Live, cache: Path) -> tuple[str, bytes]:
    """Address and bytes of the small model's weights."""
    return files_of(server, "small")["model.safetensors"]["url"], (
        cache / "models" / "small" / "model.safetensors"
    ).read_bytes()


def test_models_lists_sizes_hashes_and_shape(server: Live, cache: Path) -> None:
    body = server.ask("GET", "/api/models").json()
    assert body["default"] == "small" == body["models"][0]["id"]
    model = body["models"][0]
    shape = {key: model["shape"][key] for key in "LNKDHV"}
    assert shape == {"L": 2, "N": 4, "K": 2, "D": 16, "H": 8, "V": 97}
    assert model["family"] == "llama" and model["max_tokens"] == CONFIG["max_position_embeddings"]
    assert model["tied"] is CONFIG["tie_word_embeddings"]
    assert {file["name"] for file in model["files"]} == {"config.json", "model.safetensors"}
    assert model["bytes"] == sum(file["bytes"] for file in model["files"])
    for file in model["files"]:
        content = (cache / "models" / "small" / file["name"]).read_bytes()
        assert file["bytes"] == len(content) and file["sha256"] == hashlib.sha256(content).hexdigest()
        assert server.ask("GET", file["url"]).body == content
    assert model["hash"] == files_of(server, "small")["model.safetensors"]["sha256"]


def test_models_refused_config_is_listed_with_the_reason(server: Live) -> None:
    listed = {model["id"]: model for model in server.ask("GET", "/api/models").json()["models"]}
    assert "hidden_act" in listed["refused"]["refused"] and "files" not in listed["refused"]
    answer = server.post("/api/oracle/trace", {"model": "refused", "ids": [1], "include": ["lse"]})
    assert (answer.status, answer.code) == (422, "model-refused")


def test_model_file_is_immutable_with_its_hash_as_tag(server: Live, weights: tuple[str, bytes]) -> None:
    url, content = weights
    answer = server.ask("GET", url)
    assert answer.body == content and answer.headers["etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert "immutable" in answer.headers["cache-control"] and answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-type"] == "application/octet-stream"


# (Range header, first byte, end) on a file of `size` bytes; negative numbers count from its end
RANGES = [
    ("bytes=0-0", 0, 1),
    ("bytes=0-9", 0, 10),
    ("bytes=10-", 10, None),
    ("bytes=-10", -10, None),
    ("bytes=-99999999", 0, None),
    ("bytes=5-99999999", 5, None),
    ("BYTES = 1 - 2", 1, 3),
]


@pytest.mark.parametrize(("value", "start", "stop"), RANGES)
def test_range_single_is_partial(server: Live, weights: tuple[str, bytes], value: str, start: int, stop: int) -> None:
    url, content = weights
    first, end, _ = slice(start, stop).indices(len(content))
    got = server.ask("GET", url, headers={"Range": value})
    head = server.ask("HEAD", url, headers={"Range": value})
    assert got.status == head.status == 206
    assert got.body == content[first:end] and head.body == b""
    assert got.headers["content-range"] == head.headers["content-range"] == f"bytes {first}-{end - 1}/{len(content)}"
    assert int(head.headers["content-length"]) == len(got.body)


@pytest.mark.parametrize(
    "value",
    [
        *("", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=--1", "items=0-1", "bytes=0-1,5-6"),
        *("bytes=0-0,-1", "bytes=0-1,", "bytes=0x1-0x2", "bytes=" + "9" * 30 + "-", "bytes=0-" + "0-," * 200),
    ],
)
def test_range_malformed_or_several_is_the_whole_file(server: Live, weights: tuple[str, bytes], value: str) -> None:
    url, content = weights
    answer = server.ask("GET", url, headers={"Range": value})
    assert answer.status == 200 and answer.body == content and "content-range" not in answer.headers


@pytest.mark.parametrize("past", [0, 1, 10**17])
def test_range_beyond_the_end_is_not_satisfiable(server: Live, weights: tuple[str, bytes], past: int) -> None:
    url, content = weights
    answer = server.ask("GET", url, headers={"Range": f"bytes={len(content) + past}-"})
    assert (answer.status, answer.code) == (416, "range-not-satisfiable")
    assert answer.headers["content-range"] == f"bytes */{len(content)}"
    assert server.ask("GET", url, headers={"Range": "bytes=-0"}).status == 416
    assert server.ask("GET", url, headers={"Range": f"bytes={len(content) - 1}-"}).status == 206  # control


def test_if_range_with_other_tag_sends_the_whole_file(server: Live, weights: tuple[str, bytes]) -> None:
    url, content = weights
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    for value, status in [(tag, 206), ('"old"', 200), ("W/" + tag, 200), ("Mon, 01 Jan 2024 00:00:00 GMT", 200)]:
        answer = server.ask("GET", url, headers={"Range": "bytes=0-9", "If-Range": value})
        assert answer.status == status, value
        assert answer.body == (content[:10] if status == 206 else content)


def test_if_none_match_of_a_list_is_not_modified(server: Live, weights: tuple[str, bytes]) -> None:
    url, content = weights
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    for value, status in [(tag, 304), (f'"a", W/{tag}', 304), ("*", 304), ('"a"', 200), (tag.strip('"'), 200)]:
        assert server.ask("GET", url, headers={"If-None-Match": value}).status == status, value


def test_file_changed_on_disk_has_a_new_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    folder = write_model(tmp_path / "models" / "changing")
    with live(create_app(load_settings())) as server:
        old = files_of(server, "changing")["config.json"]["url"]
        assert server.ask("GET", old).status == 200
        (folder / "config.json").write_text(json.dumps({**CONFIG, "rms_norm_eps": 2e-5}))
        assert (answer := server.ask("GET", old)).status == 404 and answer.code == "not-found"
        new = files_of(server, "changing")["config.json"]["url"]
        assert new != old and server.ask("GET", new).status == 200
        shutil.rmtree(folder)
        assert server.ask("GET", new).code == "unknown-model"


def test_folder_as_default_is_served_under_its_name(tmp_path: Path, own_cache: Path) -> None:
    folder = write_model(tmp_path / "my model")
    with live(create_app(load_settings(model=str(folder)))) as server:
        body = server.ask("GET", "/api/models").json()
        assert body["default"] == "folder" and body["models"][0]["name"] == "my model"
        assert server.ask("GET", body["models"][0]["files"][0]["url"]).status == 200
        assert str(tmp_path) not in json.dumps(body)  # where things lie on this disk is nobody's business
