"""The command line: what it writes, and one sentence with exit status 2 for every mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from server import cli
from server.commands import models
from server.commands.prompts import parse_ids
from server.commands.pull import Bar, line
from server.trace_names import FILE_NAMES, shape_of
from tests.server.small import write_model
from tests.tolerances import BACKENDS_AGREE

SIZES = {"L": 2, "N": 4, "K": 2, "D": 16, "H": 8, "F": 24, "V": 97}
pytestmark = pytest.mark.usefixtures("own_cache")


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command that must fail as a user mistake; its one sentence."""
    try:
        status = cli.main(list(argv))
    except SystemExit as leave:
        status = leave.code
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    assert err.startswith("playground") and err.count("\n") == 1 and "Traceback" not in err, err
    return err


@pytest.fixture(scope="module")
def traces(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same ids traced by both backends."""
    folder = tmp_path_factory.mktemp("traces")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYGROUND_CACHE", str(cache))
        for backend in ("webgpu", "oracle"):
            out = folder / f"{backend}.safetensors"
            argv = ["trace", "small", "--ids", "5,17,96,0,17", "--backend", backend, "--out", str(out)]
            assert cli.main(argv) == 0
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.gpu
def test_trace_backends_write_the_same_names_and_shapes(traces: dict[str, Path]) -> None:
    assert set(traces) == {"webgpu", "oracle"}  # and no temporary file is left
    for backend, path in traces.items():
        tensors = load_file(path)
        assert set(tensors) == set(FILE_NAMES), backend
        for name, x in tensors.items():
            assert x.shape == shape_of(name, SIZES, tokens=5, layers=2, rows=5), (backend, name)
            assert x.dtype == (np.int32 if name in ("token_ids", "lens_ids") else np.float32), (backend, name)
        assert tensors["token_ids"].tolist() == [5, 17, 96, 0, 17]
        with safe_open(path, "numpy") as file:
            metadata = file.metadata()
        assert {"prompt", "model", "model_hash", "backend", "adapter", "versions"} <= set(metadata)
        assert metadata["backend"] == backend and len(metadata["model_hash"]) == 64
        assert "python" in json.loads(metadata["versions"])


@pytest.mark.gpu
def test_trace_backends_agree(traces: dict[str, Path]) -> None:
    webgpu, oracle = load_file(traces["webgpu"]), load_file(traces["oracle"])
    for name in FILE_NAMES:
        if name != "lens_ids":
            scale = max(1.0, float(np.abs(oracle[name]).max()))
            assert np.abs(webgpu[name] - oracle[name]).max() <= BACKENDS_AGREE * scale, name
    assert (webgpu["lens_ids"] == oracle["lens_ids"]).mean() > 0.99


def test_trace_without_out_prints_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "small", "--ids", "1,2,3", "--backend", "oracle"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 tokens: 1 2 3\n") and "next token:" in out and "through depth" in out


def test_trace_prompt_is_tokenised(smollm2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_model(tmp_path / "texty", vocab_size=97)
    (folder / "tokenizer.json").write_bytes((smollm2 / "tokenizer.json").read_bytes())
    (tmp_path / "prompt.txt").write_bytes(b"a\r\nb ")
    # This vocabulary is larger than the model's: that the ids are refused shows that they were read.
    for option in (["--prompt", "The capital"], ["--prompt-file", str(tmp_path / "prompt.txt")]):
        assert "not in this model's vocabulary" in complaint(capsys, "trace", str(folder), *option)


MISTAKES = [
    (["trace", "nothing", "--ids", "1"], "neither a model nor a folder"),
    (["trace", "../small", "--ids", "1"], "neither a model nor a folder"),
    (["trace", "small"], "required"),
    (["trace", "small", "--ids", "1", "--prompt", "x"], "not allowed with"),
    (["trace", "small", "--prompt", ""], "empty"),
    (["trace", "small", "--prompt", "x"], "tokenizer.json"),
    (["trace", "small", "--ids", ""], "whole numbers"),
    (["trace", "small", "--ids", "1,,2"], "whole numbers"),
    (["trace", "small", "--ids", "-1"], "--ids"),
    (["trace", "small", "--ids", "1.5"], "whole numbers"),
    (["trace", "small", "--ids", "99999999999999999999"], "whole numbers"),
    (["trace", "small", "--ids", "97"], "from 0 to 96"),
    (["trace", "small", "--ids", ",".join(["1"] * 65)], "at most 64"),
    (["trace", "small", "--prompt-file", "/nonexistent"], "cannot be read"),
    (["trace", "small", "--prompt-file", "/"], "cannot be read"),
    (["trace", "small", "--ids", "1", "--out", "/nonexistent/x"], "no folder"),
    (["trace", "small", "--ids", "1", "--out", "/"], "is a folder"),
    (["trace", "small", "--ids", "1", "--backend", "cuda"], "invalid choice"),
    (["trace", "refused", "--ids", "1"], "hidden_act"),
    (["parity", "nothing"], "neither a model nor a folder"),
    (["parity", "small", "--ids", "97"], "from 0 to 96"),
    (["pull", "nonsense"], "cannot be pulled"),
    (["serve", "--port", "70000"], "PLAYGROUND_PORT"),
    (["serve", "--port", "x"], "invalid int"),
    (["serve", "--model", "nothing"], "neither a model nor a folder"),
    (["serve", "--host", "no such host"], "There is no host no such host; choose another with --host"),
    (["dance"], "invalid choice"),
    ([], "COMMAND"),
]


@pytest.mark.parametrize(("argv", "words"), MISTAKES, ids=lambda value: " ".join(value)[:40] if value else "none")
def test_mistake_is_one_sentence(argv: list[str], words: str, capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # relative paths in the list lead nowhere from here
    assert words in complaint(capsys, *argv)


def test_prompt_file_not_utf8_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin1").write_bytes(b"caf\xe9")
    assert "not UTF-8" in complaint(capsys, "trace", "small", "--prompt-file", str(tmp_path / "latin1"))


def test_oracle_without_torch_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAYGROUND_ORACLE_STATE", str(tmp_path / "none.json"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "python3 play.py" in complaint(capsys, "trace", "small", "--ids", "1", "--backend", "oracle")


def test_driver_missing_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**options: object) -> None:
        raise RuntimeError("Request adapter failed (3): no adapter\nat wgpu.cpp:7")

    monkeypatch.setattr("wgpu.gpu.request_adapter_sync", none)
    for command in (["trace", "small", "--ids", "1"], ["parity", "small"], ["bench"]):
        assert "mesa-vulkan-drivers" in complaint(capsys, *command)
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "NO   kernels" in out and "mesa-vulkan-drivers" in out


def test_port_taken_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = complaint(capsys, "serve", "--port", port)
    assert port in words and "--port" in words


def test_out_full_disk_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    out = str(tmp_path / "t.safetensors")
    words = complaint(capsys, "trace", "small", "--ids", "1", "--backend", "oracle", "--out", out)
    assert "No space left" in words and list(tmp_path.iterdir()) == []


def test_out_pipe_is_refused_and_stays_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a device or a pipe" in complaint(capsys, "trace", "small", "--ids", "1", "--out", str(tmp_path / "pipe"))
    assert (tmp_path / "pipe").is_fifo()


def test_out_link_is_followed_and_the_file_keeps_to_the_umask(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    mask = os.umask(0o077)
    try:
        assert cli.main(["trace", "small", "--ids", "1", "--backend", "oracle", "--out", str(tmp_path / "link")]) == 0
    finally:
        os.umask(mask)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").stat().st_mode & 0o777 == 0o600


def test_models_lists_sizes_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(row.startswith("small") and "L 2" in row and "K 2" in row for row in lines)
    assert any(row.startswith("refused") and "hidden_act" in row for row in lines)
    letters = next(row for row in lines if row.startswith("small")).split()[2:-3:2]
    assert letters[:2] == ["L", "N"] and all(f"{letter} " in lines[-1] for letter in "LNKDHFV"), "the legend says each"


def test_models_names_the_default_and_gives_the_size_that_the_page_gives() -> None:
    files = {"model.safetensors": 96_632_200, "tokenizer.json": 1_759_667}
    model = SimpleNamespace(
        entry=SimpleNamespace(id="smollm2-135m", licence="Apache-2.0", folder="here"), refused=None, family="llama",
        shape={"L": 30}, files={name: SimpleNamespace(bytes=size) for name, size in files.items()},
    )  # fmt: skip
    assert models.line(model, default=True).split("  ")[0].rstrip() == "smollm2-135m (default)"
    assert " ".join(models.line(model, default=False).split()) == "smollm2-135m llama L 30 97 MB Apache-2.0 here"


def test_doctor_and_models_name_one_size(capsys: pytest.CaptureFixture[str]) -> None:
    """The small model's tokenizer, which is no weight, is larger than what it rounds to."""
    from weights.catalogue import resolve

    tokenizer = resolve("small") / "tokenizer.json"  # other tests' folder, which has none
    tokenizer.write_text(" " * 3_000_000, "utf-8")
    try:
        cli.main(["models"])
        listed = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("small"))
        cli.main(["doctor"])
        told = next(row for row in capsys.readouterr().out.splitlines() if " small: " in row)
    finally:
        tokenizer.unlink()
    size = told.rsplit(", ", 1)[1]
    assert size.endswith(" MB") and f"  {size}  " in listed


