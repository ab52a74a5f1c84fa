"""A proxy for any server of OpenAI's API: answers are judged under a policy before the client sees them.

It keeps no state: what is known comes from the conversation that each request holds. Copies of it can stand behind any
load balancer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.guard.answers import Judged, add_usage
from constrained.guard.words import SaysYes
from constrained.server import bounds
from constrained.server.bodies import Bodies
from constrained.server.chat_request import RequestError
from constrained.server.failures import Endpoint, error_answer, handlers, safe
from constrained.server.forms import HALF, Chat, Responses, WireFormat
from constrained.server.judged import FLAG, SMALL, Exchange, Judge
from constrained.server.metrics import Metrics
from constrained.server.upstream import Upstream, headers_back, nonsense, server_sent, whole

log = logging.getLogger("constrained.proxy")

READY_SECONDS = 5.0
"""How long an upstream's state is believed, and the time that it has to answer."""

_DONE = "[DONE]"
_QUOTED = re.compile(r": | ['\"]")


class JsonLines(logging.Formatter):
    """Formats every record of the log as a JSON object in one line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__  # its message might quote a user's text
        return json.dumps({**line, **getattr(record, "fields", {"message": record.getMessage()})})


T = TypeVar("T")


class Proxy:
    """The proxy's requests.

    Parameters
    ----------
    upstream : Upstream
    judge : Judge
    """

    def __init__(self, upstream: Upstream, judge: Judge):
        self.upstream, self.judge, self.metrics = upstream, judge, Metrics(lambda: self._running)
        self.bodies = Bodies(lambda: self._held)
        self._held = 0
        self._running = 0
        self._seen_up = (0.0, False)

    # judged requests

    def endpoint(self, form: WireFormat) -> Endpoint:
        """The endpoint for requests of a form."""
        return lambda request: self.answer(request, form)

    async def answer(self, request: Request, form: WireFormat) -> Response:
        """Answer a request with the upstream's answer, which is judged first."""
        if self._running >= bounds.WAITING:
            raise RequestError("too many requests are being answered", "try again later", status=429)
        began, identity = time.monotonic(), f"req_{uuid.uuid4().hex[:24]}"
        data = await self.bodies.read(request)
        self._running += 1
        self._held += len(data)
        note: dict[str, Any] = {"request": identity, "attempts": 0, "violations": []}
        streams = False
        try:
            asked = await _worked_out(len(data) <= SMALL, self.judge.read, data, form)
            exchange = await _worked_out(asked.small, self.judge.begin, asked)
            note["past_violations"] = exchange.conversation.violations
            streams = exchange.body.get("stream") is True
            headers = {**dict(request.headers), "x-request-id": request.headers.get("x-request-id", identity)}
            if streams:
                events = self._streamed(exchange, headers, note, began, len(data))
                first = await _while_there(anext(events), request)
                return StreamingResponse(_with_first(first, events), media_type="text/event-stream",
                                         headers=self._headers(exchange, identity))  # fmt: skip
            return await _while_there(self._answered(exchange, headers, note, identity), request)
        except BaseException as error:
            streams = False
            note["error"] = _shown(error)
            raise
        finally:
            if not streams:
                self._over(note, began, len(data))

    def _over(self, note: dict[str, Any], began: float, size: int) -> None:
        self._running -= 1
        self._held -= size
        note["seconds"] = round(time.monotonic() - began, 4)
        self.metrics.answered(note)
        log.info("a request was answered", extra={"fields": note})

    def _headers(self, exchange: Exchange, identity: str) -> dict[str, str]:
        past = exchange.conversation.violations
        return {"x-constrained-request": identity, **({"x-constrained-past-violations": str(past)} if past else {})}

    async def _answered(
        self, exchange: Exchange, headers: Mapping[str, str], note: dict[str, Any], identity: str
    ) -> Response:
        form = exchange.form
        used: dict[str, Any] = {}
        back = self._headers(exchange, identity)
        for attempt in range(self.judge.retries + 1):
            note["attempts"] = attempt + 1
            asked = time.monotonic()
            async with self.upstream.ask("POST", form.path, _again(headers, attempt), exchange.next_body()) as answer:
                data = await whole(answer)
            note["upstream_seconds"] = round(note.get("upstream_seconds", 0) + time.monotonic() - asked, 4)
            back |= headers_back(answer)
            if answer.status_code >= 400:
                note["status"] = answer.status_code
                kind = answer.headers.get("content-type", "application/json")
                return Response(data, answer.status_code, {**back, "content-type": kind})
            completion, message = form.read(data)
            judged = await _worked_out(exchange.small, exchange.judged, message)
            add_usage(used, completion.get("usage"))
            if used:
                completion["usage"] = used
            if judged.verdict is None:
                if attempt or HALF.search(data):
                    return JSONResponse(completion, headers=back)
                return Response(data, 200, {**back, "content-type": "application/json"})
            note["violations"].append(_noted(judged))
            if not judged.refused:
                return JSONResponse(form.with_first_calls(completion, judged.kept), headers=back)
        assert judged.verdict is not None
        if self.judge.on_violation == FLAG:
            completion["constrained"] = judged.verdict.to_dict()
            return JSONResponse(completion, headers={**back, "x-constrained-violation": "1"})
        return JSONResponse(form.with_text(completion, self.judge.refusal_text(judged.verdict)), headers=back)

    async def _streamed(
        self, exchange: Exchange, headers: Mapping[str, str], note: dict[str, Any], began: float, size: int
    ) -> AsyncIterator[str]:
        """Yield the events of an answer: texts as they come, calls when they are whole and admitted."""
        form, before = exchange.form, None
        try:
            for attempt in range(self.judge.retries + 1):
                note["attempts"] = attempt + 1
                asked = time.monotonic()
                async with self.upstream.ask(
                    "POST", form.path, _again(headers, attempt), exchange.next_body()
                ) as answer:
                    if answer.status_code >= 400:
                        raise _passed_on(answer.status_code, await whole(answer))
                    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                        raise nonsense("it is no stream of events")
                    before = taken = exchange.stream(before)
                    finished = False
                    async for several in server_sent(answer):
                        finished = any(data.strip() == _DONE for data in several)
                        events = [event for data in _before_end(several) for event in taken.add(data)]
                        if events:
                            exchange.begun = True
                            yield "".join(events)
                        if finished:
                            break
                    if not finished and not taken.finished:
                        raise nonsense("the stream broke off")
                note["upstream_seconds"] = round(note.get("upstream_seconds", 0) + time.monotonic() - asked, 4)
                judged = await _worked_out(exchange.small, exchange.judged, taken.message())
                if judged.verdict is not None:
                    note["violations"].append(_noted(judged))
                if not judged.refused:
                    rest = taken.rest(judged.kept if judged.verdict is not None else None)
                    break
            else:
                assert judged.verdict is not None
                if self.judge.on_violation == FLAG:
                    rest = taken.rest(None, constrained=judged.verdict.to_dict())
                else:
                    rest = taken.with_text(self.judge.refusal_text(judged.verdict))
            exchange.begun = True
            yield "".join(rest)
        except ConstrainedError as error:
            if not exchange.begun:
                raise
            note["error"] = _shown(error)
            yield form.error(
                error.upstream_body if isinstance(error, _PassedOn) else RequestError.of(error, 502).body()
            )
        finally:
            if exchange.begun:
                self._over(note, began, size)

    # other requests

    async def passed(self, request: Request) -> Response:
        """Pass on a request without tools and conversations, such as for the list of models, unchanged."""
        path = request.url.path.removeprefix("/v1")
        async with self.upstream.ask(request.method, path, dict(request.headers)) as answer:
            data = await whole(answer)
        kind = answer.headers.get("content-type", "application/json")
        return Response(data, answer.status_code, {**headers_back(answer), "content-type": kind})

    async def health(self, _: Request) -> Response:
        """Whether the proxy runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Whether the upstream answers, too; asked at most once in `READY_SECONDS`."""
        at, up = self._seen_up
        if not at or time.monotonic() - at > READY_SECONDS:
            up = await self.upstream.up(READY_SECONDS)
            self._seen_up = time.monotonic(), up
        return JSONResponse({"status": "ok" if up else "the upstream can't be reached"}, 200 if up else 503)

    async def measured(self, _: Request) -> Response:
        """Answer with counts and times in Prometheus's form."""
        text, kind = self.metrics.text()
        return Response(text, media_type=kind)


