"""POST /api/oracle/trace: what the PyTorch oracle computes for a list of token ids, as safetensors bytes."""

import json
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server.errors import InvalidRequest, OracleAbsent, ResponseTooLarge, TooManyTokens
from server.json_body import read_json
from server.oracle_state import oracle_state
from server.status import versions
from server.trace_names import NAMES, total_bytes

router = APIRouter()

Index = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


class TraceQuestion(BaseModel):
    """Which tensors of which layers, for which ids. Shapes: see python_ref; per-layer tensors are stacked in order."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str = Field(max_length=200)
    ids: list[Index] = Field(min_length=1)
    include: list[str] = Field(min_length=1, max_length=len(NAMES))
    layers: list[Index] | None = Field(None, max_length=1024)
    positions: list[Index] | None = None


@router.post("/api/oracle/trace")
async def oracle_trace(request: Request) -> Response:
    """Answers application/octet-stream; every refusal is the JSON error envelope."""
    settings = request.app.state.settings
    question = await read_json(request, TraceQuestion, max_bytes=settings.max_body_bytes)
    if len(question.ids) > settings.oracle_max_tokens:
        raise TooManyTokens(
            f"The prompt has {len(question.ids)} tokens; the oracle takes at most {settings.oracle_max_tokens}."
        )
    model = await run_in_threadpool(request.app.state.models.find, question.model)
    _check(question, model.shape["L"], model.shape["V"])
    _check_size(question, model.shape, settings.oracle_max_response_bytes)
    state = oracle_state(settings.oracle_state)
    if state["state"] != "ready":
        raise OracleAbsent(state["detail"])
    payload = {
        "folder": str(model.folder),
        "ids": question.ids,
        "include": list(dict.fromkeys(question.include)),
        "layers": question.layers,
        "positions": question.positions,
        "metadata": {
            "model_hash": await run_in_threadpool(lambda: model.checkpoint.hash),
            "backend": "oracle",
            "versions": json.dumps(versions()),
        },
    }
    body = await request.app.state.oracle.ask(payload, lambda: _hung_up(request))
    return Response(body, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


def _check(question: TraceQuestion, layers: int, vocabulary: int) -> None:
    if any(name not in NAMES for name in question.include):
        raise InvalidRequest(f"In the request, include holds an unknown name; known names: {', '.join(NAMES)}.")
    if max(question.ids) >= vocabulary:
        raise InvalidRequest(f"Token ids of this model lie between 0 and {vocabulary - 1}; one of those sent does not.")
    if any(layer >= layers for layer in question.layers or ()):
        raise InvalidRequest(f"Layers of this model lie between 0 and {layers - 1}; one of those sent does not.")
    if any(position >= len(question.ids) for position in question.positions or ()):
        raise InvalidRequest(f"Positions lie between 0 and {len(question.ids) - 1}; one of those sent does not.")


def _check_size(question: TraceQuestion, sizes: dict[str, int], limit_bytes: int) -> None:
    layers = sizes["L"] if question.layers is None else len(question.layers)
    tokens = len(question.ids)
    rows = tokens if question.positions is None else len(question.positions)
    needed = total_bytes(set(question.include), sizes, tokens=tokens, layers=layers, rows=rows)
    if needed > limit_bytes:
        raise ResponseTooLarge(
            f"The answer would have {needed} bytes and the limit is {limit_bytes}; ask for fewer layers or positions."
        )


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
