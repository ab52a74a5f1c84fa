"""Messages of conversations as events: what the user said and did, what the assistant said and called, and results.

These forms are read: OpenAI's chat completions, Anthropic's messages, the records of tau-bench and tau2-bench, and
LangChain's message objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from constrained.errors import KnowledgeError


class ToolCall(NamedTuple):
    """A call that the assistant made, or the user of one of their own tools.

    Attributes
    ----------
    name : str
    arguments : dict or str
        The text, if it is no JSON object.
    identity : str
        By which its result names it; empty if it has none.
    refused : bool
        Whether the policy didn't admit it.
    by_user : bool
        Whether the user made it.
    """

    name: str
    arguments: Mapping[str, Any] | str
    identity: str = ""
    refused: bool = False
    by_user: bool = False


class Heard(NamedTuple):
    """What the user said."""

    text: str


class Did(NamedTuple):
    """What the user did with tools of their own."""

    calls: tuple[ToolCall, ...]


class Said(NamedTuple):
    """What the assistant said, and what it called."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class Answered(NamedTuple):
    """The result of a call; `by_user`: of one that the user made."""

    identity: str
    text: Any
    by_user: bool = False


Event = Heard | Did | Said | Answered

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "developer": "system", "function": "tool"}
"""Names of roles that others have for those of OpenAI."""


def events_of(messages: Iterable[Any]) -> Iterator[Event]:
    """The events of a conversation.

    Raises KnowledgeError: a message has no role, or can't be read.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise KnowledgeError(f"a conversation is a list of messages, not {type(messages).__name__}")
    for number, message in enumerate(messages):
        yield from message_events(message, f"messages[{number}]")


def message_events(message: Any, where: str = "the message") -> list[Event]:
    """The events of one message. Raises KnowledgeError: it has no role, or can't be read."""
    given = as_mapping(message)
    if given is None:
        raise KnowledgeError(f"{where} is no message: {str(message)[:80]!r}", "give {'role': ..., 'content': ...}")
    role = given.get("role", given.get("type"))
    role = _ROLES.get(role, role) if isinstance(role, str) else None
    content = given.get("content")
    match role:
        case "system":
            return []
        case "user":
            # Anthropic has results in the user's messages, and tau2 has calls of the user's own tools there.
            answers = [Answered(_text(block.get("tool_use_id")), _plain(block.get("content"), where))
                    for block in _blocks(content, "tool_result")]  # fmt: skip
            said, did = _plain(content, where), tuple(_calls(given, where, by_user=True))
            heard = [Heard(said)] if said or not answers and not given.get("tool_calls") else []
            return [*answers, *heard, *([Did(did)] if did else [])]
        case "assistant":
            return [Said(_plain(content, where), tuple(_calls(given, where)))]
        case "tool":
            if isinstance(given.get("tool_messages"), list):  # tau2: several results in one message
                return [event for part in given["tool_messages"] for event in message_events(part, where)]
            identity = given.get("tool_call_id") or given.get("id")
            return [Answered(_text(identity), _plain(content, where), given.get("requestor") == "user")]
    raise KnowledgeError(f"{where} has the role {given.get('role')!r:.60}", "system, user, assistant or tool")


def read_arguments(text: str) -> dict[str, Any] | str:
    """The arguments that a model wrote; the text itself if it is no JSON object that all readers read alike."""
    try:
        found = json.loads(text or "{}", object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that occurs twice is refused, as readers differ in which they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _calls(message: Mapping[str, Any], where: str, *, by_user: bool = False) -> Iterator[ToolCall]:
    """The calls in a message that the assistant made, or the user (tau2's `requestor`)."""
    listed = message.get("tool_calls") or ()
    if not isinstance(listed, (list, tuple)):
        raise KnowledgeError(f"{where}: tool_calls are {listed!r:.80}", "give a list of calls")
    blocks = [*_blocks(message.get("content"), "tool_use")]
    identities = {_text(call.get("id")) for call in listed if isinstance(call, Mapping)}
    listed = [*listed, *(block for block in blocks if _text(block.get("id")) not in identities)]
    if isinstance(message.get("function_call"), Mapping):
        listed.append(message["function_call"])
    for given in listed:
        call = as_mapping(given)
        if call is not None and call.get("requestor", "assistant") != ("user" if by_user else "assistant"):
            continue
        function = None if call is None else call.get("function", call)
        function = as_mapping(function)
        if call is None or function is None or not isinstance(function.get("name"), str):
            raise KnowledgeError(
                f"{where}: a call has no name: {str(given)[:80]!r}", "give {'function': {'name': ...}}"
            )
        keys = ("arguments", "args", "input", "kwargs")
        arguments: Any = next((function[key] for key in keys if function.get(key) is not None), {})
        if not isinstance(arguments, Mapping):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
            arguments = read_arguments(text)
        yield ToolCall(function["name"], arguments, _text(call.get("id")), by_user=by_user)


def as_mapping(value: Any) -> Mapping[str, Any] | None:
    """A message or a call as a mapping; an object of a client library by its fields."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    found = dump() if callable(dump) else None
    return found if isinstance(found, Mapping) else None


def _blocks(content: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    for block in content if isinstance(content, (list, tuple)) else ():
        found = as_mapping(block)
        if found is not None and found.get("type") == kind:
            yield found


def _plain(content: Any, where: str) -> str:
    """A content as text: parts joined, and what isn't text left out."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, tuple)):
        parts = (part if isinstance(part, str) else (as_mapping(part) or {}).get("text") for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    try:
        return json.dumps(content, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise KnowledgeError(f"{where}: its content is {type(content).__name__}", "give text") from None


def _text(value: Any) -> str:
    return "" if value is None else str(value)