def make_proxy(
    upstream: str,
    policy: Source,
    *,
    retries: int = 2,
    on_violation: str = "ask",
    narrow: bool = False,
    seconds: float = bounds.SECONDS,
    says_yes: SaysYes | None = None,
    hosts: list[str] | None = None,
) -> Starlette:
    """Make the proxy as an ASGI application.

    Parameters
    ----------
    upstream : str
        The address of a server of OpenAI's API, such as ``https://api.example.com/v1``.
    policy : Source
        The knowledge that tool calls obey: a `.lark` file whose rules name the tools.
    retries : int
        How often a refused answer is sent back to the model, with the reason.
    on_violation : str
        What the client gets then: "ask", a text in place of the calls that asks the user or says why not; "block", an
        error; "flag", the answer as it is, marked.
    narrow : bool
        Leave out tools that can't be called now, and make an argument's listed values an enum.
    seconds : float
        Longest time without a byte of the upstream's answer.
    says_yes : callable, optional
        See `constrained.guard.Guard`.
    hosts : list of str, optional
        Host names that requests may be sent to; default: any.

    Raises
    ------
    ConstrainedError
        The address or the policy can't be used.
    """
    proxy = Proxy(Upstream(upstream, seconds), Judge(policy, retries, on_violation, narrow, says_yes))
    forms: list[WireFormat] = [Chat(), Responses()]
    routes = [
        *(Route(f"/v1{form.path}", safe(proxy.endpoint(form)), methods=["POST"]) for form in forms),
        Route("/v1/models", safe(proxy.passed)),
        Route("/v1/models/{name:path}", safe(proxy.passed)),
        Route("/health", safe(proxy.health)),
        Route("/ready", safe(proxy.ready)),
        Route("/metrics", safe(proxy.measured)),
        Route("/v1/{path:path}", safe(_unguarded), methods=["GET", "POST"]),
    ]
    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=hosts or ["*"])
    return Starlette(routes=routes, middleware=[trusted], exception_handlers=handlers(_error))


