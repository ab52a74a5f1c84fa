"""The HTTP server: the paths and messages of OpenAI's API, on Starlette."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.models import LoadedModel
from constrained.pages.local_server import json_body
from constrained.server import bounds
from constrained.server.batches import Answer, Batches, Job
from constrained.server.chat_request import RequestError, read_request
from constrained.server.conversation import usual_format


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
    model = loaded.name

    async def chat(request: Request) -> Response:
        asked = read_request(await json_body(request, bounds.BODY), model)
        told: asyncio.Queue[str | Answer | ConstrainedError] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        # The writing thread tells this one what happens. The status of the answer depends on the first event: an error
        # has its own; once a piece of text is there, the answer is a stream.
        job = Job(asked, lambda event: loop.call_soon_threadsafe(told.put_nowait, event))
        batches.submit(job)
        try:
            first = await _next(told, request)
            while not asked.stream and isinstance(first, str):
                first = await _next(told, request)
        except BaseException:
            job.over.set()
            raise
        if isinstance(first, ConstrainedError):
            raise first
        if isinstance(first, Answer) and not asked.stream:
            return JSONResponse(_completion(first, model))
        return StreamingResponse(_events(first, told, job, model), media_type="text/event-stream")

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

        return checked

    return Starlette(
        routes=[
            Route("/v1/chat/completions", guarded(chat), methods=["POST"]),
            Route("/v1/models", guarded(models)),
            Route("/v1/models/{name:path}", guarded(models)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts or ["*"])],
        exception_handlers={
            ConstrainedError: _error,
            HTTPException: _error,
            ClientDisconnect: _error,
            Exception: _error,
        },
    )


async def _next(told: asyncio.Queue, request: Request) -> Any:
    """The next event; raises ClientDisconnect when the client is gone."""
    while True:
        try:
            return await asyncio.wait_for(told.get(), 1.0)
        except TimeoutError:
            if await request.is_disconnected():
                raise ClientDisconnect from None


async def _error(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        refused = RequestError(error.detail, status=error.status_code)
    elif isinstance(error, ConstrainedError):
        refused = RequestError.of(error)
    else:
        refused = RequestError(f"the server failed: {type(error).__name__}", status=500)
    return JSONResponse(refused.body(), status_code=refused.status)


def _completion(answer: Answer, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.said or None if answer.calls else answer.said}
    if answer.calls:
        message["tool_calls"] = [*map(_tool_call, answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    return {**_head(model, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


async def _events(first: str | Answer, told: asyncio.Queue, job: Job, model: str) -> AsyncIterator[str]:
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
        for i, call in enumerate(now.calls):
            yield event({"tool_calls": [{"index": i, **_tool_call(call)}]})
        yield event({}, now.finish)
        if job.request.stream_usage:
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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: Starlette, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl+C; `ready` is called with the address once the server listens.

    Raises
    ------
    ConstrainedError
        The address can't be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise ConstrainedError(f"can't listen at {host}:{port}: {error}", "use another --port or --host") from None
    with listening:
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        ready(f"http://{shown}:{listening.getsockname()[1]}/v1")
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])
