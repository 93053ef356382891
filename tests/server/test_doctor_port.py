"""`playground doctor` on the port: free, taken by a playground, which is then named, or by anything else."""

import http.server
import socket
import threading

import pytest

from server.commands import doctor
from tests.server.small import Live


class Stranger(http.server.BaseHTTPRequestHandler):
    """A server that is no playground: JSON to every question, of another kind."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"versions": ["1.0"]}')

    def log_message(self, *args: object) -> None:
        """Says nothing."""


def told(port: int, monkeypatch: pytest.MonkeyPatch) -> doctor.Finding:
    """What is said of a port."""
    monkeypatch.setenv("PLAYGROUND_PORT", str(port))
    (finding,) = doctor.attempt(doctor.port)
    return finding


def test_doctor_names_the_playground_that_runs_there(server: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = told(server.port, monkeypatch)
    assert finding.works and finding.mend == ""
    assert finding.words == f"the playground runs there already: http://127.0.0.1:{server.port}"


def test_doctor_takes_no_stranger_for_the_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            finding = told(stranger.server_port, monkeypatch)
        finally:
            stranger.shutdown()
            thread.join()
    assert not finding.works and "is taken" in finding.words and "serve --port" in finding.mend


def test_doctor_waits_for_no_silent_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        finding = told(silent.getsockname()[1], monkeypatch)
    assert not finding.works and "is taken" in finding.words
    assert told(silent_port(), monkeypatch).words.endswith("is free")


def silent_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