async def _unguarded(request: Request) -> Response:
    raise RequestError(f"{request.url.path} isn't guarded", "use /v1/chat/completions or /v1/responses", status=404)


async def _error(request: Request, error: Exception) -> Response:
    if isinstance(error, _PassedOn):
        return Response(error.data, error.status, media_type="application/json")
    return await error_answer(request, error)


class _PassedOn(RequestError):
    """An error of the upstream's own, which the client gets as it is."""

    data: bytes = b""

    @property
    def upstream_body(self) -> Any:
        """The upstream's error body if it is JSON, else an error of OpenAI's form."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return self.body()


def _passed_on(status: int, data: bytes) -> _PassedOn:
    error = _PassedOn(f"the upstream answered {status}", status=status)
    error.data = data
    return error


async def _worked_out(small: bool, work: Callable[..., T], *arguments: Any) -> T:
    """The result of `work`, which runs in another thread unless it is `small`."""
    return work(*arguments) if small else await asyncio.to_thread(work, *arguments)


async def _while_there(work: Awaitable[T], request: Request) -> T:
    """The result of `work`, which is cancelled if the client disconnects. Raises ClientDisconnect: it did."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=0.5))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    except StopAsyncIteration:
        raise nonsense("it is empty") from None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def _before_end(several: list[str]) -> Iterator[str]:
    return takewhile(lambda data: data.strip() != _DONE, several)


async def _with_first(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    try:
        yield first
        async for event in rest:
            yield event
    finally:
        await rest.aclose()  # type: ignore[attr-defined]


def _again(headers: Mapping[str, str], attempt: int) -> dict[str, str]:
    """The headers of a request; of a corrected one without the key by which servers answer as they did before."""
    return {name: value for name, value in headers.items() if not attempt or name.lower() != "idempotency-key"}


def _shown(error: BaseException) -> str:
    """An error as it is logged: what messages quote, or say behind a colon, might be what somebody wrote."""
    return _QUOTED.split(error.message)[0] if isinstance(error, ConstrainedError) else type(error).__name__


def _noted(judged: Judged) -> dict[str, Any]:
    """A violation as it is logged: names of the policy's and the request's, nothing that somebody wrote."""
    assert judged.verdict is not None
    unmet = judged.verdict.unmet[0]
    return {"tool": judged.verdict.name[:64], "kind": unmet.kind, "line": unmet.line, "kept": judged.kept}
