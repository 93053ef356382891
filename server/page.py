"""The page itself: one jinja2 template, with what its scripts need to know in a JSON block that nothing executes."""

from pathlib import Path
from urllib.parse import urljoin

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse

from server import __version__
from server.assets import STATIC, send_asset, static_base
from server.errors import NotFound
from server.modules import page_modules

TEMPLATES = Path(__file__).resolve().parent / "templates"

router = APIRouter()
_templates = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)


@router.api_route("/", methods=["GET", "HEAD"])
def page(request: Request) -> HTMLResponse:
    """The playground. The template gets `settings` (a dict, for `|tojson`), `base`, where static/ is, and `modules`."""
    settings = request.app.state.settings
    for_scripts = {
        "version": __version__,
        "defaultModel": request.app.state.models.default,
        "opening": request.app.state.models.opening,
        "oracle": {
            "maxTokens": settings.oracle_max_tokens,
            "maxResponseBytes": settings.oracle_max_response_bytes,
            "timeoutSeconds": settings.oracle_timeout_s,
        },
    }
    base = static_base()
    html = _templates.get_template("index.html").render(
        settings=for_scripts, base=base, modules=[urljoin(f"{base}/", module) for module in page_modules()]
    )
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
