"""A proxied request: the conversation that it holds, what the model is asked, and what of its answer is admitted."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.guard.answers import Judged, correction, judge_answer
from constrained.guard.conversation import Conversation, Guard
from constrained.guard.followed import KEPT_BYTES, Followed
from constrained.guard.narrowing import narrowed, without_slots
from constrained.guard.verdict import WORDS, Verdict
from constrained.guard.words import SaysYes
from constrained.knowledge.tool_policy import read_policy
from constrained.server import bounds
from constrained.server.chat_request import RequestError
from constrained.server.forms import HALF, Stream, WireFormat
from constrained.server.upstream import nonsense

ASK, BLOCK, FLAG = "ask", "block", "flag"
"""What a client gets for an answer that is still not admitted after the last attempt."""

MAX_RETRIES = 10
"""Most times that an answer is sent back."""

_KEPT_BYTES = 2 * KEPT_BYTES
"""Bytes of the messages of all conversations whose last points are kept."""

_GUARDS = 32
"""Lists of tools whose guards are kept."""


SMALL, SMALL_MESSAGES = 32 << 10, 64
"""Bytes and messages of a request that takes less time than to hand it to another thread."""


class ParsedRequest(NamedTuple):
    """A request as it was read.

    Attributes
    ----------
    form : Form
    body : dict
    tools : list
    messages : list
        The conversation.
    key : bytes
        The tools' digest.
    small : bool
        To judge it takes a few milliseconds at most.
    """

    form: WireFormat
    body: dict[str, Any]
    tools: list[Any]
    messages: list[Any]
    key: bytes
    small: bool


class Judge:
    """A policy, and the settings for answers that it doesn't admit.

    Parameters
    ----------
    policy : Source
    retries : int
    on_violation : str
    narrow : bool
    says_yes : callable, optional
        See `Guard`.

    Raises
    ------
    ConstrainedError
        The policy can't be used, or an option is wrong.
    """

    def __init__(self, policy: Source, retries: int, on_violation: str, narrow: bool, says_yes: SaysYes | None = None):
        self.policy, self.says_yes = read_policy(policy), says_yes
        Guard(None, self.policy, says_yes=says_yes)  # raises an error for a mistake that the file alone shows
        if on_violation not in (ASK, BLOCK, FLAG):
            raise ConstrainedError(f"--on-violation is {on_violation!r}", f"use {ASK}, {BLOCK} or {FLAG}")
        if not 0 <= retries <= MAX_RETRIES:
            raise ConstrainedError(f"--retries is {retries}", f"use 0 to {MAX_RETRIES}")
        self.retries, self.on_violation, self.narrow = retries, on_violation, narrow
        self._guards: OrderedDict[bytes, tuple[Followed, list[Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, data: bytes, form: WireFormat) -> ParsedRequest:
        """Read a request. Raises RequestError: it can't be judged."""
        body = _read(data)
        tools = body.get("tools") or []
        if not isinstance(tools, list) or len(tools) > bounds.TOOLS:
            raise RequestError(f"tools are no list of at most {bounds.TOOLS}", param="tools")
        messages = form.messages(body)
        key = hashlib.sha256(json.dumps(tools, sort_keys=True).encode("utf-8", "surrogatepass")).digest()
        small = len(data) <= SMALL and len(messages) <= SMALL_MESSAGES and key in self._guards and not self.says_yes
        return ParsedRequest(form, body, tools, messages, key, small)

    def begin(self, asked: ParsedRequest) -> Exchange:
        """Follow a request's conversation. Raises RequestError: nothing that it asks for is admitted now."""
        form, body, tools, messages, key, small = asked
        followed, sent = self._followed(key, tools)
        try:
            conversation = followed.at_end_of(messages)
        except RequestError:
            raise
        except ConstrainedError as error:
            raise RequestError(error.message, error.hint, param=form.conversation) from None
        self._make_room()
        if tools:
            body = {**body, "tools": sent}
        offered = tools if body.get("tool_choice") != "none" else []
        if self.narrow and offered:
            offered = narrowed(conversation, body["tools"])
            body = _with_tools(body, offered, conversation)
        if conversation.judge_text("") and not (offered and conversation.allowed()):
            why = "; ".join(map(str, conversation.judge_text("")))
            raise RequestError(f"the policy admits nothing now: no call, and no text: {why}", status=422)
        return Exchange(form, body, conversation, small)

    def _followed(self, key: bytes, tools: list[Any]) -> tuple[Followed, list[Any]]:
        """(The object that replays conversations with these tools, the tools as they are sent to the upstream)."""
        with self._lock:
            cached = self._guards.get(key)
            if cached is not None:
                self._guards.move_to_end(key)
                return cached
        try:
            cached = Followed(Guard(tools, self.policy, says_yes=self.says_yes)), without_slots(tools)
        except ConstrainedError as error:
            raise RequestError(error.message, error.hint, param="tools") from None
        with self._lock:
            self._guards[key] = cached
        return cached

    def _make_room(self) -> None:
        """Drop the least recently used lists of tools while too much is cached."""
        with self._lock:
            size = sum(followed.size for followed, _ in self._guards.values())
            while len(self._guards) > _GUARDS or (size > _KEPT_BYTES and len(self._guards) > 1):
                size -= self._guards.popitem(last=False)[1][0].size

    def refusal_text(self, verdict: Verdict) -> str:
        """The text that a client gets in place of a refused answer. Raises RequestError: `on_violation` is `block`."""
        if self.on_violation == BLOCK:
            what = f"{verdict.name} was not admitted: {verdict.why}"
            raise RequestError(what, "nothing was carried out", status=422)
        if all(unmet.kind == WORDS for unmet in verdict.unmet) and isinstance(verdict.arguments, Mapping):
            given = ", ".join(
                f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in verdict.arguments.items()
            )
            return f"May I go ahead with {verdict.name} ({given})? Please say yes or no."
        reasons = "; ".join(dict.fromkeys(unmet.why for unmet in verdict.unmet))
        return f"I can't do that now ({verdict.name}): {reasons}."


