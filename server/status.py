"""GET /api/status: what is installed here and whether the oracle can be asked."""

import importlib.metadata
import platform

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from server import __version__
from server.oracle_state import oracle_state

PACKAGES = ("fastapi", "numpy", "safetensors", "tokenizers", "torch", "wgpu")

router = APIRouter()


def versions() -> dict[str, str]:
    """What computes here, by name; a package that is not installed is left out."""
    found = {"playground": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@router.api_route("/api/status", methods=["GET", "HEAD"])
def status(request: Request) -> JSONResponse:
    """{"oracle": {state, detail, progress}, "versions": {...}}; asked again while the oracle is being installed."""
    state = oracle_state(request.app.state.settings.oracle_state)
    failure = request.app.state.oracle.last_failure
    if state["state"] == "ready" and failure:
        state = {"state": "failed", "detail": failure, "progress": None}
    body = {"oracle": state, "versions": versions()}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})
