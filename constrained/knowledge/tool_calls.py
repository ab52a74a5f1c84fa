"""Tool calls as programs hold them: read from messages and dictionaries, and written as the masks write them.

Two calls are the same if they say the same, whatever their spacing and the order of their keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.json_schema.document import pointer_keys
from constrained.grammar.nodes import Node, literal


class CallForm:
    """The format in which calls of some tools are written.

    Parameters
    ----------
    template : str
        The text of a call, with NAME and ARGUMENTS in it.
    schemas : mapping of str to dict
        Tool -> the JSON Schema of its arguments.
    order : mapping of str to list of str, optional
        Tool -> the order of its arguments, if that is not its schema's.
    compact : bool
        No white space within the arguments.
    """

    def __init__(
        self,
        template: str,
        schemas: Mapping[str, dict],
        order: Mapping[str, list[str]] | None = None,
        compact: bool = False,
    ):
        self.template, self.schemas, self.order = template, dict(schemas), dict(order or {})
        self._separators = (",", ":") if compact else (", ", ": ")

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call as the masks write it. Raises KnowledgeError: there is no such tool."""
        if name not in self.schemas:
            raise KnowledgeError(f"there is no tool {name!r}", f"the tools are: {', '.join(self.schemas)}")
        schema = self.schemas[name]
        properties = schema.get("properties", {})
        ordered = {
            key: _in_order(value, properties.get(key), schema)
            for key, value in _first(self.order.get(name) or properties, arguments).items()
        }
        text = json.dumps(ordered, ensure_ascii=False, separators=self._separators)
        return text.join(call_around(self.template, name))

    def read(self, action: str) -> tuple[str, dict[str, Any]] | None:
        """(tool, arguments) of a written call, whatever its spacing and order of keys; None if it isn't a call."""
        for name in self.schemas:
            head, after = call_around(self.template, name)
            if action.startswith(head) and action.endswith(after):
                arguments = _object(action[len(head) : len(action) - len(after)])
                if arguments is not None:
                    return name, arguments
        whole = _object(action.strip().removeprefix("<tool_call>").removesuffix("</tool_call>"))
        return None if whole is None else _named(whole)

    def text(self, action: Any) -> str:
        """A call in any form as the masks write it; anything that isn't a call of a known tool as text.

        Raises KnowledgeError: it can't be written as JSON.
        """
        action = plain(action)
        call = self.read(action) if isinstance(action, str) else _named(action) if isinstance(action, Mapping) else None
        try:
            if call is not None and call[0] in self.schemas:
                return self.write(*call)
            return action if isinstance(action, str) else json.dumps(action, default=str)
        except (TypeError, ValueError, RecursionError) as error:
            raise KnowledgeError(f"a call can't be written as JSON: {error}", "give JSON values") from None


def call_around(template: str, name: str) -> tuple[str, str]:
    """The texts before and after the arguments of a call."""
    before, _, after = template.partition("ARGUMENTS")
    name = json.dumps(name, ensure_ascii=False)[1:-1]
    return before.replace("NAME", name), after.replace("NAME", name)


_MARKER = re.compile(rb"<[^<>\s]+>|\[[^\[\]\s]+\]")


def call_literal(text: str, name: str) -> Node:
    """A part of a call of the tool `name`; what stands in brackets there may be a control token, but in the name."""
    data = text.encode()
    within = set(name) & set("<[")
    return literal(data, () if within else tuple(found.span() for found in _MARKER.finditer(data)))


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _named(call: Mapping) -> tuple[str, dict[str, Any]] | None:
    """(tool, arguments) of a call given as a dictionary: ours, OpenAI's ``tool_calls``, Anthropic's ``tool_use``."""
    inner = call.get("function", call)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        return None
    given: Any = next((inner[key] for key in ("arguments", "input", "parameters") if inner.get(key) is not None), {})
    arguments = _object(given) if isinstance(given, str) else given
    return (inner["name"], dict(arguments)) if isinstance(arguments, Mapping) else None


_REFERENCES = 20
"""The longest chain of references that is followed."""

_NO_CALLS = ("function_call_output", "reasoning")
"""Items of OpenAI's Responses API that are neither messages nor calls."""


def plain(value: Any) -> Any:
    """An object of a provider's client library (a pydantic model) as a dictionary; other values as they are."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def calls_in(actions: Iterable[Any]) -> Iterator[Any]:
    """The actions and calls among actions, calls and messages (OpenAI's and Anthropic's) of the assistant."""
    for action in map(plain, actions):
        if not isinstance(action, Mapping) or "role" not in action:
            if not isinstance(action, Mapping) or action.get("type") not in _NO_CALLS:
                yield action
        elif action["role"] == "assistant":
            calls = action.get("tool_calls") or ()
            if not isinstance(calls, (list, tuple)):
                raise KnowledgeError(f"tool_calls are {calls!r:.80}", "give a list of calls")
            yield from calls
            content = action.get("content")
            blocks = content if isinstance(content, list) else ()
            yield from (block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_use")


def referred(root: Any, ref: str) -> Any:
    """The part of a schema that a reference such as ``#/$defs/Item`` names; None if there is none."""
    for key in pointer_keys(ref[1:]) if ref.startswith("#/") else [""]:
        root = root.get(key) if isinstance(root, dict) else None
    return root


def _in_order(value: Any, schema: Any, root: Any) -> Any:
    """`value` with the members of its objects in their schema's order."""
    seen = 0
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and seen < _REFERENCES:
        schema, seen = referred(root, schema["$ref"]), seen + 1
    if not isinstance(schema, dict):
        return value
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, dict):
        return {key: _in_order(member, properties.get(key), root) for key, member in _first(properties, value).items()}
    if isinstance(value, list):
        return [_in_order(item, schema.get("items"), root) for item in value]
    return value


def _first(keys: Iterable[str], members: Mapping[str, Any]) -> dict[str, Any]:
    """`members` with those at `keys` first, in that order."""
    return {**{key: members[key] for key in keys if key in members}, **members}
