"""A model hub on this machine: as much of its protocol as the library `huggingface_hub` uses for one repository."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REVISION = "0123456789abcdef0123456789abcdef01234567"


def describe(folder: Path, true_hashes: bool) -> dict:
    """The hub's answer about the repository; weights are large files with a stated SHA-256."""
    siblings = []
    for path in sorted(folder.iterdir()):
        entry = {"rfilename": path.name, "size": path.stat().st_size, "blobId": "0" * 40}
        if path.suffix == ".safetensors":
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest() if true_hashes else "0" * 64
            entry["lfs"] = {"sha256": sha256, "size": entry["size"], "pointerSize": 134}
        siblings.append(entry)
    return {"id": "owner/name", "modelId": "owner/name", "sha": REVISION, "private": False, "tags": [], "downloads": 0,
            "cardData": {"license": "mit"}, "siblings": siblings}  # fmt: skip


def as_tree_entry(file: dict) -> dict:
    """The same file in the words of the tree listing."""
    entry = {"type": "file", "path": file["rfilename"], "size": file["size"], "oid": file["blobId"]}
    return entry | ({"lfs": {"oid": file["lfs"]["sha256"], **file["lfs"]}} if "lfs" in file else {})


def make_server(folder: Path, true_hashes: bool = True) -> ThreadingHTTPServer:
    """A server for the folder; .asked lists the paths of the files that were fetched."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            if path.startswith("/api/models/owner/name/tree"):
                info = describe(folder, true_hashes)
                return self._send(json.dumps([as_tree_entry(file) for file in info["siblings"]]).encode())
            if path.startswith("/api/models/owner/name"):
                return self._send(json.dumps(describe(folder, true_hashes)).encode())
            name = path.rpartition("/")[2]
            if path != f"/owner/name/resolve/{REVISION}/{name}" or not (folder / name).is_file():
                self.server.missed.append(path)
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            if self.command == "GET":
                self.server.asked.append(name)
            self._send((folder / name).read_bytes())

        do_HEAD = do_GET

        def _send(self, data: bytes) -> None:
            begin = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
            self.send_response(206 if self.headers.get("Range") else 200)
            self.send_header("Content-Length", str(len(data) - begin))
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data[begin:])

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.missed = [], []
    return server
