"""Prevention before correction: a request's tools, without those that can't be called now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constrained.guard.conversation import Conversation

MOST_VALUES = 200
"""Values of an enum; a longer list is not told to the model."""

_SCHEMAS = ("parameters", "inputSchema", "input_schema")


def narrowed(conversation: Conversation, tools: Sequence[Any]) -> list[Any]:
    """The tools that may be called now; where the policy lists an argument's values, they are its enum.

    Parameters
    ----------
    conversation : Conversation
    tools : sequence
        As the request offers them; they aren't changed.
    """
    allowed = conversation.allowed()
    found = []
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or name not in allowed:
            continue
        key = next((key for key in _SCHEMAS if isinstance(function.get(key), Mapping)), None)
        if key is not None:
            function = {**function, key: _with_values(function[key], allowed[name])}
        found.append({**tool, "function": function} if "function" in tool else dict(function))
    return found


def without_slots(schema: Any) -> Any:
    """Tools, or a schema, without the keyword "x-slot", which only this library knows."""
    if isinstance(schema, Mapping):
        kept = {key: value for key, value in schema.items() if key != "x-slot" or not isinstance(value, str)}
        return {key: without_slots(value) for key, value in kept.items()}
    return [*map(without_slots, schema)] if isinstance(schema, (list, tuple)) else schema


def _with_values(schema: Mapping[str, Any], values: Mapping[str, list[Any]]) -> dict[str, Any]:
    properties = dict(schema.get("properties") or {})
    for name, listed in values.items():
        plain = all(isinstance(value, (str, int, float, bool)) for value in listed)
        if name in properties and isinstance(properties[name], Mapping) and plain and 0 < len(listed) <= MOST_VALUES:
            inner = {key: value for key, value in properties[name].items() if key != "const"}
            properties[name] = {**inner, "enum": [*dict.fromkeys(listed)]}
    return {**schema, "properties": properties}
