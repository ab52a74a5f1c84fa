"""A proxied request: the conversation that it holds, what the model is asked, and what of its answer is admitted."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.guard.answers import Judged, judge_answer
from constrained.guard.conversation import Conversation, Guard
from constrained.guard.followed import Followed
from constrained.guard.narrowing import narrowed, without_slots
from constrained.guard.streams import Assembled
from constrained.guard.verdict import WORDS, Verdict
from constrained.server import bounds
from constrained.server.chat_request import RequestError
from constrained.server.conversation import read_rules
from constrained.server.upstream import nonsense

ASK, BLOCK, FLAG = "ask", "block", "flag"
"""What a client gets for an answer that is still not admitted after the last attempt."""

MAX_RETRIES = 10
"""Most times that an answer is sent back."""

_GUARDS = 32
"""Lists of tools whose guards are kept."""


class Judge:
    """A policy, and what is done with answers that it doesn't admit.

    Parameters
    ----------
    policy : Source
    retries : int
    on_violation : str
    narrow : bool

    Raises
    ------
    ConstrainedError
        The policy can't be used, or an option is wrong.
    """

    def __init__(self, policy: Source, retries: int, on_violation: str, narrow: bool):
        self.policy = read_rules(policy)
        if on_violation not in (ASK, BLOCK, FLAG):
            raise ConstrainedError(f"--on-violation is {on_violation!r}", f"use {ASK}, {BLOCK} or {FLAG}")
        if not 0 <= retries <= MAX_RETRIES:
            raise ConstrainedError(f"--retries is {retries}", f"use 0 to {MAX_RETRIES}")
        self.retries, self.on_violation, self.narrow = retries, on_violation, narrow
        self._guards: OrderedDict[bytes, Followed] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, data: bytes) -> Exchange:
        """Read a request. Raises RequestError: it can't be judged, or nothing that it asks for is admitted now."""
        body = _read(data)
        tools = body.get("tools") or []
        messages = body["messages"]
        try:
            conversation = self._followed(tools).at_end_of(messages)
        except RequestError:
            raise
        except ConstrainedError as error:
            raise RequestError(error.message, error.hint, param="messages") from None
        if tools:
            body = {**body, "tools": without_slots(tools)}
        offered = tools if body.get("tool_choice") != "none" else []
        if self.narrow and offered:
            offered = narrowed(conversation, body["tools"])
            body = _with_tools(body, offered, conversation)
        if conversation.judge_text("") and not (offered and conversation.allowed()):
            why = "; ".join(map(str, conversation.judge_text("")))
            raise RequestError(f"the policy admits nothing now: no call, and no text: {why}", status=422)
        return Exchange(body, messages, conversation)

    def _followed(self, tools: Any) -> Followed:
        key = hashlib.sha256(json.dumps(tools, sort_keys=True).encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            found = self._guards.get(key)
            if found is not None:
                self._guards.move_to_end(key)
                return found
        try:
            found = Followed(Guard(tools, self.policy))
        except ConstrainedError as error:
            raise RequestError(error.message, error.hint, param="tools") from None
        with self._lock:
            self._guards[key] = found
            while len(self._guards) > _GUARDS:
                self._guards.popitem(last=False)
        return found

    def instead(self, verdict: Verdict) -> dict[str, Any]:
        """The message that a client gets in place of a refused one. Raises RequestError: `block` is what is done."""
        if self.on_violation == BLOCK:
            what = f"{verdict.name} was not admitted: {verdict.why}"
            raise RequestError(what, "nothing was carried out", status=422)
        if all(unmet.kind == WORDS for unmet in verdict.unmet) and isinstance(verdict.arguments, Mapping):
            given = ", ".join(
                f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in verdict.arguments.items()
            )
            return {
                "role": "assistant",
                "content": f"May I go ahead with {verdict.name} ({given})? Please say yes or no.",
            }
        reasons = "; ".join(dict.fromkeys(unmet.why for unmet in verdict.unmet))
        return {"role": "assistant", "content": f"I can't do that now ({verdict.name}): {reasons}."}


class Exchange:
    """One request and its answers.

    Attributes
    ----------
    body : dict
        As it is sent on, but for its messages.
    messages : list
    conversation : Conversation
    begun : bool
        Whether the client has got something of the answer.
    """

    def __init__(self, body: dict[str, Any], messages: list[Any], conversation: Conversation):
        self.body, self.messages, self.conversation = body, messages, conversation
        self.begun = False

    def asks(self, messages: list[Any]) -> dict[str, Any]:
        """The body of the request to the upstream."""
        return {**self.body, "messages": messages}

    def judged(self, message: Mapping[str, Any]) -> Judged:
        """Judge an answer. Raises RequestError: it can't be read."""
        if message.get("function_call") or not isinstance(message.get("content"), str | None):
            raise nonsense("it has calls or a content in a form that isn't judged")
        try:
            return judge_answer(self.conversation, message)
        except ConstrainedError as error:
            raise nonsense(error.message) from None

    def stream(self, head: Mapping[str, Any] | None) -> Stream:
        """An answer that comes in pieces; `head`: what the events of an answer before it began with."""
        guard = self.conversation.guard
        holds = guard.looks_at_text or bool(self.conversation.judge_text(""))
        return Stream(self, holds, head)


class Stream:
    """An answer that comes in pieces: texts pass as they come, unless they must be judged whole; calls are held.

    Attributes
    ----------
    head : dict or None
        What all events begin with: identity, time, model.
    finished : bool
        The upstream has said why the answer ended.
    """

    def __init__(self, exchange: Exchange, holds: bool, head: Mapping[str, Any] | None):
        self._exchange, self._flows, self._again = exchange, not holds, head is not None
        self.head = head
        self._assembled = Assembled()
        self._held: list[dict[str, Any]] = []
        self.finished = False

    def add(self, data: str) -> Iterator[str]:
        """Add the data of one event; yields what may be sent on. Raises RequestError: it can't be read."""
        try:
            chunk = json.loads(data)
            if isinstance(chunk, dict) and "error" in chunk and not chunk.get("choices"):
                raise nonsense(f"an error in the stream: {str(chunk['error'])[:200]}")
            self._assembled.add(chunk)
        except (ValueError, RecursionError):
            raise nonsense("an event is no JSON") from None
        except RequestError:
            raise
        except ConstrainedError as error:
            raise nonsense(error.message) from None
        if len(self._assembled.choices) > 1:
            raise nonsense("it has several choices")
        if self.head is None:
            self.head = {key: value for key, value in chunk.items() if key not in ("choices", "usage")}
        if self._again:  # the client sees one answer
            chunk = {**chunk, **self.head}
        self.finished = self.finished or bool(self._assembled.finish)
        choices = chunk.get("choices") or []
        delta = choices[0].get("delta") or {} if choices else {}
        says = any(isinstance(value, str) and value for key, value in delta.items() if key != "role")
        ends = not choices or choices[0].get("finish_reason") or self.finished
        if self._again and not (says or ends or delta.get("tool_calls")):
            return  # the role was said already
        self._held.append(chunk)
        self._flows = self._flows and not ends and not delta.get("tool_calls")
        if self._flows and says:  # nothing is sent before there is a text
            yield from map(self._event, self._held)
            self._held = []

    def message(self) -> dict[str, Any]:
        """The whole answer. Raises RequestError: there is none."""
        messages = self._assembled.messages()
        if not messages:
            raise nonsense("it has no message")
        return messages[0]

    def rest(self, kept: int | None, **more: Any) -> Iterator[str]:
        """What was held; of the calls, only the first `kept`."""
        for chunk in self._held:
            for choice in chunk.get("choices") or ():
                delta = choice.get("delta") or {}
                if kept is not None and delta.get("tool_calls"):
                    delta["tool_calls"] = [
                        call for n, call in enumerate(delta["tool_calls"]) if _number(call, n) < kept
                    ]
                    if not delta["tool_calls"]:
                        del delta["tool_calls"]
            yield self._event({**chunk, **({"constrained": more["constrained"]} if more else {})})

    def instead(self, text: str) -> Iterator[str]:
        """A text in place of what was held."""
        head = {"object": "chat.completion.chunk", **(self.head or {})}
        delta = {"role": "assistant", "content": text}
        yield self._event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield self._event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        for chunk in self._held:
            if not chunk.get("choices") and chunk.get("usage"):
                yield self._event(chunk)

    def _event(self, chunk: Mapping[str, Any]) -> str:
        self._exchange.begun = True
        return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode(errors="replace").decode()


def _number(call: Any, position: int) -> int:
    number = call.get("index") if isinstance(call, Mapping) else None
    return number if isinstance(number, int) else position


def _read(data: bytes) -> dict[str, Any]:
    """A request's body. Raises RequestError: it is none that can be judged."""
    try:
        body = json.loads(data)
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError("the request has half a character, which is not text", "escape both surrogates") from None
    except (ValueError, RecursionError):
        raise RequestError("the body is no JSON, or is nested too deeply") from None
    if not isinstance(body, dict):
        raise RequestError("a request is a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("there are no messages", "give one at least", param="messages")
    if len(messages) > bounds.MESSAGES:
        raise RequestError(f"there are more than {bounds.MESSAGES:,} messages", param="messages")
    if body.get("n") not in (None, 1):
        raise RequestError("several answers can't be judged", "leave n out", param="n")
    for field in ("functions", "function_call"):
        if body.get(field):
            raise RequestError(f"{field} can't be judged", "give tools", param=field)
    tools = body.get("tools")
    if tools is not None and (not isinstance(tools, list) or len(tools) > bounds.TOOLS):
        raise RequestError(f"tools are no list of at most {bounds.TOOLS}", param="tools")
    return body


def _with_tools(body: dict[str, Any], tools: list[Any], conversation: Conversation) -> dict[str, Any]:
    """A request that offers these tools alone. Raises RequestError: it asks for a call of another."""
    choice = body.get("tool_choice")
    function = choice.get("function") if isinstance(choice, Mapping) else None
    named = function.get("name") if isinstance(function, Mapping) else None
    if named is not None and not any(tool.get("function", tool).get("name") == named for tool in tools):
        raise RequestError(
            f"no call of {named} is admitted now", "leave tool_choice out", status=422, param="tool_choice"
        )
    if tools:
        return {**body, "tools": tools}
    if choice == "required":
        raise RequestError("no call is admitted now", "leave tool_choice out", status=422, param="tool_choice")
    return {key: value for key, value in body.items() if key not in ("tools", "tool_choice", "parallel_tool_calls")}
