"""HTTP servers that only this machine, and only their own pages, can use.

Such a server listens on the loopback address, but any page that is open in a browser can send requests there. A
request must therefore name this machine as its host (an attacker can make another host name point here), must not come
from another origin, and a POST must carry the token that only our own page has.
"""

from __future__ import annotations

import errno
import hmac
import json
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from constrained.errors import ConstrainedError

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
TOKEN = "X-Constrained-Token"
"""The header that carries the token; a page of another origin can't send it without asking first, which is refused."""

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy stands in the page itself
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every response."""


class Protected:
    """An application that refuses foreign requests and sends `HEADERS`.

    Parameters
    ----------
    app : ASGI application
    port : int
        Where the server listens.
    token : str, optional
        What POST requests must carry; None: no token is needed.
    """

    def __init__(self, app: ASGIApp, port: int, token: str | None = None):
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in NAMES}
        self.origins = {None, *(f"http://{host}" for host in self.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        why = self.reason(Request(scope)) if scope["type"] == "http" else None
        await (error_response(f"refused: {why}", 403) if why else self.app)(scope, receive, with_headers)

    def reason(self, request: Request) -> str | None:
        """The reason to refuse a request, or None."""
        headers = request.headers
        if headers.get("Host") not in self.hosts:
            return "another host is asked for"
        if headers.get("Origin") not in self.origins:
            return "it comes from another origin"
        if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "it comes from another site"
        token = headers.get(TOKEN, "").encode()
        if request.method == "POST" and self.token is not None and not hmac.compare_digest(token, self.token.encode()):
            return "it lacks this start's token: reload the page"
        return None


def json_response(data: Any, status: int = 200) -> Response:
    """`data` as JSON, which may have lone surrogates."""
    return Response(json.dumps(data), status, media_type="application/json")


def error_response(message: str, status: int) -> Response:
    """An error as JSON."""
    return json_response({"error": {"message": message, "hint": None}}, status)


async def json_body(request: Request, most: int) -> Any:
    """The JSON of a request with a limit of bytes.

    Raises HTTPException: it has more (413), isn't declared as JSON (415), or isn't JSON (400).
    """
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "the body is not declared as JSON: send Content-Type: application/json")
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise HTTPException(413, f"the request has more than {most:,} bytes")
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None


def listen(ports: Iterable[int]) -> socket.socket:
    """Listen on the first free port of `ports`; 0 means any free port.

    Raises ConstrainedError: none of them is free.
    """
    for port in (ports := list(ports)):
        try:
            return socket.create_server((ADDRESS, port))
        except OverflowError:
            raise ConstrainedError(f"there is no port {port}", "use 1 to 65535, or 0 for any that is free") from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                problem = f"can't listen at port {port}: {error.strerror}"
                raise ConstrainedError(problem, "choose another with --port; --port 0 takes any that is free") from None
    taken = f"port {ports[0]} is taken" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]} are taken"
    raise ConstrainedError(taken, "choose another with --port; --port 0 takes any that is free")


def serve(app: ASGIApp, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve an application until interrupted; calls `ready` with its address first.

    Requests still running a second after the interruption are cancelled.
    """
    config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=1)
    with listening, suppress(KeyboardInterrupt):
        ready(f"http://{ADDRESS}:{listening.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listening])
