"""Servers that this machine alone can reach, and who may talk to them: pages of their own.

Such a server listens on the loopback address alone, but every page that a browser shows can send requests there. So
a request must name this machine as its host (a name that an attacker's server points here is another), must not come
from another origin, and one that does anything must carry the token that only our own page has been given.
"""

from __future__ import annotations

import errno
import hmac
import os
import socket
from collections.abc import Callable, Iterable, Mapping

from werkzeug.serving import WSGIRequestHandler, make_server

from constrained.errors import ConstrainedError

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
TOKEN = "X-Constrained-Token"
"""The header that carries the token; no other origin's page can send it without asking first, which is refused."""

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest of the policy stands in the page itself
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""


def refused(headers: Mapping[str, str], port: int, token: str | None) -> str | None:
    """Why a request is not answered; None if it is.

    Parameters
    ----------
    headers : mapping
        Of the request.
    port : int
        Where we listen.
    token : str or None
        What it must carry; None: it need not.
    """
    hosts = {f"{name}:{port}" for name in NAMES}
    if headers.get("Host") not in hosts:
        return "another host is asked for"
    origin = headers.get("Origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return "it comes from another origin"
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return "it comes from another site"
    if token is not None and not hmac.compare_digest(headers.get(TOKEN, "").encode(), token.encode()):
        return "it lacks this start's token: reload the page"
    return None


def listen(ports: Iterable[int]) -> socket.socket:
    """Listen at the first of `ports` that is free; 0: any.

    Raises
    ------
    ConstrainedError
        None of them is.
    """
    for port in (ports := list(ports)):
        try:
            return socket.create_server((ADDRESS, port))
        except OverflowError:
            raise ConstrainedError(f"there is no port {port}", "use 1 to 65535, or 0 for any that is free") from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                problem = f"can't listen at port {port}: {os.strerror(error.errno)}"
                raise ConstrainedError(problem, "choose another with --port; --port 0 takes any that is free") from None
    taken = f"port {ports[0]} is taken" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]} are taken"
    raise ConstrainedError(taken, "choose another with --port; --port 0 takes any that is free")


def serve(app: Callable, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve a WSGI application at a port that is listened at, until interrupted; `ready` is told its address first."""
    with listening:
        port = listening.getsockname()[1]
        server = make_server(ADDRESS, port, app, threaded=True, request_handler=_Quiet, fd=listening.fileno())
        ready(f"http://{ADDRESS}:{port}/")
        server.serve_forever()


class _Quiet(WSGIRequestHandler):
    def log_request(self, code="-", size="-") -> None:
        """Nothing: whoever looks at a page has no use for a line about it."""
