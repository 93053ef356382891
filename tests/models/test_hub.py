"""`pull OWNER/NAME` against a hub on this machine, in a process of its own (the library reads its settings once).

Plan: only config, tokenizer and safetensors are fetched; a family that is not supported is refused before its weights
travel; a wrong hash is refused; an unknown name is one sentence.
"""

import json
import subprocess
import sys
import threading

import pytest

from tests.models.hub_server import make_server
from tests.models.small import make_small_model
from weights.checkpoint import open_checkpoint

SCRIPT = """
import json, sys
from weights.pull import pull
def check(config):
    if config["model_type"] != "llama":
        raise ValueError("model_type is not supported")
try:
    print(json.dumps({"folder": str(pull(sys.argv[1], check_config=check))}))
except ValueError as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__}))
"""


@pytest.fixture
def hub(tmp_path, root):
    """pull_from(folder, name, **server options) -> (what pull said, names fetched)."""

    def pull_from(folder, name="owner/name", **options):
        server = make_server(folder, **options)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "PLAYGROUND_CACHE": str(tmp_path / "cache")}
        env |= {"HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
        env |= {"PATH": "/usr/bin:/bin", "NO_PROXY": "127.0.0.1", "HOME": str(tmp_path)}
        try:
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, name], cwd=root, env=env, capture_output=True, text=True, timeout=120
            )
        finally:
            server.shutdown()
            server.server_close()
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1]), server.asked

    return pull_from


@pytest.fixture
def repository(tmp_path):
    folder = make_small_model(tmp_path / "repository")
    (folder / "card.json").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    return folder


def test_hub_model_is_fetched_checked_and_placed(hub, repository):
    said, asked = hub(repository)
    folder = open_checkpoint(said["folder"]).folder
    assert folder.name == "owner--name"
    assert (folder / "model.safetensors").read_bytes() == (repository / "model.safetensors").read_bytes()
    assert sorted(asked) == ["config.json", "model.safetensors", "tokenizer.json"]
    card = json.loads((folder / "card.json").read_text())
    assert card["licence"] == "mit" and card["name"] == "owner/name"
    assert {path.name for path in folder.iterdir()} == {*asked, "card.json"}


def test_unsupported_family_is_refused_before_its_weights_travel(hub, repository):
    config = json.loads((repository / "config.json").read_text()) | {"model_type": "mamba"}
    (repository / "config.json").write_text(json.dumps(config))
    said, asked = hub(repository)
    assert said["error"] == "model_type is not supported" and "model.safetensors" not in asked


def test_wrong_hash_is_refused(hub, repository):
    said, _ = hub(repository, true_hashes=False)
    assert said["kind"] == "WrongHash"


def test_unknown_name_is_one_sentence(hub, repository):
    said, _ = hub(repository, "owner/other")
    assert said["kind"] == "HubModelMissing" and "owner/other" in said["error"]


def test_model_without_safetensors_is_refused(hub, repository):
    (repository / "model.safetensors").unlink()
    said, _ = hub(repository)
    assert said["kind"] == "HubModelMissing" and "safetensors" in said["error"]
