"""`stream_plan` and `agenerate_plan`: plans for callers that don't want to wait, or mustn't block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

from constrained.agents.generate import generate_plan
from constrained.agents.plan import Plan, Step
from constrained.knowledge import ActionKnowledge

Event = str | Step | Plan
"""A piece of text, a step that was done, or the finished plan."""


async def agenerate_plan(task: str, knowledge: str | ActionKnowledge = "household", **options: Any) -> Plan:
    """`generate_plan` in a thread of its own, so that the event loop goes on meanwhile.

    The parameters are those of `generate_plan`; `on_start`, `on_step` and `on_text` are called in the event loop.
    """
    loop = asyncio.get_running_loop()

    def in_loop(callback: Callable[..., Any]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            loop.call_soon_threadsafe(callback, *arguments)

        return call

    for name in ("on_start", "on_step", "on_text"):
        if options.get(name) is not None:
            options[name] = in_loop(options[name])
    return await asyncio.to_thread(generate_plan, task, knowledge, **options)


def stream_plan(task: str, knowledge: str | ActionKnowledge = "household", **options: Any) -> Iterator[Event]:
    """Yield what `generate_plan` writes and does, as it happens, and at last the plan.

    The parameters are those of `generate_plan`, but for `on_step` and `on_text`. Closing the iterator ends the plan at
    the model's next token.

    Yields
    ------
    str
        A piece of text as a model on this machine writes it.
    Step
        After it was done.
    Plan
        At the end.
    """
    events: Queue[Event | BaseException] = Queue()
    closed = threading.Event()

    def put(event: Event) -> None:
        if closed.is_set():
            raise _Closed
        events.put(event)

    def work() -> None:
        try:
            events.put(generate_plan(task, knowledge, **options, on_step=put, on_text=put))
        except BaseException as error:  # raised again where the events are read
            events.put(error)

    threading.Thread(target=work, name="constrained-plan", daemon=True).start()
    try:
        while True:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            yield event
            if isinstance(event, Plan):
                return
    finally:
        closed.set()


class _Closed(Exception):
    """Nobody reads the events any more."""
