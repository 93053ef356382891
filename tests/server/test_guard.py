"""What holds for every answer: security headers, known hosts only, one error shape, a log without prompts."""

import json
import logging

import pytest

from server.app import create_app
from server.guard import SECURITY_HEADERS, host_name
from server.settings import load_settings
from tests.server.small import Live, live


def every_kind_of_answer(server: Live):
    """(what, answer) for each status this server gives."""
    models = server.ask("GET", "/api/models").json()["models"]
    weights = next(f["url"] for f in models[0]["files"] if f["name"] == "model.safetensors")
    tag = server.ask("HEAD", weights).headers["etag"]
    json_type = {"Content-Type": "application/json"}
    yield 200, server.ask("GET", "/")
    yield 200, server.ask("GET", weights)
    yield 206, server.ask("GET", weights, headers={"Range": "bytes=0-9"})
    yield 304, server.ask("GET", weights, headers={"If-None-Match": tag})
    yield 400, server.ask("POST", "/api/oracle/trace", body=b"{", headers=json_type)
    yield 400, server.ask("GET", "/", headers={"Host": "evil.example"})
    yield (
        403,
        server.ask("POST", "/api/oracle/trace", body=b"{}", headers={**json_type, "Origin": "http://evil.example"}),
    )
    yield 404, server.ask("GET", "/nothing")
    yield 405, server.ask("POST", "/")
    yield 413, server.ask("POST", "/api/oracle/trace", body=b" " * 5000, headers=json_type)
    yield 415, server.ask("POST", "/api/oracle/trace", body=b"{}")
    yield 416, server.ask("GET", weights, headers={"Range": "bytes=99999999-"})
    yield 422, server.ask("POST", "/api/oracle/trace", body=b"{}", headers=json_type)


def test_answer_of_every_kind_carries_the_headers(server: Live) -> None:
    for status, answer in every_kind_of_answer(server):
        assert answer.status == status, answer.body
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name.lower()] == value, (status, name)
        assert "server" not in answer.headers
        if status >= 400:
            assert answer.code and answer.headers["cache-control"] == "no-store"


def test_policy_is_strict() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "*" not in policy
    for kind in ("script", "style", "connect", "img", "font", "worker"):
        assert f"{kind}-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "LOCALHOST", "[::1]", "[::1]:80"])
def test_host_known_is_answered(server: Live, host: str) -> None:
    assert server.ask("GET", "/healthz", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", "0.0.0.0", "", "[::2]"),
        *("localhost/x", "user@localhost", "localhost:port", "localhost#", "localhost?", "[::1"),
    ],
)
def test_host_unknown_is_refused(server: Live, host: str) -> None:
    answer = server.ask("GET", "/healthz", headers={"Host": host})
    assert (answer.status, answer.code) == (400, "host-not-allowed")


def test_host_from_setting_is_answered(own_cache) -> None:
    with live(create_app(load_settings(allowed_hosts="Box.lan, 10.0.0.7"))) as server:
        assert server.ask("GET", "/healthz", headers={"Host": "box.lan:8000"}).status == 200
        assert server.ask("GET", "/healthz", headers={"Host": "10.0.0.7"}).status == 200
        assert server.ask("GET", "/healthz", headers={"Host": "10.0.0.8"}).status == 400


@pytest.mark.parametrize(
    ("value", "name"), [("a:1", "a"), ("[::1]:8", "::1"), ("A.B", "a.b"), ("a:b", ""), ("a/b", ""), ("u@a", "")]
)
def test_host_name_of_header_values(value: str, name: str) -> None:
    assert host_name(value) == name


def test_origin_of_own_page_may_post(server: Live) -> None:
    headers = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{server.port}"}
    answer = server.ask("POST", "/api/oracle/trace", body=b"{}", headers=headers)
    assert answer.code == "invalid-request"  # the body was looked at


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_origin_of_another_page_may_not_post(server: Live, origin: str) -> None:
    headers = {"Content-Type": "application/json", "Origin": origin}
    answer = server.ask("POST", "/api/oracle/trace", body=b"{}", headers=headers)
    assert (answer.status, answer.code) == (403, "origin-not-allowed")


def test_method_wrong_names_the_allowed_ones(server: Live) -> None:
    answer = server.ask("DELETE", "/api/models")
    assert (answer.status, answer.code) == (405, "method-not-allowed")
    assert "GET" in answer.headers["allow"]


def test_handler_that_fails_says_nothing_of_its_reason(own_cache, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(load_settings())

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("secret detail")

    with live(app) as server, caplog.at_level(logging.INFO):
        answer = server.ask("GET", "/broken")
        assert (answer.status, answer.code) == (500, "internal")
        assert b"secret" not in answer.body and b"Traceback" not in answer.body
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "secret detail" in caplog.text  # the log has it
        assert server.ask("GET", "/healthz").status == 200


def test_log_holds_no_prompt_query_or_control_character(own_cache, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(load_settings(model="small"))
    with caplog.at_level(logging.INFO, logger="playground.access"), live(app) as server:
        server.ask("GET", "/healthz?prompt=private-thought")
        server.post("/api/oracle/trace", {"model": "private-thought", "ids": [1], "include": ["private-thought"]})
        server.ask("GET", "/%1b%5b31mred%0aforged")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3 and lines[0].startswith("GET /healthz 200 ")
    assert not any("private-thought" in line for line in lines)
    assert all(line.isprintable() for line in lines), lines


def test_settings_reach_the_page_as_data(server: Live) -> None:
    page = server.ask("GET", "/").body.decode()
    block = page.partition('<script type="application/json" id="settings">')[2].partition("</script>")[0]
    settings = json.loads(block)
    assert settings["defaultModel"] == "small" and settings["oracle"]["maxTokens"] == 32
