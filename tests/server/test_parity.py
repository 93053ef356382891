"""playground parity: passes on right kernels, and each kind of wrong number is seen where it arose."""

import json

import numpy as np
import pytest

from server import cli, parity
from server.commands import parity as command
from tests.server.small import write_model

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("own_cache")]


def test_parity_of_right_kernels_is_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["parity", "small", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["tokens"] == command.IDS_WITHOUT_TOKENIZER and len(report["model_hash"]) == 64
    kernels = {verdict["where"] for verdict in report["kernels"]}
    assert kernels == {*parity.WRITTEN_BY.values(), "attention_decode"}
    assert {verdict["where"] for verdict in report["layers"]} == {"layer 0", "layer 1"}
    for verdict in report["kernels"] + report["layers"]:
        assert 0 <= verdict["error"] <= verdict["tolerance"]


def test_parity_report_for_people_ends_in_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["parity", "small", "--ids", "1,2,3,4,5"]) == 0
    out = capsys.readouterr().out
    assert "attention_fa2" in out and "layer 1" in out and out.rstrip().endswith("within tolerance")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory):
    """What the kernels say about a prompt, and the oracle to ask; a model with QK-norm has every tensor."""
    from server.oracle_run import Oracle
    from server.webgpu_run import Kernels

    folder = write_model(tmp_path_factory.mktemp("qwen3"), model_type="qwen3", architectures=["Qwen3ForCausalLM"])
    ids = list(range(1, 18))
    kernels = Kernels(folder)
    return kernels.trace(ids, [name for name in kernels.names if name != "token_ids"]), Oracle(folder), ids


def failures(found: dict, oracle, ids: list[int]) -> set[str]:
    return {verdict.tensor for verdict in parity.compare_kernels(found, oracle, ids) if not verdict.ok}


@pytest.mark.parametrize("name", sorted(parity.WRITTEN_BY))
def test_parity_sees_one_wrong_number_in_any_tensor(both, name: str) -> None:
    found, oracle, ids = both
    assert failures(found, oracle, ids) == set()  # control
    wrong = {key: x.copy() for key, x in found.items()}
    last = (-1,) * wrong[name].ndim
    wrong[name][last] += 0.01 * max(1.0, float(np.abs(wrong[name]).max()))
    assert name in failures(wrong, oracle, ids)


def test_parity_sees_not_a_number(both) -> None:
    found, oracle, ids = both
    wrong = {key: x.copy() for key, x in found.items()}
    wrong["z"][0, 0, 0, 0] = np.nan
    assert "z" in failures(wrong, oracle, ids)


def test_parity_sees_a_wrong_token_in_the_lens(both) -> None:
    found, oracle, ids = both
    wrong = {**found, "lens_ids": found["lens_ids"].copy()}
    wrong["lens_ids"][-1, -1, 0] = (wrong["lens_ids"][-1, -1, 0] + 1) % 97
    assert "lens_logprobs" in failures(wrong, oracle, ids)


def test_parity_out_of_tolerance_is_exit_status_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = parity.Verdict("rope", "q", float("nan"), 1e-5)
    assert not verdict.ok and verdict.as_json()["error"] is None
    monkeypatch.setattr(command, "compare", lambda folder, ids: ([verdict], [], "a test"))
    assert cli.main(["parity", "small"]) == 1
    assert "1 OUT OF TOLERANCE" in capsys.readouterr().out
    assert cli.main(["parity", "small", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
