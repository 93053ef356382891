"""playground bench: measures something, and a wrong kernel has no speed."""

import json

import pytest

from server import cli
from server.commands import bench

pytestmark = pytest.mark.gpu


def test_bench_reports_time_speed_and_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "REPEATS", 1)
    assert cli.main(["bench", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["adapter"] and {row["op"] for row in report["results"]} == {
        *("attention prefill", "attention decode", "matmul f16"),
    }
    for row in report["results"]:
        assert row["ms"] > 0 and row["gflops"] > 0 and row["max_error"] <= bench.TOLERANCE


def test_bench_wrong_kernel_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "REPEATS", 1)
    real = bench.attention_reference
    monkeypatch.setattr(bench, "attention_reference", lambda q, k, v: real(q, k, v) * 1.01)
    assert cli.main(["bench"]) == 2
    assert "wrong on this adapter" in capsys.readouterr().err
