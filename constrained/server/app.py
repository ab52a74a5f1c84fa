"""The HTTP server: the paths and messages of OpenAI's API, on Starlette."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.models import LoadedModel
from constrained.server.batches import Answer, Batches, Job
from constrained.server.bodies import Bodies
from constrained.server.chat_request import RequestError, log
from constrained.server.conversation import usual_format
from constrained.server.failures import handlers, safe

CHAT, MODELS = "/v1/chat/completions", "/v1/models"

_ANSWER = "constrained.answer"
"""Where the finished answer is kept in a request's scope, for the log."""


def make_app(
    loaded: LoadedModel,
    policy: Source | None = None,
    *,
    call_format: str | None = None,
    key: str | None = None,
    hosts: list[str] | None = None,
) -> Starlette:
    """Make the server as an ASGI application.

    Parameters
    ----------
    loaded : LoadedModel
    policy : Source, optional
        The knowledge that tool calls obey: a `.lark` file whose rules name the tools.
    call_format : str, optional
        How the model writes calls: a name of `constrained.server.conversation.MARKERS`; default: as its template does.
    key : str, optional
        The key that requests must send as ``Authorization: Bearer …``.
    hosts : list of str, optional
        Host names that requests may be sent to; default: any. Without a list, a web page of another site can reach a
        local server through a host name of its own that points to this machine.
    """
    batches = Batches(loaded, policy, call_format or usual_format(loaded))
    bodies = Bodies(batches.waiting_bytes)
    model = loaded.name

    async def chat(request: Request) -> Response:
        events: asyncio.Queue[str | Answer | ConstrainedError] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # Other threads tell this one what happens. The status of the answer depends on the first event: an error has
        # its own; once a piece of text is there, the answer is a stream.
        job = Job(await bodies.read(request), lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
        batches.submit(job)
        try:
            first = await _next(events, request)
        except BaseException:
            job.over.set()
            raise
        if isinstance(first, ConstrainedError):
            raise first
        if isinstance(first, Answer) and not job.streams:
            request.scope[_ANSWER] = first
            return JSONResponse(_completion(first, model))
        return StreamingResponse(_events(first, events, job, model, request), media_type="text/event-stream")

    async def models(request: Request) -> Response:
        listed = {"id": model, "object": "model", "created": 0, "owned_by": "constrained"}
        name = request.path_params.get("name")
        if name not in (None, model):
            raise RequestError(f"there is no model {name!r}", f"use {model!r}", status=404, param="model")
        return JSONResponse(listed if name else {"object": "list", "data": [listed]})

    def guarded(endpoint: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def checked(request: Request) -> Response:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if key and not hmac.compare_digest(given.encode(), key.encode()):
                raise RequestError("the key is wrong or missing", "send Authorization: Bearer KEY", status=401)
            return await endpoint(request)

        return safe(checked)

    return Starlette(
        routes=[
            Route(CHAT, guarded(chat), methods=["POST"]),
            Route(MODELS, guarded(models)),
            Route(MODELS + "/{name:path}", guarded(models)),
        ],
        middleware=[Middleware(Logged), Middleware(TrustedHostMiddleware, allowed_hosts=hosts or ["*"])],
        exception_handlers=handlers(),
    )


class Logged:
    """Logs each request when its answer ends: its status, time and tokens; no contents, no keys, no unknown paths."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.monotonic(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            path = scope.get("path", "")
            shown = path if path in (CHAT, MODELS) else f"{MODELS}/…" if path.startswith(f"{MODELS}/") else "(no path)"
            answer = scope.get(_ANSWER)
            tokens = f", {answer.prompt_tokens} + {answer.completion_tokens} tokens, {answer.finish}" if answer else ""
            client = (scope.get("client") or ("-",))[0]
            seconds = time.monotonic() - began
            log.info("%s %s %s %d, %.3f s%s", client, scope.get("method", ""), shown, status, seconds, tokens)


async def _next(told: asyncio.Queue, request: Request) -> Any:
    """The next event; raises ClientDisconnect when the client is gone."""
    while True:
        try:
            return await asyncio.wait_for(told.get(), 1.0)
        except TimeoutError:
            if await request.is_disconnected():
                raise ClientDisconnect from None


def _completion(answer: Answer, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.said or None if answer.calls else answer.said}
    if answer.calls:
        message["tool_calls"] = [*map(_tool_call, answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    return {**_head(model, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


async def _events(
    first: str | Answer, told: asyncio.Queue, job: Job, model: str, request: Request
) -> AsyncIterator[str]:
    """Yield the answer as server-sent events; each call is sent in one piece."""
    head = _head(model, "chat.completion.chunk")

    def event(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    try:
        yield event({"role": "assistant", "content": ""})
        now: Any = first
        while isinstance(now, str):
            yield event({"content": now})
            now = await told.get()
        if isinstance(now, ConstrainedError):
            yield f"data: {json.dumps(RequestError.of(now, 500).body())}\n\n"
            return
        request.scope[_ANSWER] = now
        for i, call in enumerate(now.calls):
            yield event({"tool_calls": [{"index": i, **_tool_call(call)}]})
        yield event({}, now.finish)
        if job.usage:
            yield f"data: {json.dumps({**head, 'choices': [], 'usage': _usage(now)})}\n\n"
        yield "data: [DONE]\n\n"
    finally:
        job.over.set()


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _tool_call(call: tuple[str, str]) -> dict[str, Any]:
    function = {"name": call[0], "arguments": call[1]}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}


def _usage(answer: Answer) -> dict[str, int]:
    read, written = answer.prompt_tokens, answer.completion_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
