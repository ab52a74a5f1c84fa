"""Plain schemas: what they admit can be told without writing it, so that it is written when a text reaches it.

A mask must not lead to where nothing can follow, and a refusal belongs to loading, not to the middle of a text. So a
schema may wait if it has only keywords that are always honoured, and if it is certain that some value fits it. All
other schemas are written while the document is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from constrained.grammar import nodes
from constrained.grammar.analysis import components
from constrained.grammar.assertions import looks
from constrained.grammar.json_schema.alternatives import types_of
from constrained.grammar.json_schema.constraints import exact, pattern_of
from constrained.grammar.json_schema.document import Document, Subschema
from constrained.grammar.json_schema.keywords import FORMS, Options
from constrained.grammar.json_schema.validity import type_of

_RESTRICTING = frozenset(FORMS)
_SIMPLE = frozenset(
    "type minLength maxLength minimum maximum properties required additionalProperties patternProperties items "
    "minItems maxItems".split()
)
BRANCHES = 100
"""Alternatives of a plain schema: so few never pass a limit."""
_MODEST = 10**15
"""Bounds up to which every number between two is written without an exponent."""


class Plain(NamedTuple):
    """What is known of a plain schema.

    Attributes
    ----------
    parts : list of Subschema
        The schemas that it is made of.
    same : bool
        They are about the same value: alternatives, or what `$ref` refers to.
    needs : list of list of str
        Some value fits it if, in one of these lists, all schemas (by their pointers) have a value.
    """

    parts: list[Subschema]
    needs: list[list[str]]
    same: bool = False


_CERTAIN: list[list[str]] = [[]]


def plain(part: Subschema, document: Document, options: Options) -> Plain | None:
    """Return what is known of a schema that has been checked; None if it is not plain."""
    said = _RESTRICTING.intersection(part.keywords)
    if options.enforces(part["format"]):
        return Plain([], _CERTAIN) if not said or said == {"type"} and part["type"] == "string" else None
    if not said:
        return Plain([], _CERTAIN) if part.schema is not False else None
    if said == {"$ref"}:
        target = document.refer(part)
        return Plain([target], [[target.pointer]], same=True)
    if said == {"anyOf"} or said == {"oneOf"}:
        (keyword,) = said
        if len(part[keyword]) > BRANCHES:
            return None
        branches = [part.beside(keyword, i) for i in range(len(part[keyword]))]
        apart = keyword == "anyOf" or _apart(branches, document)
        return Plain(branches, [[branch.pointer] for branch in branches], same=True) if apart else None
    if said == {"enum"} or said == {"const"} or said == {"enum", "type"} or said == {"const", "type"}:
        values = part["enum"] if "enum" in said else [part["const"]]
        types = types_of(part)
        return Plain([], _CERTAIN) if any(type_of(value) in types for value in values) else None
    if said == {"pattern"} or said == {"pattern", "type"} and part["type"] == "string":
        return Plain([], _CERTAIN) if _is_certain(part, "pattern", part["pattern"], options) else None
    return _simple(part, options) if said <= _SIMPLE else None


def tangled(known: dict[str, Plain]) -> set[str]:
    """Return the schemas that refer to themselves for the same value, or have too many alternatives."""
    same = {pointer: [part.pointer for part in found.parts] for pointer, found in known.items() if found.same}
    ways: dict[str, int] = {}
    out: set[str] = set()
    for group in components(same):
        pointer = group[0]
        ways[pointer] = sum(ways.get(other, 1) for other in same[pointer])
        if len(group) > 1 or pointer in same[pointer] or ways[pointer] > BRANCHES:
            out.update(group)
    return out


def _is_certain(part: Subschema, keyword: str, pattern: str, options: Options) -> bool:
    """Whether some text has the pattern, as far as its tree shows it."""
    tree = pattern_of(part, keyword, pattern, options.limits)
    return not looks(tree) and all(node is not nodes.NEVER for node in nodes.walk(tree))


def _apart(branches: Iterable[Subschema], document: Document) -> bool:
    """Whether no two schemas share a type, as far as `type` and one `$ref` show it."""
    seen: set[str] = set()
    for branch in branches:
        types = types_of(document.refer(branch) if "$ref" in branch else branch)
        if seen & types:
            return False
        seen |= types
    return True


def _simple(part: Subschema, options: Options) -> Plain | None:
    """Return the same for a schema of the simple keywords."""
    keywords = part.keywords
    types = types_of(part)
    if not all(_in_order(part, options, what) for what in ("Length", "Items")) or not _numbers(part, types):
        return None
    parts: list[Subschema] = []
    item: list[str] = []
    if "items" in keywords:
        if not isinstance(keywords["items"], dict):
            return None
        parts.append(part.below("items"))
        item = [parts[-1].pointer] if keywords.get("minItems") else []
    required = _properties(part, parts, options)
    if required is None:
        return None
    if types - {"object", "array"}:
        return Plain(parts, _CERTAIN)
    return Plain(parts, [needs for kind, needs in (("array", item), ("object", required)) if kind in types])


def _properties(part: Subschema, parts: list[Subschema], options: Options) -> list[str] | None:
    """Add the properties' schemas to `parts`, and return the pointers of the required ones; None: not plain."""
    properties, others = part["properties"] or {}, part.keywords.get("additionalProperties", True)
    patterns = part["patternProperties"] or {}
    if patterns:  # names that are listed, or match none, would have to be told apart
        ((pattern, _), *more) = patterns.items()
        named = properties or part["required"] or others is not False
        if more or named or not _is_certain(part, "patternProperties", pattern, options):
            return None
        parts += [part.below("patternProperties", pattern)] if patterns[pattern] is not False else []
    inner = {name: part.below("properties", name) for name, schema in properties.items() if schema is not False}
    parts += inner.values()
    if isinstance(others, dict):
        parts.append(part.below("additionalProperties"))
    needs = []
    for name in part["required"] or ():
        if name in inner:
            needs.append(inner[name].pointer)
        elif name in properties or others is False or options.closed:
            return None
        elif isinstance(others, dict):
            needs.append(parts[-1].pointer)
    return needs


def _in_order(part: Subschema, options: Options, what: str) -> bool:
    low, high = part.keywords.get(f"min{what}", 0), part.keywords.get(f"max{what}")
    return max(low, high or 0) <= options.limits.repeat and (high is None or low <= high)


def _numbers(part: Subschema, types: frozenset[str]) -> bool:
    low, high = part["minimum"], part["maximum"]
    if low is None and high is None:
        return True
    if any(bound is not None and abs(bound) > _MODEST for bound in (low, high)):
        return False
    least, most = (None if bound is None else exact(bound) for bound in (low, high))
    if least is None or most is None:
        return True
    return Fraction(ceil(least)) <= floor(most) if "number" not in types else least < most
