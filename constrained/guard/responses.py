"""OpenAI's Responses API in the form of its chat completions, in which conversations and answers are judged.

Of a conversation that the server keeps (``previous_response_id``) nothing is known, and tools that the server runs
itself are never seen before they are carried out: neither can be judged, so both are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from constrained.errors import KnowledgeError
from constrained.guard.messages import as_mapping

REFUSED = ("previous_response_id", "conversation", "prompt", "background")
"""Fields of a request with which its conversation, or its answer, isn't there to be judged."""

OUTPUT = ("message", "reasoning", "function_call")
"""Types of items that an answer may have."""


def check_request(request: Mapping[str, Any]) -> None:
    """Raise KnowledgeError if a request, or its answer, can't be judged."""
    for field in REFUSED:
        if request.get(field):
            raise KnowledgeError(f"{field} can't be judged", "give the whole conversation as input")
    tools = request.get("tools")
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        if kind != "function":
            raise KnowledgeError(f"tools of the type {kind!r:.60} can't be judged", "give functions")


def messages_of(given: Any) -> list[dict[str, Any]]:
    """The input of a request as messages; calls and texts of one answer are one message.

    Raises KnowledgeError: an item can't be read, or can't be judged.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise KnowledgeError("the input is no text and no list of items", "give one of them")
    messages: list[dict[str, Any]] = []
    for number, one in enumerate(given):
        item = as_mapping(one)
        if item is None:
            raise KnowledgeError(f"input[{number}] is no item: {str(one)[:80]!r}", "give {'role': ..., 'content': ...}")
        _add(messages, item, f"input[{number}]")
    return messages


def message_of(output: Any) -> dict[str, Any]:
    """The output of a response as one message of the assistant.

    Raises KnowledgeError: an item can't be read, or can't be judged.
    """
    if not isinstance(output, Sequence) or isinstance(output, (str, bytes)):
        raise KnowledgeError(f"the output is no list: {str(output)[:80]!r}")
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for number, one in enumerate(output):
        item = as_mapping(one)
        if item is None or item.get("type") not in OUTPUT:
            raise KnowledgeError(f"output[{number}] is in a form that isn't judged: {str(one)[:80]!r}")
        if item["type"] == "message" and item.get("role", "assistant") != "assistant":
            raise KnowledgeError(f"output[{number}] has the role {item.get('role')!r:.60}")
        _add(messages, item, f"output[{number}]")
    texts = [message["content"] for message in messages if message.get("content")]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return {"role": "assistant", "content": "".join(texts) or None, **({"tool_calls": calls} if calls else {})}


def items_of(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as items of an input, without identities of items, which a server would look up."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            items.append({
                "type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]
            })  # fmt: skip
            continue
        if message.get("content"):
            items.append({"role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls") or ():
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def with_messages(request: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A request whose conversation goes on with some messages."""
    given = request["input"]
    before = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    more = items_of(messages)
    return {**request, "input": [*before, *more]} if more else dict(request)


def kept_items(output: Sequence[Any], calls: int) -> int:
    """How many items of an output there are before the call with this number."""
    numbers = [n for n, item in enumerate(output) if (as_mapping(item) or {}).get("type") == "function_call"]
    return numbers[calls] if calls < len(numbers) else len(output)


def _add(messages: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """Add an item to the messages before it."""
    kind = item.get("type") or ("message" if "role" in item else "item_reference")
    last = messages[-1] if messages and messages[-1]["role"] == "assistant" else None
    match kind:
        case "message" if item.get("role") == "assistant":
            text = _text(item.get("content"), where)
            if last is None or (last["content"] and "tool_calls" not in last):
                messages.append({"role": "assistant", "content": text})
            else:  # beside a call, in one answer
                last["content"] = (last["content"] or "") + text
        case "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        case "function_call":
            name, arguments = item.get("name"), item.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, str | None) or item.get("namespace"):
                raise KnowledgeError(f"{where} is a call in a form that isn't judged: {str(item)[:80]!r}")
            if last is None:
                messages.append(last := {"role": "assistant", "content": None})
            function = {"name": name, "arguments": arguments or ""}
            last.setdefault("tool_calls", []).append(
                {"id": str(item.get("call_id") or item.get("id") or ""), "type": "function", "function": function}
            )
        case "function_call_output":
            messages.append(
                {"role": "tool", "tool_call_id": str(item.get("call_id") or ""), "content": item.get("output")}
            )
        case "reasoning":
            pass
        case _:
            raise KnowledgeError(f"{where}: items of the type {kind!r:.60} can't be judged", "give messages and calls")


def _text(content: Any, where: str) -> str:
    """The text of an assistant's message."""
    if isinstance(content, str | None):
        return content or ""
    parts = [as_mapping(part) for part in content] if isinstance(content, (list, tuple)) else [None]
    if not all(part is not None and part.get("type") in ("output_text", "refusal", "input_text") for part in parts):
        raise KnowledgeError(f"{where} has a content in a form that isn't judged: {str(content)[:80]!r}")
    return "".join(part["text"] for part in parts if part is not None and isinstance(part.get("text"), str))
