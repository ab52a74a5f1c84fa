"""How the server and the proxy answer a request that fails, whichever endpoint it was for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from constrained.errors import ConstrainedError
from constrained.server.chat_request import RequestError, failed

Endpoint = Callable[[Request], Awaitable[Response]]

_EXPECTED = (ConstrainedError, HTTPException, ClientDisconnect)


def safe(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose unexpected errors are logged here, without their texts, which other loggers would write."""

    async def run(request: Request) -> Response:
        try:
            return await endpoint(request)
        except _EXPECTED:
            raise
        except Exception as error:
            raise failed(error) from None

    return run


async def error_answer(_: Request, error: Exception) -> Response:
    """The response for an error, in the form of OpenAI's API."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    if isinstance(error, HTTPException):
        refused = RequestError(error.detail, status=error.status_code)
    elif isinstance(error, ConstrainedError):
        refused = RequestError.of(error)
    else:
        refused = RequestError(f"the server failed: {type(error).__name__}", status=500)
    later = {"retry-after": "1"} if refused.status in (429, 503) else None  # in seconds
    return JSONResponse(refused.body(), status_code=refused.status, headers=later)


def handlers(answer: Callable[[Request, Exception], Awaitable[Response]] = error_answer) -> dict[Any, Any]:
    """The exception handlers of an application in which `answer` answers every error."""
    return dict.fromkeys((*_EXPECTED, Exception), answer)