def test_models_says_which_report_is_left_out_and_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models" / "measured"
    write_model(folder)
    (folder / "heads.json").write_text(json.dumps({"model_sha256": "b" * 64}))
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    assert cli.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, row in enumerate(lines) if row.startswith("measured"))
    assert lines[at + 1].strip().startswith("heads.json is left out: it was measured on other weights")
    assert sum("left out" in row for row in lines) == 1


def test_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weights.catalogue.open_model", lambda model: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["trace", "small", "--ids", "1"])


def test_script_is_installed() -> None:
    script = Path(sys.executable).parent / "playground"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    for command in ("serve", "models", "doctor", "pull", "trace", "parity", "bench"):
        assert command in done.stdout


def test_parse_ids_of_plain_numbers() -> None:
    assert parse_ids("0, 12,3") == [0, 12, 3]


class Screen:
    """Something to write on, terminal or not."""

    def __init__(self, terminal: bool):
        self.terminal, self.text = terminal, ""

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_bar_on_a_terminal_redraws_one_line() -> None:
    screen = Screen(terminal=True)
    with Bar(screen) as bar:
        bar(0, 0, "Asking")
        bar(50, 100, "Fetching")
        bar(100, 100, "Fetching")
    assert screen.text.count("\n") == 2 and "100%" in screen.text


def test_bar_elsewhere_writes_a_line_per_tenth() -> None:
    screen = Screen(terminal=False)
    with Bar(screen) as bar:
        for done in range(0, 1001):
            bar(done, 1000, "Fetching")
    assert screen.text.count("\n") == 11 and "\r" not in screen.text


def test_bar_line_shows_share_and_rest() -> None:
    assert line("Fetching", 0, 0, 0) == "Fetching ..."
    assert line("Fetching", 500_000, 2_000_000, 500_000).endswith("]  25%  0.5 of 2.0 MB  0.5 MB/s  3 s left")
