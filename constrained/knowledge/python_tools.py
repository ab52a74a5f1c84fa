"""Python functions and pydantic models as tools: types as a JSON Schema, docstrings as descriptions."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from constrained.errors import KnowledgeError

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_HINT = "use str, int, float, bool, None, Literal, an Enum, list, dict, TypedDict, | of these, or a pydantic model"

_HEADING = re.compile(r"(Parameters|Args|Arguments|Attributes)\s*:?\s*$")


def python_tool(given: Callable[..., Any]) -> dict[str, Any]:
    """Describe a function, or a pydantic model whose fields are the arguments, as a tool in MCP's form.

    Raises
    ------
    KnowledgeError
        An argument can't be passed by name, or its type has no JSON Schema.
    """
    name = getattr(given, "__name__", "")
    text = inspect.getdoc(given) or ""
    if hasattr(given, "model_json_schema"):
        schema = given.model_json_schema()
        words = schema.pop("description", "")
        return {"name": name, "description": words, "inputSchema": schema}
    try:
        signature = inspect.signature(given)
        hints = typing.get_type_hints(given, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise KnowledgeError(f"tool {name!r}: its types can't be read: {error}", "annotate its arguments") from None
    # A function's signature says which arguments it needs, its hints their types, its docstring what they mean.
    summary, described = _docstring(text)
    schema = {"type": "object", "properties": {}, "required": [], "$defs": {}}
    for parameter in signature.parameters.values():
        where = f"tool {name!r}: argument {parameter.name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise KnowledgeError(f"{where} can't be passed by name", "leave out *, ** and / in its signature")
        inner = _schema(hints.get(parameter.name, Any), where, schema["$defs"])
        if parameter.name in described and "description" not in inner:
            inner = {**inner, "description": described[parameter.name]}
        schema["properties"][parameter.name] = inner
        if parameter.default is parameter.empty:
            schema["required"].append(parameter.name)
    return {"name": name, "description": summary, "inputSchema": {k: v for k, v in schema.items() if v or k != "$defs"}}


def _schema(kind: Any, where: str, defs: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type; definitions that it refers to are added to `defs`."""
    origin, given = typing.get_origin(kind), typing.get_args(kind)
    # The order matters: `Annotated` hides the type in it, and enums and models are classes like `list`.
    if origin is typing.Annotated:
        notes = (note if isinstance(note, str) else getattr(note, "description", None) for note in given[1:])
        schema = _schema(given[0], where, defs)
        return {**schema, "description": text} if (text := next(filter(None, notes), None)) else schema
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is typing.Literal:
        return {"enum": list(given)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(member, where, defs) for member in given]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if hasattr(kind, "model_json_schema"):
        schema = kind.model_json_schema()
        defs.update(schema.pop("$defs", {}))
        return schema
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        properties = {name: _schema(hint, where, defs) for name, hint in hints.items()}
        return {"type": "object", "properties": properties, "required": sorted(kind.__required_keys__)}
    if (origin or kind) in (list, set, Sequence):
        return {"type": "array", "items": _schema(given[0] if given else Any, where, defs)}
    if (origin or kind) in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(given[1] if given else Any, where, defs) or True}
    raise KnowledgeError(f"{where} is of type {getattr(kind, '__name__', kind)}, which has no JSON Schema", _HINT)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and the description of each parameter, in NumPy's, Google's or Sphinx's format."""
    lines = text.splitlines()
    summary, described = " ".join(text.split("\n\n")[0].split()), {}
    heading = next((i for i, line in enumerate(lines) if _HEADING.match(line)), None)
    if heading is None:
        matches = (re.match(r"\s*:param\s+(?:[^:]*\s)?(\w+):\s*(.*)", line) for line in lines)
        described = {match[1]: match[2].strip() for match in matches if match}
        return summary.partition(" :param")[0], described
    below = lines[heading + 1 :]
    name = ""
    if below and set(below[0].strip()) == {"-"}:  # NumPy's: names at the margin, descriptions indented below
        for line in below[1:]:
            if line and not line[0].isspace():
                if line.strip() and set(line.strip()) == {"-"}:
                    described.pop(name, None)  # the name was the next heading
                    break
                name = line.partition(":")[0].strip()
            elif line.strip() and name:
                described[name] = f"{described.get(name, '')} {line.strip()}".strip()
        return summary, described
    for line in below:
        if line.strip() and not line[0].isspace():
            break
        if entry := re.match(r"\s+\**(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line):
            name, described[entry[1]] = entry[1], entry[2].strip()
        elif line.strip() and name:
            described[name] = f"{described[name]} {line.strip()}"
    return summary, described
