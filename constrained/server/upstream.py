"""Requests to another server of OpenAI's API over HTTP: connections, time-outs, and its errors as RequestError."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2 as http

from constrained.server import bounds
from constrained.server.chat_request import RequestError

MAX_ANSWER = 16 << 20
"""Bytes of an answer, or of one event of a stream."""

CONNECT_SECONDS = 10.0
"""Time to connect."""

TRIES = 3
"""Attempts to connect; a request that has been sent is not sent again."""

_NOT_SENT = {
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer",
    "upgrade", "accept-encoding", "expect", "proxy-authorization", "cookie",
}  # fmt: skip
"""Headers of a request that are about the connection, or the proxy's own."""

POOLS = 8
"""Pools of connections: a pool looks at all its connections for each request."""

KEPT_SECONDS = 4.0
"""How long an idle connection is kept: less than servers do (uvicorn: 5 s), as a request on one that closes is lost."""

_OTHERS = 16
"""Connections for all else, such as the question whether the server is there."""

_GIVEN_BACK = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "openai-processing-ms")
_GIVEN_BACK_BEGIN = "x-ratelimit-"


class _Pool:
    """A pool of connections, with the number of requests that use it."""

    def __init__(self, seconds: float, context: ssl.SSLContext):
        most = (bounds.WAITING + _OTHERS) // POOLS
        limits = http.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=KEPT_SECONDS)
        timeout = http.Timeout(seconds, connect=CONNECT_SECONDS)
        self.client = http.AsyncClient(
            limits=limits, timeout=timeout, follow_redirects=False, trust_env=False, verify=context
        )
        self.running = 0


class Upstream:
    """A server that requests are passed on to.

    Parameters
    ----------
    url : str
        Its address with the version, such as ``https://api.example.com/v1``.
    seconds : float
        Longest time without a byte of its answer.

    Raises
    ------
    RequestError
        That is no address of a server.
    """

    def __init__(self, url: str, seconds: float = bounds.SECONDS):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RequestError(f"{url!r} is no server's address", "such as https://api.example.com/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise RequestError("the upstream's address has a key or parameters in it", "clients send the key")
        self.url, self.seconds = url.rstrip("/"), seconds
        self._pools: list[_Pool] = []

    def _pool(self) -> _Pool:
        """The pool with the fewest requests. Pools are made on first use, inside the event loop."""
        if not self._pools:
            context = http.create_ssl_context(trust_env=False)
            self._pools = [_Pool(self.seconds, context) for _ in range(POOLS)]
        return min(self._pools, key=lambda pool: pool.running)

    async def up(self, seconds: float) -> bool:
        """Whether the server answers within `seconds`, without a server error."""
        try:
            answer = await self._pool().client.get(f"{self.url}/models", timeout=seconds)
        except http.HTTPError:
            return False
        return answer.status_code < 500

    @asynccontextmanager
    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None
    ) -> AsyncIterator[http.Response]:
        """Send a request; its answer is read as it arrives, until the end of the block.

        Raises RequestError: the server is away (502), or says nothing for too long (504).
        """
        sent = {name: value for name, value in headers.items() if name.lower() not in _NOT_SENT}
        pool = self._pool()
        if body is not None:
            sent["accept-encoding"] = "identity"
        request = pool.client.build_request(method, f"{self.url}{path}", headers=sent, json=body)
        pool.running += 1
        try:
            async with self._answer(pool.client, request) as answer:
                yield answer
        finally:
            pool.running -= 1

    @asynccontextmanager
    async def _answer(self, client: http.AsyncClient, request: http.Request) -> AsyncIterator[http.Response]:
        for attempt in range(TRIES):
            try:
                answer = await client.send(request, stream=True)
                break
            except (http.ConnectError, http.ConnectTimeout):
                if attempt == TRIES - 1:
                    raise RequestError("the upstream can't be reached", "try again later", status=502) from None
                await asyncio.sleep(0.1 * 2**attempt)
            except http.TimeoutException:
                raise _late(self.seconds) from None
            except http.HTTPError as error:
                raise _broken(error) from None
        try:
            yield answer
        except http.TimeoutException:
            raise _late(self.seconds) from None
        except http.HTTPError as error:
            raise _broken(error) from None
        finally:
            await answer.aclose()


def _late(seconds: float) -> RequestError:
    return RequestError(f"the upstream said nothing for {seconds:g} s", "try again later", status=504)


def _broken(error: Exception) -> RequestError:
    return RequestError(f"the upstream's answer broke off: {type(error).__name__}", "try again", status=502)


def nonsense(what: str) -> RequestError:
    """The error for an answer that can't be read, which the client gets in its place."""
    return RequestError(f"the upstream's answer can't be read: {what}", "nothing was carried out", status=502)


async def whole(answer: http.Response) -> bytes:
    """The bytes of an answer. Raises RequestError: it is too long."""
    data = bytearray()
    async for piece in answer.aiter_bytes():
        data += piece
        if len(data) > MAX_ANSWER:
            raise nonsense(f"more than {MAX_ANSWER:,} bytes")
    return bytes(data)


async def server_sent(answer: http.Response) -> AsyncIterator[list[str]]:
    """Yield the data of a stream's events, those that arrived together in one list. Raises RequestError: too long."""
    rest, lines, events = b"", [], []
    async for piece in answer.aiter_bytes():
        rest += piece
        *whole_lines, rest = rest.replace(b"\r\n", b"\n").split(b"\n")
        if len(rest) > MAX_ANSWER:
            raise nonsense(f"an event of more than {MAX_ANSWER:,} bytes")
        for line in whole_lines:
            if line.startswith(b"data:"):
                lines.append(line[5:].lstrip(b" "))
            elif not line.strip() and lines:
                events.append(b"\n".join(lines).decode("utf-8", "replace"))
                lines = []
        if events:
            yield events
            events = []
    if rest.startswith(b"data:"):
        lines.append(rest[5:].strip())
    if lines:
        yield [b"\n".join(lines).decode("utf-8", "replace")]


def headers_back(answer: http.Response) -> dict[str, str]:
    """The headers of an answer that are passed on to clients, such as rate limits and when to try again."""
    return {
        name: value
        for name, value in answer.headers.items()
        if name.lower() in _GIVEN_BACK or name.lower().startswith(_GIVEN_BACK_BEGIN)
    }
