"""A server on this machine that sends one file and breaks off where it is told to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FlakyServer:
    """Serves data at .url. The first `cuts` answers end after cut_after bytes; .ranges notes what was asked for."""

    def __init__(self, data: bytes, cut_after: int = 0, cuts: int = 0, ranges: bool = True):
        self.data, self.cut_after, self.cuts, self.knows_ranges = data, cut_after, cuts, ranges
        self.ranges: list[str | None] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/file"

    def __enter__(self) -> "FlakyServer":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _handler(flaky) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range") if flaky.knows_ranges else None
                flaky.ranges.append(self.headers.get("Range"))
                start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
                if start >= len(flaky.data):
                    self.send_error(416)
                    return
                rest = flaky.data[start:]
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(rest)))
                self.end_headers()
                if flaky.cuts > 0:
                    flaky.cuts -= 1
                    rest = rest[: flaky.cut_after]
                self.wfile.write(rest)

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        return Handler
