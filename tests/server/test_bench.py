"""playground bench: measures something, and a wrong kernel has no speed; what is measured is in tests/bench."""

import json

import pytest

from bench import cases
from server import cli
from server.commands import bench
from tests.bench.conftest import briefly

__all__ = ["briefly"]
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("briefly")]
ONE = ["--op", "attention", "--T", "20", "--N", "2", "--K", "1", "--H", "16"]


def test_bench_one_operation_reports_time_speed_and_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--json", *ONE]) == 0
    report = json.loads(capsys.readouterr().out)
    [row] = report["results"]
    assert report["adapter"] and row["ms"] > 0 and row["gflops"] > 0 and row["max_error"] <= row["tolerance"]


def test_bench_without_arguments_measures_a_few(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ({"op": "matmul", "T": 1, "d_in": 64, "d_out": 8}, {"op": "decode", "T": 8})
    monkeypatch.setattr(bench, "FEW", few)
    assert cli.main(["bench"]) == 0
    out = capsys.readouterr().out
    assert "matmul" in out and "decode" in out and "of FMA" in out


def test_bench_wrong_kernel_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = cases.reference.attention_rows
    monkeypatch.setattr(cases.reference, "attention_rows", lambda *given: [x * 1.01 for x in real(*given)])
    assert cli.main(["bench", *ONE]) == 2
    assert "a wrong kernel has no speed" in capsys.readouterr().err


def test_bench_bad_arguments_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--op", "matmul", "--T", "many"]) == 2
    assert capsys.readouterr().err == 'playground: T is "many"; matmul takes whole numbers from 1 to 8192.\n'
