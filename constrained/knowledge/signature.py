"""A JSON Schema of arguments in a line, as a reader takes it in: ``(city: string, days?: integer)``."""

from __future__ import annotations

import json

SHOWN = 6
"""Values of an enum that are shown."""

DEPTH = 3
"""Levels of objects and lists that are shown."""


def signature(parameters: dict) -> str:
    """The arguments with their types, ``?`` behind those that may be left out."""
    return f"({_members(parameters, DEPTH)})"


def _members(schema: dict, depth: int) -> str:
    properties, required = schema.get("properties"), schema.get("required") or ()
    if not isinstance(properties, dict):
        return "..."
    return ", ".join(f"{k}{'' if k in required else '?'}: {_type(v, depth)}" for k, v in properties.items())


def _type(schema, depth: int) -> str:
    if not isinstance(schema, dict) or not depth:
        return "any" if schema is not False else "nothing"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        more = [f"{len(values) - SHOWN} more"] if len(values) > SHOWN else []
        return " | ".join([json.dumps(v, ensure_ascii=False) for v in values[:SHOWN]] + more)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return " | ".join(dict.fromkeys(_type(one, depth) for one in schema[keyword]))
    if isinstance(schema.get("$ref"), str):
        return schema["$ref"].rsplit("/", 1)[-1].lstrip("#") or "the same again"
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), depth - 1)}"
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return f"{{{_members(schema, depth - 1)}}}"
    return " ".join([str(kind), *_bounds(schema)])


def _bounds(schema: dict) -> list[str]:
    out = [f"of format {schema['format']}"] if isinstance(schema.get("format"), str) else []
    for keyword, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")):
        if keyword in schema:
            out.append(f"{sign} {schema[keyword]}")
    return out
