"""`playground serve` as a process: it says where it is, answers, ends when told, and leaves no oracle behind."""

import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc and pidfd")

IDS = {"model": "small", "ids": [1, 2, 3], "include": ["lse"]}


@pytest.fixture
def process(root: Path, cache: Path) -> Iterator[subprocess.Popen]:
    """A server on a free port."""
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", "small"]
    environment = {**os.environ, "PLAYGROUND_CACHE": str(cache)}
    with subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True) as server:
        yield server
        if server.poll() is None:
            server.kill()


def port_of(server: subprocess.Popen) -> int:
    match = re.fullmatch(r"Attention playground: http://127\.0\.0\.1:(\d+)\n", server.stdout.readline())
    assert match
    return int(match[1])


def post(port: int, value: dict) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/api/oracle/trace", json.dumps(value), {"Content-Type": "application/json"})
    with contextlib.closing(connection), connection.getresponse() as response:
        return response.status


@contextlib.contextmanager
def oracle_of(server: subprocess.Popen) -> Iterator[int]:
    """A handle on the server's only child, which becomes readable when that process ends, reaped or not."""
    (child,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    handle = os.pidfd_open(int(child))
    try:
        yield handle
    finally:
        os.close(handle)


def has_ended(handle: int) -> bool:
    return bool(select.select([handle], [], [], 30)[0])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_serve_ended_in_any_way_takes_the_oracle_along(process: subprocess.Popen, how: signal.Signals) -> None:
    assert post(port_of(process), IDS) == 200
    with oracle_of(process) as oracle:
        process.send_signal(how)
        assert process.wait(30) in (0, -how)
        assert has_ended(oracle)
