"""HTTP servers that only this machine, and only their own pages, can use.

Such a server listens on the loopback address, but a page from anywhere that is open in a browser can send requests
there. A request must therefore name this machine as its host (an attacker's host name can be made to point here), must
not come from another origin, and a POST must carry the token that only our own page was given.
"""

from __future__ import annotations

import errno
import hmac
import socket
from collections.abc import Callable, Iterable

from flask import Flask, Response, jsonify, request
from werkzeug.serving import WSGIRequestHandler, make_server

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


def protect(app: Flask, port: int, token: str | None) -> None:
    """Let `app` refuse foreign requests and send `HEADERS`.

    `port`: where the server listens. `token`: what POST requests must carry; None: no token is needed.
    """
    hosts = {f"{name}:{port}" for name in NAMES}
    origins = {None, *(f"http://{host}" for host in hosts)}

    def reason() -> str | None:
        if request.headers.get("Host") not in hosts:
            return "another host is asked for"
        if request.headers.get("Origin") not in origins:
            return "it comes from another origin"
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "it comes from another site"
        given = request.headers.get(TOKEN, "").encode()
        if request.method == "POST" and token is not None and not hmac.compare_digest(given, token.encode()):
            return "it lacks this start's token: reload the page"
        return None

    @app.before_request
    def refuse_foreign():
        why = reason()
        return (jsonify(error={"message": f"refused: {why}", "hint": None}), 403) if why else None

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.extend(HEADERS)
        return response


def listen(ports: Iterable[int]) -> socket.socket:
    """Listen at the first free one of `ports`; 0 stands for any free port.

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


def serve(app: Callable, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve a WSGI application until interrupted; calls `ready` with its address first."""
    with listening:
        port = listening.getsockname()[1]
        server = make_server(ADDRESS, port, app, threaded=True, request_handler=_Quiet, fd=listening.fileno())
        ready(f"http://{ADDRESS}:{port}/")
        server.serve_forever()


class _Quiet(WSGIRequestHandler):
    def log_request(self, code="-", size="-") -> None:
        """Log nothing."""
