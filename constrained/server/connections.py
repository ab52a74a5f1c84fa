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
from math import ceil
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from constrained.errors import ConstrainedError
from constrained.server import bounds

BACKLOG = 32
"""Connections that are accepted at once."""


class Stage(Enum):
    """What a connection waits for."""

    HEAD, BODY, ANSWER, IDLE = range(4)


class BoundedConnection(H11Protocol):
    """An HTTP connection of uvicorn's whose stages have deadlines."""

    seconds: ClassVar[dict[Stage, float]] = {
        Stage.HEAD: bounds.HEAD_SECONDS,
        Stage.BODY: bounds.BODY_SECONDS + 1.0,  # a little more, so that the application can answer with an error
        Stage.ANSWER: bounds.SECONDS + bounds.READING_SECONDS,
        Stage.IDLE: bounds.HEAD_SECONDS,
    }
    """Seconds until the connection is closed; a stage that isn't named has no deadline."""

    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
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
        self._watch(Stage.IDLE if self.stage is Stage.HEAD else None)

    def pause_writing(self) -> None:
        super().pause_writing()  # makes the application wait
        self._unread = self.loop.call_later(bounds.READING_SECONDS, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()

    def drop(self) -> None:
        """Close the connection at once, even if data is unsent."""
        self.transport.abort()
        self.connections.discard(self)

    def _watch(self, stage: Stage | None = None) -> None:
        """Set a new deadline if another stage, or another request, has begun."""
        at = self.cycle, stage or self.stage
        if at == self._at:
            return
        self._at = at
        if self._timer is not None:
            self._timer.cancel()
        seconds = self.seconds.get(at[1])
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.drop)


class ProxiedConnection(BoundedConnection):
    """A connection of the proxy: an answer takes as long as the upstream's does, and load balancers keep it open."""

    seconds: ClassVar[dict[Stage, float]] = {
        Stage.HEAD: bounds.HEAD_SECONDS,
        Stage.BODY: bounds.BODY_SECONDS + 1.0,
        Stage.IDLE: bounds.IDLE_SECONDS,
    }


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


def serve(
    app: Any, host: str, port: int, ready: Callable[[str], None], kind: type[BoundedConnection] = BoundedConnection
) -> None:
    """Serve an application until Ctrl+C or SIGTERM, after which answers that have begun are ended.

    `ready` is called with the address once the server listens.

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
    # Accepted connections inherit it. asyncio sets it only where it makes the socket itself; else an answer waits 40 ms
    # until the client has acknowledged its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        ready(f"http://{shown}:{listening.getsockname()[1]}/v1")
        uvicorn.Server(config(app, kind)).run(sockets=[listening])


def config(app: Any, kind: type[BoundedConnection] = BoundedConnection) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=kind,
        timeout_keep_alive=ceil(kind.seconds[Stage.IDLE]),
        log_config=None,  # as all else is logged
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        backlog=BACKLOG,
    )