class Exchange:
    """One request and its answers.

    Attributes
    ----------
    form : Form
    body : dict
        As it is sent to the upstream, without corrections.
    conversation : Conversation
    small : bool
        To judge its answers takes a few milliseconds at most.
    begun : bool
        Whether the client has got something of the answer.
    """

    def __init__(self, form: WireFormat, body: dict[str, Any], conversation: Conversation, small: bool):
        self.form, self.body, self.conversation, self.small = form, body, conversation, small
        self.begun = False
        self._corrections: list[dict[str, Any]] = []

    def next_body(self) -> dict[str, Any]:
        """The body of the request to the upstream."""
        return self.form.with_corrections(self.body, self._corrections)

    def judged(self, message: Mapping[str, Any]) -> Judged:
        """Judge an answer; if nothing of it is admitted, the next request says why.

        Raises RequestError: it can't be read.
        """
        if message.get("function_call") or not isinstance(message.get("content"), str | None):
            raise nonsense("it has calls or a content in a form that isn't judged")
        try:
            judged = judge_answer(self.conversation, message)
        except ConstrainedError as error:
            raise nonsense(error.message) from None
        if judged.refused:
            self._corrections += correction(message, judged)
        return judged

    def stream(self, before: Stream | None) -> Stream:
        """A new streamed answer; `before`: the refused one before it, to the same request."""
        exact = self.conversation.guard.looks_at_text
        return self.form.stream(not exact and not self.conversation.judge_text(""), exact, before)


def _read(data: bytes) -> dict[str, Any]:
    """The body of a request as an object. Raises RequestError: it can't be judged."""
    try:
        body = json.loads(data.decode())
        if HALF.search(data):
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError("the request has half a character, which is not text", "escape both surrogates") from None
    except (ValueError, RecursionError):
        raise RequestError("the body is no JSON, or is nested too deeply") from None
    if not isinstance(body, dict):
        raise RequestError("a request is a JSON object")
    return body


def _with_tools(body: dict[str, Any], tools: list[Any], conversation: Conversation) -> dict[str, Any]:
    """The request with these tools only. Raises RequestError: its tool_choice names another tool."""
    choice = body.get("tool_choice")
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
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
