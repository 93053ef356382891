"""Request bodies: hostile JSON gets a plain refusal, never a 500 and never its own text back."""

import json
import logging
import queue
import socket

import pytest

from tests.server.small import Live

GOOD = {"model": "small", "ids": [1, 2], "include": ["lse"]}
MARK = "zebra-4711"  # put into requests to see that answers do not repeat them

NOT_JSON = [
    b"",
    b"{",
    b"nonsense zebra-4711",
    b'{"ids": [NaN]}',
    b'{"ids": [Infinity]}',
    b'{"ids": [-Infinity]}',
    b'{"model": "\xff\xfe zebra-4711"}',
    b"\xef\xbb\xbf{}",
    b"[" * 4000,
    b'{"a":' * 800,
    b'{"ids": [' + b"9" * 3900 + b"x]}",
    "{}".encode("utf-16"),
    b'{"ids": [1]} zebra-4711',
    b'{"model": "small", "model": "zebra-4711", "ids": [1], "include": ["lse"]}',
]

WRONG_SHAPE = [
    b"[]",
    b"null",
    b"1",
    b'"zebra-4711"',
    b"{}",
    b'{"ids": [1], "include": ["lse"]}',
    b'{"model": "small", "ids": [1e999], "include": ["lse"]}',
    b'{"model": "small", "ids": [1.5], "include": ["lse"]}',
    b'{"model": "small", "ids": [1.0], "include": ["lse"]}',
    b'{"model": "small", "ids": [true], "include": ["lse"]}',
    b'{"model": "small", "ids": ["1"], "include": ["lse"]}',
    b'{"model": "small", "ids": [-1], "include": ["lse"]}',
    b'{"model": "small", "ids": [97], "include": ["lse"]}',
    b'{"model": "small", "ids": [18446744073709551616], "include": ["lse"]}',
    b'{"model": "small", "ids": [' + b"9" * 2000 + b'], "include": ["lse"]}',
    b'{"model": "small", "ids": [], "include": ["lse"]}',
    b'{"model": "small", "ids": [1], "include": []}',
    b'{"model": "small", "ids": [1], "include": ["zebra-4711"]}',
    b'{"model": "small", "ids": [1], "include": ["\\ud800"]}',
    b'{"model": "\\ud800", "ids": [1], "include": ["lse"]}',
    b'{"model": "small", "ids": [1], "include": ["lse"], "layers": [2]}',
    b'{"model": "small", "ids": [1], "include": ["lse"], "layers": [-1]}',
    b'{"model": "small", "ids": [1], "include": ["logits"], "positions": [1]}',
    b'{"model": "small", "ids": [1], "include": ["lse"], "zebra-4711": 1}',
    b'{"model": "small", "ids": [1], "include": ["lse"], "\\ud83d": 1}',
    b'{"model": ' + json.dumps("z" * 500).encode() + b', "ids": [1], "include": ["lse"]}',
    b'{"model": "small", "ids": ' + b"[" * 500 + b"1" + b"]" * 500 + b', "include": ["lse"]}',
]


def post(server: Live, body: bytes):
    return server.ask("POST", "/api/oracle/trace", body=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:24]))
def test_body_not_json_is_refused_without_echo(server: Live, body: bytes) -> None:
    answer = post(server, body)
    assert (answer.status, answer.code) == (400, "invalid-json")
    assert MARK.encode() not in answer.body


@pytest.mark.parametrize("body", WRONG_SHAPE, ids=lambda body: repr(body[:60]))
def test_body_of_another_shape_is_refused_without_echo(server: Live, body: bytes) -> None:
    answer = post(server, body)
    assert (answer.status, answer.code) == (422, "invalid-request")
    assert MARK.encode() not in answer.body and len(answer.body) < 700
    answer.body.decode("utf-8")


@pytest.mark.parametrize("name", ["nothing", "../small", "\x00", "small/", "/etc", "models/small", ""])
def test_model_unknown_is_refused(server: Live, name: str) -> None:
    answer = server.post("/api/oracle/trace", {**GOOD, "model": name})
    assert (answer.status, answer.code) == (404, "unknown-model")


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_content_type_wrong_is_refused(server: Live, media_type: str | None) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    answer = server.ask("POST", "/api/oracle/trace", body=json.dumps(GOOD).encode(), headers=headers)
    assert (answer.status, answer.code) == (415, "not-json")


def test_content_type_with_charset_is_taken(server: Live) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.ask("POST", "/api/oracle/trace", body=b"{", headers=headers).code == "invalid-json"


def test_body_too_large_is_refused(server: Live) -> None:
    answer = post(server, b" " * 4097)
    assert (answer.status, answer.code) == (413, "body-too-large")
    assert post(server, b" " * 4096).code == "invalid-json"  # control: this long is allowed


def test_body_in_chunks_too_large_is_refused(server: Live) -> None:
    chunk = b"800\r\n" + b" " * 0x800 + b"\r\n"
    head = b"POST /api/oracle/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ") and b"body-too-large" in answer


def test_client_gone_in_the_middle_of_its_body_is_a_line_of_the_log(server: Live) -> None:
    """No unexpected error: whoever closes a page while it asks would fill the log with tracebacks."""
    lines: queue.Queue[logging.LogRecord] = queue.Queue()
    handler, logger = logging.Handler(), logging.getLogger("playground")
    handler.emit = lines.put
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    head = b"POST /api/oracle/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            client.sendall(head + b'Content-Length: 1000\r\n\r\n{"model"')
        line = lines.get(timeout=30)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert line.name == "playground.access" and line.getMessage().startswith("POST /api/oracle/trace 499 ")


def test_tokens_too_many_names_the_limit(server: Live) -> None:
    answer = server.post("/api/oracle/trace", {**GOOD, "ids": [1] * 33})
    assert (answer.status, answer.code) == (413, "too-many-tokens")
    assert "32" in answer.json()["error"]["message"]
