"""The oracle behind HTTP: the same numbers as python_ref, limits, absence of torch, and a server free of torch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import python_ref
from server.app import create_app
from server.oracle_state import oracle_state
from server.settings import load_settings
from server.trace_names import NAMES, shape_of
from tests.server.small import Live, live
from tests.tolerances import ORACLE_FLOAT32

IDS = [5, 17, 96, 0, 17, 3]
SMALL = {"L": 2, "N": 4, "K": 2, "D": 16, "H": 8, "F": 24, "V": 97}


@pytest.fixture(scope="module")
def wanted(cache: Path) -> dict[str, np.ndarray]:
    """Everything python_ref says about IDS."""
    import torch

    model = python_ref.load_model(cache / "models" / "small", dtype=torch.float64)
    return {name: x.numpy() for name, x in python_ref.trace(model, IDS).items()}


def ask(server: Live, **changes: object):
    return server.post("/api/oracle/trace", {"model": "small", "ids": IDS, "include": ["lse"], **changes})


def test_trace_every_name_equals_the_oracle(server: Live, wanted: dict[str, np.ndarray]) -> None:
    answer = ask(server, include=list(wanted))
    assert answer.status == 200 and answer.headers["content-type"] == "application/octet-stream"
    found = load(answer.body)
    assert set(found) == set(wanted)
    for name, x in found.items():
        assert x.dtype == (np.int32 if name in ("token_ids", "lens_ids") else np.float32), name
        assert x.shape == wanted[name].shape == shape_of(name, SMALL, tokens=6, layers=2, rows=6), name
        np.testing.assert_allclose(x, wanted[name], rtol=ORACLE_FLOAT32, atol=ORACLE_FLOAT32, err_msg=name)


def test_trace_layers_and_positions_come_in_the_order_asked_for(server: Live, wanted: dict[str, np.ndarray]) -> None:
    found = load(ask(server, include=["pattern", "logits"], layers=[1, 0, 1], positions=[5, 2]).body)
    np.testing.assert_allclose(found["pattern"], wanted["pattern"][[1, 0, 1]], atol=ORACLE_FLOAT32)
    np.testing.assert_allclose(found["logits"], wanted["logits"][[5, 2]], rtol=ORACLE_FLOAT32)


def test_trace_of_no_positions_has_no_rows(server: Live) -> None:
    assert load(ask(server, include=["logits"], positions=[]).body)["logits"].shape == (0, 97)


def test_trace_lens_logits_end_in_the_logits(server: Live, wanted: dict[str, np.ndarray]) -> None:
    found = load(ask(server, include=["lens_logits", "logits"], positions=[3]).body)
    assert found["lens_logits"].shape == (3, 1, 97)
    np.testing.assert_allclose(found["lens_logits"][-1], wanted["logits"][[3]], rtol=ORACLE_FLOAT32)


def test_trace_metadata_says_what_computed_it(server: Live, tmp_path: Path) -> None:
    path = tmp_path / "answer.safetensors"
    path.write_bytes(ask(server).body)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    listed = server.ask("GET", "/api/models").json()["models"][0]
    assert metadata["model_hash"] == listed["hash"] and metadata["backend"] == "oracle"
    assert "torch" in json.loads(metadata["versions"])


def test_trace_name_this_model_lacks_is_refused(server: Live) -> None:
    answer = ask(server, include=["q_normed"])
    assert (answer.status, answer.code) == (422, "invalid-request")


def test_trace_answer_too_large_is_refused_before_it_is_computed(own_cache: Path) -> None:
    needed = 4 * 2 * 4 * 6 * 6  # pattern [L,N,T,T]
    with live(create_app(load_settings(oracle_max_response_bytes=needed))) as server:
        server.app.state.oracle.command = ("/nonexistent",)  # nothing may be started for it
        assert ask(server, include=["pattern", "lse"]).code == "response-too-large"
        assert ask(server, include=["pattern"]).code == "oracle-failed"  # control: this one would be computed


def test_trace_without_torch_says_how_to_get_it(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    state = tmp_path / "state.json"
    with live(create_app(load_settings(oracle_state=str(state)))) as server:
        answer = ask(server)
        assert (answer.status, answer.code) == (503, "oracle-absent")
        assert server.ask("GET", "/api/status").json()["oracle"]["state"] == "absent"


def test_status_while_installing_shows_progress(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    state = tmp_path / "state.json"
    command = [sys.executable, "-c", "input()", "install_oracle"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as installer:
        report = {"state": "installing", "detail": "40 %", "progress": 0.4, "pid": installer.pid}
        state.write_text(json.dumps(report))
        with live(create_app(load_settings(oracle_state=str(state)))) as server:
            oracle = server.ask("GET", "/api/status").json()["oracle"]
            assert oracle == {"state": "installing", "detail": "40 %", "progress": 0.4}
            installer.communicate(b"\n")
            assert server.ask("GET", "/api/status").json()["oracle"]["state"] == "failed"


@pytest.mark.parametrize(
    ("report", "state"),
    [
        ({"state": "installing", "pid": 2**22 + 5}, "failed"),  # nobody is at it any more
        ({"state": "installing", "pid": "x"}, "failed"),
        ({"state": "installing", "pid": 1}, "failed"),  # somebody else's process
        ({"state": "failed", "detail": "The disk is full."}, "failed"),
        ({"state": "ready"}, "absent"),
        (["odd"], "absent"),
        (None, "absent"),
    ],
)
def test_oracle_state_without_torch(
    report: object, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(report) if report is not None else "{half")
    found = oracle_state(path)
    assert found["state"] == state and found["detail"].endswith(".")


def test_status_with_torch_is_ready_with_versions(server: Live) -> None:
    body = server.ask("GET", "/api/status").json()
    assert body["oracle"]["state"] == "ready" and set(body["oracle"]) == {"state", "detail", "progress"}
    assert {"playground", "python", "numpy", "wgpu", "torch"} <= set(body["versions"])


def test_server_process_never_imports_torch(root: Path, own_cache: Path) -> None:
    code = (
        "import sys; from server.app import create_app; app = create_app(); app.state.models.all();"
        "import server.status; server.status.versions(); from server.oracle_state import oracle_state;"
        "oracle_state(app.state.settings.oracle_state); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


def test_names_are_the_oracles_names(wanted: dict[str, np.ndarray]) -> None:
    assert set(wanted) | {"q_normed", "k_normed", "lens_logits"} == set(NAMES)
