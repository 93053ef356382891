"""The outermost layer: headers on every answer, the Host allow-list, the access log, the last resort for errors.

Plain ASGI, so that it also covers what the router refuses and what a handler lets escape. The log line holds method,
path, status, bytes and milliseconds: no query string, no body, no header, so no prompt can reach it.
"""

import logging
import re
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import ApiError, HostNotAllowed, OriginNotAllowed, reply

access_log = logging.getLogger("playground.access")
error_log = logging.getLogger("playground.error")

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.IGNORECASE | re.ASCII)


def host_name(value: str) -> str:
    """`[::1]:8000` -> `::1`, `LocalHost:80` -> `localhost`; the empty string when it is no host at all."""
    match = _HOST.fullmatch(value)
    return match[1].strip("[]").lower() if match else ""


class Guard:
    """ASGI middleware around the whole application. `hosts`: accepted names, lower case, without port."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]):
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        seen = {"status": 0, "bytes": 0}
        started = time.perf_counter()

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            elif message["type"] == "http.response.body":
                seen["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            self._check_sender(scope["method"], Headers(scope=scope))
            await self.app(scope, receive, guarded_send)
        except ApiError as refused:
            await reply(refused)(scope, receive, guarded_send)
        except Exception:
            error_log.exception("unexpected error while answering %s %s", scope["method"], _shown_path(scope))
            if seen["status"]:
                raise  # the answer had begun: the connection must break, a half file must not look whole
            unexpected = ApiError("Something went wrong in the server; its log has the details.")
            await reply(unexpected)(scope, receive, guarded_send)
        finally:
            ms = (time.perf_counter() - started) * 1000
            access_log.info(
                "%s %s %d %d bytes %.0f ms", scope["method"], _shown_path(scope), seen["status"], seen["bytes"], ms
            )

    def _check_sender(self, method: str, headers: Headers) -> None:
        """Refuse names this server is not known by (DNS rebinding) and what pages of other origins want done."""
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            raise HostNotAllowed(
                "This server does not answer under that host name; use http://127.0.0.1 or http://localhost, "
                "or start it with PLAYGROUND_ALLOWED_HOSTS naming the host."
            )
        origin = headers.get("origin")
        if method not in ("GET", "HEAD") and origin is not None and origin.partition("://")[2] != host:
            raise OriginNotAllowed("This server answers its own page only, not pages of other origins.")


def _shown_path(scope: Scope) -> str:
    """The path as it came (still percent-encoded, so no control character reaches a terminal), shortened."""
    raw = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
    return raw.split(b"?")[0][:200].decode("ascii", "backslashreplace")
