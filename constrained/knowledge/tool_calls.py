"""Tool calls as programs hold them: read from messages and dictionaries, and written as the masks write them.

Two calls are the same if they say the same, whatever their spacing, the order of their keys, and the spelling of their
strings and numbers: the masks write each call in one form, and a verdict is about what it says.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from constrained.automaton.state import Prefix
from constrained.errors import GrammarError, KnowledgeError, nearest
from constrained.grammar.json_schema import Options, Values
from constrained.grammar.json_schema.document import pointer_keys
from constrained.grammar.json_schema.strings import guarded
from constrained.grammar.nodes import Node, literal
from constrained.knowledge.call_search import find_text


class CallFault(ValueError):
    """Why a text, or a value, is no call."""


class _OtherText(CallFault):
    """Why a text is no call: nothing in it looks like one."""


class CallForm:
    """The format in which calls of some tools are written.

    Parameters
    ----------
    template : str
        The text of a call, with NAME and ARGUMENTS in it.
    schemas : mapping of str to dict
        Tool -> the JSON Schema of its arguments.
    options : Options
        How the schemas are read.
    order : mapping of str to list of str, optional
        Tool -> the order of its arguments, if that is not its schema's.
    compact : bool
        No white space within the arguments.
    descriptions : mapping of str to str, optional
        Tool -> what it does.
    """

    def __init__(
        self,
        template: str,
        schemas: Mapping[str, dict],
        options: Options,
        order: Mapping[str, list[str]] | None = None,
        compact: bool = False,
        descriptions: Mapping[str, str] | None = None,
    ):
        self.template, self.schemas, self.order = template, dict(schemas), dict(order or {})
        self.descriptions = dict(descriptions or {})
        self._separators = (",", ":") if compact else (", ", ": ")
        self._options = replace(options, left_out={}, unknown={}, distinct=None)
        self._values: dict[str, Values] = {}

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call as the masks write it. Raises KnowledgeError: there is no such tool."""
        if name not in self.schemas:
            raise KnowledgeError(f"there is no tool {name!r}", f"the tools are: {', '.join(self.schemas)}")
        with suppress(RecursionError, GrammarError):
            arguments = self._values_of(name).written(dict(arguments))
        if name in self.order:
            arguments = {**{key: arguments[key] for key in self.order[name] if key in arguments}, **arguments}
        text = json.dumps(arguments, ensure_ascii=False, separators=self._separators)
        return guarded(text, closing_marker(self.template, name)).join(call_around(self.template, name))

    def call(self, action: Any) -> tuple[str, dict[str, Any]]:
        """(tool, arguments) of a call in any form, as JSON values. Raises CallFault: it isn't one of a known tool."""
        action = as_dict(action)
        if isinstance(action, str):
            return self._parsed(action)
        if not isinstance(action, Mapping):
            raise _OtherText("it is no call")
        name, arguments = _named(action)
        if name not in self.schemas:
            raise CallFault(self._unknown(name))
        try:
            return name, _object(arguments if isinstance(arguments, str) else json.dumps(arguments))
        except (TypeError, ValueError, RecursionError) as error:
            if isinstance(error, CallFault):
                raise
            raise KnowledgeError(f"a call can't be written as JSON: {error}", "give JSON values") from None

    def read(self, action: str) -> tuple[str, dict[str, Any]] | None:
        """(tool, arguments) of a written call, whatever its spacing and order of keys; None if it isn't a call."""
        try:
            return self._parsed(action)
        except CallFault:
            return None

    def text(self, action: Any) -> str:
        """A call in any form as the masks write it; anything that isn't a call of a known tool as text.

        Raises KnowledgeError: it can't be written as JSON.
        """
        action = as_dict(action)
        try:
            return self.write(*self.call(action))
        except CallFault:
            return action if isinstance(action, str) else json.dumps(action, default=str)

    def find(self, action: Any, opening: Prefix) -> str | None:
        """A text of a call that is admitted from `opening`, in whatever order and spelling; None if there is none."""
        try:
            name, arguments = self.call(action)
            before, after = call_around(self.template, name)
            return find_text(opening, before, self._values_of(name).written(arguments), after)
        except (CallFault, GrammarError, RecursionError):
            return None

    def fault(self, action: Any) -> str:
        """Why an action is no call with valid arguments, in terms of its values; empty if nothing of that is wrong."""
        try:
            name, arguments = self.call(action)
            misfit = self._values_of(name).misfit(arguments)
        except (GrammarError, RecursionError, _OtherText):
            return ""
        except CallFault as error:
            return str(error)
        return "" if misfit is None else f"arguments of {name}: {misfit}"

    def _values_of(self, name: str) -> Values:
        if name not in self._values:
            self._values[name] = Values(self.schemas[name], self._options)
        return self._values[name]

    def _unknown(self, name: str) -> str:
        return f"there is no tool {name!r}; {nearest(name, self.schemas)}"

    def _parsed(self, action: str) -> tuple[str, dict[str, Any]]:
        fault: CallFault | None = None
        for name in self.schemas:
            head, after = call_around(self.template, name)
            if action.startswith(head) and action.endswith(after) and len(action) >= len(head) + len(after):
                try:
                    inside, marker = action[len(head) : len(action) - len(after)], closing_marker(self.template, name)
                    _check_open(inside, marker)
                    return name, _object(inside)
                except CallFault as error:
                    fault = fault or error
        whole = action.strip().removeprefix("<tool_call>").removesuffix("</tool_call>").strip()
        if not whole.startswith("{"):
            raise fault or _OtherText("it is no call")
        try:
            if whole != action.strip():  # it stands in markers
                _check_open(whole, "</tool_call>")
            name, arguments = _named(_object(whole))
            arguments = _object(arguments) if isinstance(arguments, str) else arguments
        except CallFault as error:
            raise fault or error from None
        if not isinstance(arguments, dict):
            raise CallFault("its arguments are no object")
        if name not in self.schemas:
            raise CallFault(self._unknown(name))
        return name, arguments


