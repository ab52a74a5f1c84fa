"""What a model is told of tools that its chat template doesn't describe: their schemas, and worked examples.

An example is made from a tool's schema alone: a request in words, and the call that answers it. It shows how a call is
written and where its arguments come from. The values are invented, unless the schema lists some; none is
used twice while there are others: small models copy a value that stands in several examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from textwrap import shorten
from typing import Any

from constrained.knowledge.demonstration import Demonstrated, Demonstration
from constrained.knowledge.tool_calls import CallForm, referred

_WORDS = (
    "Lisbon", "Maria Silva", "green", "Orion", "winter", "ceramics", "Jonas", "Kyoto", "velvet", "B-17", "harbour",
    "Ethan", "maple", "Toledo", "Nimbus", "cobalt", "quartz", "Ines", "Bergen", "saffron", "Delta", "walnut", "Petra",
    "Oslo", "amber",
)  # fmt: skip
_INTEGERS = (7, 12, 3, 250, 40, 18, 5, 90, 33, 1500, 21, 64)
_NUMBERS = (2.5, 7.5, 0.25, 1200.5, 60.0, 3.75, 18.2, 0.9)

LONGEST = 200
"""Characters of a description's first sentence that a request repeats."""

_SIMPLE = {"type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$defs"}
"""Keywords beside which a schema's optional properties may be given or not."""

_DEPTH = 4
"""Levels of objects and lists that an example has, at most."""


def tools_text(form: CallForm) -> str:
    """The tools and the form of a call, as the chat templates of Qwen and Hermes put it."""
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": form.descriptions.get(name, ""), "parameters": schema},
        }
        for name, schema in form.schemas.items()
    ]
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    call = form.template.replace('"NAME"', "<function-name>").replace("ARGUMENTS", "<args-json-object>")
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{lines}\n</tools>\n\n"
        f"A function call is written so:\n{call}"
    )


def example_calls(form: CallForm, count: int) -> list[Demonstration]:
    """Worked examples of calls: of each tool in turn, then of the first ones again, with other values.

    A tool of whose arguments no example can be made that surely follows their schema has none. Several examples of one
    tool show that its values are the request's: after a single one, small models copy its values. Every second example
    has an optional argument, too: it is given where the request gives it.
    """
    examples: list[Demonstration] = []
    left = list(form.schemas.items())
    values = _InventedValues()
    for _ in range(len(left) + count):
        if len(examples) == count or not left:
            break
        name, schema = left.pop(0)
        try:
            arguments = values.arguments(schema, optional=len(examples) % 2 == 1)
        except _NoExample:
            continue
        left.append((name, schema))
        request = _request(name, form.descriptions.get(name, ""), arguments)
        example = Demonstration(request, (Demonstrated(form.write(name, arguments)),))
        if example in examples:  # a tool without arguments, or whose arguments are always the same
            left.pop()
        else:
            examples.append(example)
    return examples


def _request(name: str, description: str, arguments: Mapping[str, Any]) -> str:
    """What a user would say: the first sentence of the tool's description, and the values by name."""
    sentence = re.split(r"(?<=[a-z)])\.(?:\s|$)", " ".join(description.split()), maxsplit=1)[0].rstrip(".")
    task = sentence or " ".join(filter(None, re.split(r"[\W_]+", name)))
    values = " and ".join(f"{_said(value)} as {key.strip('_').replace('_', ' ')}" for key, value in arguments.items())
    task = shorten(task, LONGEST, placeholder=" …")
    return f"{task} with {values}." if values else f"{task}."


def _said(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_said, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class _NoExample(Exception):
    """No value can be made up that surely follows the schema."""


class _InventedValues:
    """Makes up values, one after the other."""

    def __init__(self) -> None:
        self._root: Mapping[str, Any] = {}
        self._drawn = 0

    def _next(self, among: tuple[Any, ...]) -> Any:
        self._drawn += 1
        return among[self._drawn % len(among)]

    def arguments(self, schema: Mapping[str, Any], optional: bool) -> dict[str, Any]:
        """Arguments of a tool: the required ones, and one that isn't, if that is wanted and there is one."""
        self._root = schema
        made = self.object(schema, 0)
        if optional and set(schema) <= _SIMPLE:
            for name in [name for name in schema.get("properties", {}) if name not in made]:
                with suppress(_NoExample):
                    return {**made, name: self.value(schema["properties"][name], 1)}
        return made

    def object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """An object with the members that its schema requires."""
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required") or ()
        if not all(name in properties for name in required) or schema.get("minProperties", 0) > len(required):
            raise _NoExample
        return {name: self.value(member, depth + 1) for name, member in properties.items() if name in required}

    def value(self, schema: Any, depth: int) -> Any:
        """A value of a schema."""
        if schema is False or depth > _DEPTH:
            raise _NoExample
        schema = schema if isinstance(schema, Mapping) else {}
        for values in ([schema["const"]] if "const" in schema else (), schema.get("enum"), schema.get("examples")):
            if isinstance(values, list) and values:
                return values[self._drawn % len(values)]
        if isinstance(schema.get("$ref"), str):
            return self.value(referred(self._root, schema["$ref"]), depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                return self.value(schema[keyword][0], depth + 1)
        if set(schema) & {"allOf", "not", "if", "pattern", "format"}:
            raise _NoExample
        kind = schema.get("type")
        return self._of_type(kind[0] if isinstance(kind, list) and kind else kind, schema, depth)

    def _of_type(self, kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            return self.object(schema, depth)
        if kind == "array":
            low, high = schema.get("minItems", 0), schema.get("maxItems", 2)
            return [self.value(schema.get("items"), depth + 1) for _ in range(max(low, min(2, high)))]
        if kind in ("integer", "number"):
            return self._number(kind, schema)
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        for _ in _WORDS:
            word = self._next(_WORDS)
            if schema.get("minLength", 0) <= len(word) <= schema.get("maxLength", len(word)):
                return word
        raise _NoExample

    def _number(self, kind: str, schema: Mapping[str, Any]) -> Any:
        low, high = schema.get("minimum"), schema.get("maximum")
        if set(schema) & {"exclusiveMinimum", "exclusiveMaximum", "multipleOf"}:
            raise _NoExample
        among = _INTEGERS if kind == "integer" else _NUMBERS
        for _ in among:
            number = self._next(among)
            if (low is None or number >= low) and (high is None or number <= high):
                return number
        for bound in (low, high):
            if bound is not None:
                return bound
        raise _NoExample
