"""The list of models, and their files at addresses that hold the content's hash: nothing cached is ever stale."""

from pathlib import PurePath

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from server.assets import IMMUTABLE, MEDIA_TYPES
from server.file_reply import file_reply

router = APIRouter()


@router.api_route("/api/models", methods=["GET", "HEAD"])
def models(request: Request) -> JSONResponse:
    """{"default": id, "models": [...]}, the default first; the first call after a pull hashes the new files."""
    index = request.app.state.models
    body = {"default": index.default, "models": index.describe_all()}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


@router.api_route("/models/{model_id:path}/{sha256}/{name}", methods=["GET", "HEAD"])
def model_file(request: Request, model_id: str, sha256: str, name: str) -> Response:
    """One file, whole or a range. The entity tag is the content's SHA-256."""
    info = request.app.state.models.file(model_id, sha256, name)
    media_type = MEDIA_TYPES.get(PurePath(name).suffix, "application/octet-stream")
    return file_reply(request, info.path, etag=f'"{info.sha256}"', media_type=media_type, cache_control=IMMUTABLE)
