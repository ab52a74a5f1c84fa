"""Read the bodies of requests: each within a time limit, all together within a memory limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request

from constrained.server import bounds
from constrained.server.chat_request import RequestError


class Bodies:
    """Reads bodies. If they need too much memory together, the incomplete one that began first is dropped.

    Parameters
    ----------
    waiting : callable
        Returns the bytes of the bodies that were read and wait to be prepared.
    """

    def __init__(self, waiting: Callable[[], int]):
        self._waiting = waiting
        self._received: dict[asyncio.Timeout, int] = {}  # bytes of each body being read, oldest first

    async def read(self, request: Request) -> bytes:
        """The body of a request.

        Raises RequestError: it isn't declared as JSON (415), its length isn't declared (411) or is too much (413), it
        doesn't come in time (408), or there is no room for it (503).
        """
        if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            raise RequestError("the body is not declared as JSON", "send Content-Type: application/json", status=415)
        length = request.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise RequestError("the body's length is not declared", "send Content-Length", status=411)
        if len(length) > 12 or int(length) > bounds.BODY:
            raise RequestError(f"the request has more than {bounds.BODY:,} bytes", status=413)
        data = bytearray()
        limit = asyncio.timeout(bounds.BODY_SECONDS)
        try:
            async with limit:
                async for chunk in request.stream():
                    data += chunk
                    self._received[limit] = len(data)
                    self._make_room()
        except TimeoutError:
            raise RequestError("the request's body didn't come in time", "send it at once", status=408) from None
        finally:
            self._received.pop(limit, None)
        return bytes(data)

    def _make_room(self) -> None:
        received = sum(self._received.values())
        if received + self._waiting() <= bounds.HELD:
            return
        if len(self._received) == 1:
            raise RequestError("too many large requests are waiting", "try again later", status=503)
        first = next(iter(self._received))
        del self._received[first]
        first.reschedule(0.0)  # ends its reading at once
