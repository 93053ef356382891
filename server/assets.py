"""The files the page is made of: static/, the WGSL kernels, and the third-party modules that set-up fetched.

Nothing is found by path arithmetic on what a client sent: names are matched against a pattern or a list first, and a
file reached through a link, a dot name or node_modules does not exist as far as this server is concerned.
"""

import hashlib
import json
import re
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from server.errors import NotFound
from server.file_reply import file_reply

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "static"
KERNELS = ROOT / "webgpu"

MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wgsl": "text/plain; charset=utf-8",
    ".json": "application/json",
}
SERVED_FROM_STATIC = frozenset(MEDIA_TYPES) - {".json", ".wgsl"}

VENDOR = {"tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs"}

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VERSION = re.compile(r"v-[0-9a-f]{16}")
_issued: set[str] = set()

IMMUTABLE = "public, max-age=31536000, immutable"

router = APIRouter()


def find_static(root: Path, path: str) -> Path:
    """The file `path` under `root`. Raises NotFound for anything that is not a plain, known file inside it."""
    parts = path.split("/")
    if not all(_PLAIN_NAME.fullmatch(part) for part in parts) or "node_modules" in parts:
        raise NotFound("There is no such file.")
    found = root.joinpath(*parts)
    if found.suffix not in SERVED_FROM_STATIC or not found.is_file() or found.resolve() != found:
        raise NotFound("There is no such file.")
    return found


def static_base() -> str:
    """Where the page's own files are for this state of them: a browser need not ask again until one of them changes.

    Imports between modules are relative, so that all of them stay under the address of the first.
    """
    folders = [folder for folder in STATIC.iterdir() if folder.is_dir() and folder.name != "node_modules"]
    return f"/static/{_version(STATIC, [path for folder in folders for path in folder.iterdir()])}"


def kernels_base() -> str:
    """Where the manifest and the WGSL files are, likewise."""
    return f"/kernels/{_version(KERNELS, [*KERNELS.glob('*.wgsl'), KERNELS / 'manifest.json'])}"


def _version(folder: Path, paths: list[Path]) -> str:
    """A name for this state of files, which from now on is served as one that never changes."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        stat = path.stat()
        digest.update(f"{path.relative_to(folder)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    _issued.add(version := f"v-{digest.hexdigest()[:16]}")
    return version


def send_asset(request: Request, path: Path, cache_control: str = "no-cache") -> Response:
    """A file that may change between two starts: browsers keep it but ask each time whether it is still current."""
    stat = path.stat()
    tag = hashlib.sha256(f"{stat.st_mtime_ns}-{stat.st_size}-{path.name}".encode()).hexdigest()[:32]
    return file_reply(request, path, etag=f'"{tag}"', media_type=MEDIA_TYPES[path.suffix], cache_control=cache_control)


@router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
def static_file(request: Request, path: str) -> Response:
    """Modules, styles and pictures of the page; at an address that this process gave out for good."""
    version, _, rest = path.partition("/")
    if version in _issued:
        return send_asset(request, find_static(STATIC, rest), IMMUTABLE)
    return send_asset(request, find_static(STATIC, rest if _VERSION.fullmatch(version) else path))


@router.api_route("/vendor/{name}", methods=["GET", "HEAD"])
def vendor_file(request: Request, name: str) -> Response:
    """Third-party browser modules, by the short names listed in VENDOR."""
    path = STATIC / "node_modules" / VENDOR.get(name, "")
    if name not in VENDOR or not path.is_file():
        raise NotFound("There is no such module; `python3 play.py` fetches the browser code.")
    return send_asset(request, path)


@router.api_route("/kernels/{name}", methods=["GET", "HEAD"])
def kernel_file(request: Request, name: str) -> Response:
    """The kernel manifest and the WGSL files it names, the same bytes the headless host runs."""
    return send_asset(request, _kernel(name))


@router.api_route("/kernels/{version}/{name}", methods=["GET", "HEAD"])
def kernel_file_of_version(request: Request, version: str, name: str) -> Response:
    """The same at the page's own address of them; at one that this process gave out for good."""
    if not _VERSION.fullmatch(version):
        raise NotFound("There is no such kernel; /kernels/manifest.json lists them.")
    return send_asset(request, _kernel(name), IMMUTABLE if version in _issued else "no-cache")


def _kernel(name: str) -> Path:
    manifest = KERNELS / "manifest.json"
    if not manifest.is_file():
        raise NotFound("The kernel manifest is missing.")
    listed = {kernel["file"] for kernel in json.loads(manifest.read_text("utf-8"))["kernels"].values()}
    if name not in listed | {"manifest.json"} or not (KERNELS / name).is_file():
        raise NotFound("There is no such kernel; /kernels/manifest.json lists them.")
    return KERNELS / name
