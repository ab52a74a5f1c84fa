"""Types of programming languages in tools' schemas, read as those of JSON Schema: ``dict``, ``float``, ``ArrayList``.

Tool lists are often made from functions, and name types as Python, Java, JavaScript or Google's API do.
"""

from __future__ import annotations

from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.json_schema.values import TYPES, escaped
from constrained.limits import Limits

_OTHER = {
    "object": "dict map mapping hashmap hashtable treemap linkedhashmap record struct",
    "array": "list tuple set frozenset sequence arraylist linkedlist hashset vector queue deque stack",
    "string": "str text char character",
    "number": "float double decimal bigdecimal",
    "integer": "int long short byte bigint biginteger",
    "boolean": "bool",
    "null": "none nonetype",
}
"""Type of JSON Schema -> the names that others have for it, in lower case."""

_ANY = "any"

NAMES = {
    **{name: name for name in TYPES},
    **{name: kind for kind, names in _OTHER.items() for name in names.split()},
    "any": _ANY,
}
"""Name of a type, in lower case -> the type of JSON Schema, or "any"."""

_NO_SCHEMAS = {"enum", "const", "default", "example", "examples", "required", "dependentRequired"}
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}


def with_json_types(schema: Any, tool: str, limits: Limits, pointer: str = "#") -> Any:
    """A schema with the types of JSON Schema; the schema itself if it has no others.

    Capitals don't matter. "any" stands for all types, also in a list of types. `pointer` is where the schema stands.

    Raises
    ------
    KnowledgeError
        A type is unknown.
    LimitError
        The schema is nested too deeply.
    """
    limits.check("depth", pointer.count("/") // 2, f"tool {tool!r}: a schema too deep")
    if isinstance(schema, list):
        return _if_changed(
            schema, [with_json_types(one, tool, limits, f"{pointer}/{i}") for i, one in enumerate(schema)]
        )
    if not isinstance(schema, dict):
        return schema
    out = {}
    for keyword, value in schema.items():
        at = f"{pointer}/{escaped(keyword)}"
        if keyword == "type":
            if (kind := _json_type(value, tool, at)) != _ANY:
                out[keyword] = kind
        elif keyword in _NAMED and isinstance(value, dict):
            inner = {k: with_json_types(one, tool, limits, f"{at}/{escaped(k)}") for k, one in value.items()}
            out[keyword] = _if_changed(value, inner)
        else:
            out[keyword] = value if keyword in _NO_SCHEMAS else with_json_types(value, tool, limits, at)
    return _if_changed(schema, out)


def _if_changed(before: Any, after: Any) -> Any:
    """`before` itself, if `after` has the same members."""
    members = (after.values(), before.values()) if isinstance(before, dict) else (after, before)
    return before if len(after) == len(before) and all(a is b for a, b in zip(*members)) else after


def _json_type(given: Any, tool: str, pointer: str) -> Any:
    """The type, or list of types, that a name or a list of names stands for."""
    if isinstance(given, list):
        kinds = [_json_type(one, tool, pointer) if isinstance(one, str) else one for one in given]
        distinct = [kind for i, kind in enumerate(kinds) if kind not in kinds[:i]]
        return _ANY if _ANY in kinds else given if kinds == given else distinct
    if not isinstance(given, str):
        return given  # whoever reads the schema says what is wrong with it
    name = given.lower()
    if name not in NAMES:
        what = f"tool {tool!r}: JSON Schema at {pointer}: there is no type {given[:80]!r}"
        raise KnowledgeError(what, _remedy(name))
    return given if NAMES[name] == given else NAMES[name]


def _remedy(name: str) -> str:
    """What to write for an unknown type: for ``list[str]`` and ``str[]``, an array with that type of items."""
    outer, _, inner = name.replace("<", "[").partition("[")
    kind, items = NAMES.get(outer.strip(" ?")), NAMES.get(inner.rstrip("]> ").strip())
    if name.endswith("[]"):
        kind, items = "array", kind
    if kind == "array":
        items = "..." if items in (None, _ANY) else items
        return f'write {{"type": "array", "items": {{"type": "{items}"}}}}'
    if kind == "object":
        return 'write {"type": "object", "additionalProperties": {"type": "..."}}'
    if kind and name.endswith("?"):
        return f'write {{"type": ["{kind}", "null"]}}'
    return f"the types are: {', '.join(TYPES)}; or leave the type out, which admits any value"
