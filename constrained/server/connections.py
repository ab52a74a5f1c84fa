"""Connections with deadlines, and as many as the system's limits allow.

A client that sends half a request, or doesn't read its answer, can't keep its connection for ever; and where there are
too many connections, a new one takes the place of the oldest that hasn't sent a whole request. So clients that do
nothing can't shut out others.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from enum import Enum
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from constrained.errors import ConstrainedError
from constrained.server import bounds

BACKLOG = 32
"""Connections that are accepted at once."""


class Stage(Enum):
    """What a connection waits for."""

    HEAD, BODY, ANSWER = range(3)

    @property
    def seconds(self) -> float:
        """Seconds until the connection is closed."""
        body = bounds.BODY_SECONDS + 1.0  # the application answers first
        return (bounds.HEAD_SECONDS, body, bounds.SECONDS + bounds.READING_SECONDS)[self.value]


class BoundedConnection(H11Protocol):
    """An HTTP connection of uvicorn's whose stages have deadlines."""

    _timer: asyncio.TimerHandle | None = None
    _at: tuple[Any, Stage] | None = None

    @property
    def stage(self) -> Stage:
        """What the connection waits for."""
        if self.cycle is None or self.cycle.response_complete:
            return Stage.HEAD
        return Stage.BODY if self.cycle.more_body else Stage.ANSWER

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.since = self.loop.time()
        if len(self.connections) > most_connections():
            others = [one for one in self.connections if isinstance(one, BoundedConnection) and one is not self]
            idle = (one for one in others if one.stage is not Stage.ANSWER)
            min(idle, key=lambda one: one.since, default=self).drop()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def drop(self) -> None:
        """Close the connection at once, whatever is unsent."""
        self.transport.abort()
        self.connections.discard(self)

    def _watch(self) -> None:
        """Set the deadline anew where the next stage, or the next request, has begun."""
        at = self.cycle, self.stage
        if at == self._at:
            return
        self._at = at
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(at[1].seconds, self.drop)


def most_connections() -> int:
    """Connections that may be open: fewer than `bounds.CONNECTIONS` where the system allows few open files."""
    try:
        import resource
    except ImportError:  # Windows
        return bounds.CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return bounds.CONNECTIONS if files < 0 else max(16, min(bounds.CONNECTIONS, files - bounds.SPARE_FILES))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: Any, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve an application until Ctrl+C; `ready` is called with the address once the server listens.

    Raises
    ------
    ConstrainedError
        The address can't be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConstrainedError(f"can't listen at {host}:{port}: {error}", "use another --port or --host") from None
    with listening:
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        ready(f"http://{shown}:{listening.getsockname()[1]}/v1")
        uvicorn.Server(config(app)).run(sockets=[listening])


def config(app: Any) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        backlog=BACKLOG,
    )