def call_around(template: str, name: str) -> tuple[str, str]:
    """The texts before and after the arguments of a call."""
    before, _, after = template.partition("ARGUMENTS")
    name = json.dumps(name, ensure_ascii=False)[1:-1]
    return before.replace("NAME", name), after.replace("NAME", name)


def closing_marker(template: str, name: str) -> str:
    """The first marker after the arguments of a call, such as ``</tool_call>``, where readers end it; empty if none.

    JSON strings in the call may not hold it literally.
    """
    match = _MARKER.search(call_around(template, name)[1].encode())
    return match[0].decode() if match else ""


def _check_open(text: str, marker: str) -> None:
    """Raise CallFault if the text contains the marker that ends a call."""
    if marker and marker in text:
        written = f"\\u{ord(marker[0]):04x}{marker[1:]}"
        raise CallFault(f"{marker} ends the call where it stands; in its strings it is written {written}")


_MARKER = re.compile(rb"<[^<>\s]+>|\[[^\[\]\s]+\]")


def call_literal(text: str, name: str) -> Node:
    """The node of a fixed part of a call; markers in it may be control tokens, except within the tool's `name`."""
    data = text.encode()
    within = set(name) & set("<[")
    return literal(data, () if within else tuple(match.span() for match in _MARKER.finditer(data)))


def _object(text: str) -> dict[str, Any]:
    """Parse JSON text as an object; blank text is an empty object. Raises CallFault: it isn't an object."""
    if not text.strip():
        return {}  # so the arguments of a call without any are often written
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_float=_float, parse_constant=_constant)
    except CallFault:
        raise
    except RecursionError:
        raise CallFault("it is nested too deeply") from None
    except ValueError as error:
        raise CallFault(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise CallFault("its arguments are no object")
    if "\\u" in text or not text.isascii():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise CallFault("it has a lone surrogate, which is no character") from None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CallFault(f"the key {twice!r} stands twice in one object")
    return result


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise CallFault(f"{text:.40} is more than a double holds")
    return number


def _constant(text: str) -> None:
    raise CallFault(f"{text} is no number of JSON's")


def _named(call: Mapping) -> tuple[str, Any]:
    """(tool, arguments) of a call given as a dictionary: ours, OpenAI's ``tool_calls``, Anthropic's ``tool_use``.

    Raises CallFault: it isn't a call.
    """
    inner = call.get("function", call)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise CallFault("it names no tool")
    arguments: Any = next(
        (inner[key] for key in ("arguments", "input", "parameters") if inner.get(key) is not None), {}
    )
    if not isinstance(arguments, (str, Mapping)):
        raise CallFault("its arguments are no object")
    return inner["name"], arguments


_NO_CALLS = ("function_call_output", "reasoning")
"""Items of OpenAI's Responses API that are neither messages nor calls."""


def as_dict(value: Any) -> Any:
    """An object of a provider's client library (a pydantic model) as a dictionary; other values as they are."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def calls_in(actions: Iterable[Any]) -> Iterator[Any]:
    """The actions and calls among actions, calls and messages (OpenAI's and Anthropic's) of the assistant."""
    for action in map(as_dict, actions):
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


def strings_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, or in the values of a slot; names of members aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(inner)
