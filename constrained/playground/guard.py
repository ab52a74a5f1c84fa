"""Who may talk to the playground: pages of its own, on this machine.

It listens on the loopback address alone, but every page that a browser shows can send requests there. So a request
must name this machine as its host (a name that an attacker's server points here is another), must not come from
another origin, and one that does anything must carry the token that only our own page has been given.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

NAMES = ("127.0.0.1", "localhost")
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
