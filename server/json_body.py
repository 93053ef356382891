"""Read a request body as strict JSON and check it against a pydantic model; refuse the rest without echoing it."""

import json
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from server.errors import BodyTooLarge, ClientGone, InvalidJson, InvalidRequest, NotJson

Model = TypeVar("Model", bound=BaseModel)


async def read_json(request: Request, kind: type[Model], *, max_bytes: int) -> Model:
    """The body of `request` as a `kind`.

    Raises NotJson (wrong Content-Type), BodyTooLarge (also when no length was announced), ClientGone (hung up in the
    middle), InvalidJson (not UTF-8, not JSON, NaN or Infinity, a key twice, nested too deeply, a number too long to
    read), InvalidRequest (JSON of another shape).
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise NotJson("Send the request body as JSON, with Content-Type: application/json.")
    body = await _body(request, max_bytes)
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise InvalidJson(
            "The request body is not valid JSON in UTF-8, each key once; NaN and Infinity are not JSON."
        ) from None
    return _checked(value, kind)


async def _body(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise BodyTooLarge(f"The request body is larger than {max_bytes} bytes; send a smaller one.")
    except ClientDisconnect:
        raise ClientGone("The client hung up before its request was whole.") from None
    return bytes(body)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _checked(value: object, kind: type[Model]) -> Model:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        # A location holds names from the model and positions, or a key the client made up: show only the former.
        known = [str(part) for part in first["loc"] if isinstance(part, int) or part in kind.model_fields]
        where = ".".join(known) or "the body"
        reason = "is not a known field" if first["type"] == "extra_forbidden" else f"is refused: {first['msg']}"
        fields = ", ".join(kind.model_fields)
        raise InvalidRequest(f"In the request, {where} {reason}; known fields: {fields}.") from None
