"""Put the application together. One module per thing it answers; this file only lists them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from server import __version__, assets, model_files, oracle_api, page, status
from server.errors import ApiError, on_api_error, on_http_exception
from server.guard import Guard
from server.model_index import ModelIndex
from server.oracle_queue import OracleQueue
from server.settings import Settings, load_settings


def create_app(settings: Settings | None = None) -> FastAPI:
    """The ASGI application. Raises BadSettings or a catalogue error, each with one sentence, when it cannot work."""
    settings = settings or load_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await app.state.oracle.close()

    app = FastAPI(
        title="Attention playground",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.models = ModelIndex(settings.model)
    app.state.oracle = OracleQueue(timeout_s=settings.oracle_timeout_s, waiting=settings.oracle_waiting)
    for part in (page, assets, model_files, status, oracle_api):
        app.include_router(part.router)
    app.add_exception_handler(ApiError, on_api_error)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_middleware(Guard, hosts=settings.hosts)
    return app
