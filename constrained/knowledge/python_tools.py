"""Python functions and pydantic models as tools: types as a JSON Schema, docstrings as descriptions."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar.json_schema.python_types import of_pydantic, schema_of

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
    if hasattr(given, "model_json_schema") or hasattr(given, "__pydantic_core_schema__"):
        schema = _read(of_pydantic, given, f"tool {name!r}")
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
        inner = _read(schema_of, hints.get(parameter.name, Any), where, schema["$defs"])
        if parameter.name in described and "description" not in inner:
            inner = {**inner, "description": described[parameter.name]}
        schema["properties"][parameter.name] = inner
        if parameter.default is parameter.empty:
            schema["required"].append(parameter.name)
    return {"name": name, "description": summary, "inputSchema": {k: v for k, v in schema.items() if v or k != "$defs"}}


def _read(read: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What `read` returns. Raises KnowledgeError: a type has no JSON Schema."""
    try:
        return read(*given)
    except GrammarError as error:
        raise KnowledgeError(error.message, error.hint) from None


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
