"""The page itself: one jinja2 template, with what its scripts need to know in a JSON block that nothing executes."""

from pathlib import Path
from urllib.parse import urljoin

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse

from server import __version__
from server.assets import STATIC, kernels_base, send_asset, static_base
from server.errors import NotFound
from server.modules import page_modules
from server.oracle_state import oracle_state

TEMPLATES = Path(__file__).resolve().parent / "templates"

router = APIRouter()
_templates = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)


@router.api_route("/", methods=["GET", "HEAD"])
def page(request: Request) -> HTMLResponse:
    """The playground. The template gets `settings` (a dict, for `|tojson`), `base`, where static/ is, and `modules`.

    `modules` are those of the first script, which asks for the rest by their addresses in `settings`.
    """
    models = request.app.state.models
    settings = request.app.state.settings
    base = static_base()
    first, rest = ([urljoin(f"{base}/", module) for module in modules] for modules in page_modules())
    for_scripts = {
        "modules": rest,
        "version": __version__,
        "defaultModel": models.default,
        "opening": models.opening,
        "first": models.first,
        "kernels": kernels_base(),
        "oracle": {
            "ready": oracle_state(settings.oracle_state)["state"] == "ready",
            "maxTokens": settings.oracle_max_tokens,
            "maxResponseBytes": settings.oracle_max_response_bytes,
            "timeoutSeconds": settings.oracle_timeout_s,
        },
    }
    html = _templates.get_template("index.html").render(settings=for_scripts, base=base, modules=first)
    return HTMLResponse(html, headers={"Cache-Control": "no-cache"})


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
def favicon(request: Request):
    """Browsers ask for it whatever the page says."""
    if not (STATIC / "icon.svg").is_file():
        raise NotFound("There is no icon.")
    return send_asset(request, STATIC / "icon.svg")


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def health() -> JSONResponse:
    """Answers as soon as the server does."""
    return JSONResponse({"ok": True}, headers={"Cache-Control": "no-store"})
