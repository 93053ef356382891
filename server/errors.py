"""One shape for everything that goes wrong: {"error": {"code", "message"}} and one class per rule broken.

`code` is kebab-case and stable, for programs. `message` is one sentence for people: what was given, what is allowed,
what to do next. Nothing a client sent is repeated in it, because what was sent may be a prompt or may not be text.
"""

from collections.abc import Mapping

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse


class ApiError(Exception):
    """An answer other than success. Subclasses name the rule; `headers` go out with the answer."""

    status = 500
    code = "internal"

    def __init__(self, message: str, *, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})


class NotFound(ApiError):
    status, code = 404, "not-found"


class HostNotAllowed(ApiError):
    status, code = 400, "host-not-allowed"


class OriginNotAllowed(ApiError):
    status, code = 403, "origin-not-allowed"


class RangeNotSatisfiable(ApiError):
    status, code = 416, "range-not-satisfiable"


class BodyTooLarge(ApiError):
    status, code = 413, "body-too-large"


class ClientGone(ApiError):
    """The client hung up; nobody reads this answer, the log alone shows it."""

    status, code = 499, "client-gone"


class NotJson(ApiError):
    status, code = 415, "not-json"


class InvalidJson(ApiError):
    status, code = 400, "invalid-json"


class InvalidRequest(ApiError):
    status, code = 422, "invalid-request"


class UnknownModel(ApiError):
    status, code = 404, "unknown-model"


class ModelRefused(ApiError):
    status, code = 422, "model-refused"


class TooManyTokens(ApiError):
    status, code = 413, "too-many-tokens"


class ResponseTooLarge(ApiError):
    status, code = 413, "response-too-large"


class OracleAbsent(ApiError):
    status, code = 503, "oracle-absent"


class OracleBusy(ApiError):
    status, code = 503, "oracle-busy"


class OracleFailed(ApiError):
    status, code = 500, "oracle-failed"


class OracleTimeout(ApiError):
    status, code = 504, "oracle-timeout"


ORACLE_CODES = {
    kind.code: kind for kind in (InvalidRequest, ModelRefused, ResponseTooLarge, OracleAbsent, OracleFailed)
}

_PLAIN = {
    404: NotFound("There is nothing at this address."),
    405: ApiError("This address does not take that method."),
}


def envelope(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The one error body of this server."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers=dict(headers or {}))


def reply(error: ApiError) -> JSONResponse:
    """An ApiError as the answer a client sees. Errors are never kept by caches."""
    return envelope(error.status, error.code, error.message, {"Cache-Control": "no-store", **error.headers})


async def on_api_error(request: Request, error: Exception) -> JSONResponse:
    """FastAPI handler for ApiError."""
    assert isinstance(error, ApiError)
    return reply(error)


async def on_http_exception(request: Request, error: Exception) -> JSONResponse:
    """FastAPI handler for what the router itself raises (404, 405): same envelope, Allow header kept."""
    assert isinstance(error, HTTPException)
    plain = _PLAIN.get(error.status_code)
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "http-error")
    message = plain.message if plain else "The request could not be answered."
    return envelope(error.status_code, code, message, {"Cache-Control": "no-store", **(error.headers or {})})
