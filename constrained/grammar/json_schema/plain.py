"""What shows of schemas, without writing them, whether some value fits them, and that writing them passes no limit."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import NamedTuple

from constrained.grammar import nodes
from constrained.grammar.json_schema.constraints import NEITHER, Constraints, pattern_of
from constrained.grammar.json_schema.document import Document, Subschema
from constrained.grammar.json_schema.keywords import FORMS, SOME_PROPERTY, Options, is_type, says_nothing
from constrained.grammar.json_schema.numbers import integer, whole
from constrained.grammar.json_schema.objects import PATTERNS
from constrained.grammar.json_schema.patterns import EXAMPLES, FORMAT_STATES, end_differently, is_simple
from constrained.grammar.json_schema.presence import names_in, satisfiable
from constrained.grammar.json_schema.strings import is_written

_RESTRICTING = frozenset(FORMS)
_COUNTING = frozenset(("propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", SOME_PROPERTY))
BOUNDS = frozenset("minLength maxLength minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum".split())
_UNTOLD = frozenset(("uniqueItems", "unevaluatedItems"))
_COUNTED = 100
"""Rules of an array whose items are counted: so few never pass a limit."""
_COUNTED_TEXT = frozenset(("type", "minLength", "maxLength"))
MODEST = 10**15
"""Bounds up to which every number between two is written without an exponent."""


class Contents(NamedTuple):
    """What the properties of an object, or the items of an array, are.

    Attributes
    ----------
    parts : list of list of Subschema
        Schemas that one value must fit together.
    needed : list of list of Subschema
        Some object, or array, is certain if some value fits each of these.
    necessary : bool
        Whether there is none else.
    """

    parts: list[list[Subschema]]
    needed: list[list[Subschema]]
    necessary: bool = True


def members(constraints: Constraints, document: Document) -> Contents | None:
    """What the properties of an object are, if that is all that its keywords say; None: it may be refused."""
    parts, options = constraints.parts, constraints.options
    required, conditions = constraints.required, constraints.present
    if options.closed or not _COUNTING.isdisjoint(constraints.said):
        return None
    if conditions and not satisfiable(("and", *conditions, *required), options.limits):
        return None
    others = [part for part in parts if not says_nothing(part.keywords.get("additionalProperties", True))]
    patterns = constraints.key_patterns
    if not are_apart(patterns) or not constraints.has_small_patterns():  # a name may match several
        return None
    closing = [] if patterns else [one for one in others if one["additionalProperties"] is False]
    closed = [one.keywords.get("properties", {}) for one in closing]
    values: dict[str, list[Subschema]] = {}
    several: dict[str, None] = {}  # of these, not only one schema says something
    for part in parts:
        named = part.keywords.get("properties", {})
        if patterns or others and others != [part]:
            several |= dict.fromkeys(named)
        elif named:
            several |= dict.fromkeys([name for name in named if name in values] if values else ())
            values |= _own_properties(part, document)
    for name in several:
        excluded = any(name not in listed for listed in closed)
        values[name] = [NEITHER] if excluded else _saying(constraints.property(name), document)
    free = _saying([part.below("additionalProperties") for part in others], document)
    matched = [_saying(constraints.key(None, frozenset([pattern])), document) for pattern in patterns]
    names = dict.fromkeys([*required, *(name for one in conditions for name in names_in(one))])
    for name in names if patterns else ():
        if name not in values:
            values[name] = _saying(constraints.property(name), document)
    needed = [values.get(name, free) for name in names]
    if any(one.schema is False for inner in needed for one in inner):
        asked_for = [one for name in required for one in values.get(name, free)]
        return Contents([], [[NEITHER]]) if any(one.schema is False for one in asked_for) else None
    inside = [one for one in [*values.values(), free, *matched] if one]
    return Contents(inside, [one for one in needed if one], necessary=not conditions)


def are_apart(patterns: list[str]) -> bool:
    """Whether it is plain that no name has two of some patterns, which are not too many."""
    return len(patterns) < 1 << PATTERNS and all(end_differently(a, b) for a, b in combinations(patterns, 2))


def _own_properties(part: Subschema, document: Document) -> dict[str, list[Subschema]]:
    """What a schema says of each property that it names; many alternatives have it in common."""
    if part.pointer not in document.named:
        document.named[part.pointer] = {
            name: [] if is_type(schema) else [document.meant(part.below("properties", name))]
            for name, schema in part.keywords["properties"].items()
        }
    return document.named[part.pointer]


def elements(constraints: Constraints, document: Document) -> Contents | None:
    """What the items of an array are, if that is all that its keywords say; None: it may be refused."""
    (low, high), limits = constraints.counts("Items"), constraints.limits
    wanted, own = constraints.wanted(), constraints.prefix()
    if any(not _UNTOLD.isdisjoint(part.keywords) for part in constraints.parts):
        return None
    if max(low, high or 0) > limits.repeat or high is not None and high < low:
        return None
    if not wanted:
        items = [_saying(constraints.item(i), document) for i in range(own + 1 if high is None else min(own, high) + 1)]
        if any(one.schema is False for inner in items[:low] for one in inner):
            return Contents([], [[NEITHER]])
        return Contents([one for one in items if one], [one for one in items[:low] if one])
    if own or high is not None or any(one.high is not None for one in wanted):
        return None
    if (low + 1) * prod(one.low + 1 for one in wanted) * 2 ** len(wanted) > _COUNTED:
        return None
    item = constraints.item(0)
    ways = [[*item, *(one.schema for one in some)] for n in range(len(wanted) + 1) for some in combinations(wanted, n)]
    needed = [[*item, one.schema] for one in wanted if one.low]
    return Contents(ways, needed or [item] * (low > 0))


def _saying(parts: list[Subschema], document: Document) -> list[Subschema]:
    """Schemas for one value as what they refer to; none if that is no more than a type."""
    return [] if len(parts) == 1 and is_type(parts[0].schema) else [document.meant(part) for part in parts]


def is_certain(part: Subschema, keyword: str, pattern: str, options: Options) -> bool:
    """Whether some text has the pattern, as far as the pattern or its tree shows it."""
    if is_simple(pattern, options.limits):
        return True
    return is_written(pattern_of(part, keyword, pattern, options.limits))


def has_format(own: Constraints) -> bool:
    """Whether some text of the right length has the format of a schema, which says no more, as an example shows it."""
    (part,) = own.parts
    said = _RESTRICTING.intersection(part.keywords)
    if not said or said == {"type"}:
        return not said or part["type"] == "string"
    (low, high), length = own.counts("Length"), len(EXAMPLES[part["format"]])
    small = (
        max(low, high or 0) <= own.limits.repeat and min(own.limits.schema, own.limits.pattern_steps) >= FORMAT_STATES
    )
    counted = said <= _COUNTED_TEXT and part["type"] == "string"
    return counted and small and low <= length and (high is None or length <= high)


def are_in_order(own: Constraints) -> bool:
    """Whether there are lengths and numbers between the bounds."""
    for least, most in (own.counts("Length"), own.counts("Items")):
        if max(least, most or 0) > own.limits.repeat or most is not None and most < least:
            return False
    low, high = own.bound(-1), own.bound(1)
    if any(bound is not None and abs(bound[0]) > MODEST for bound in (low, high)):
        return False
    if low is None or high is None:
        return True
    if "number" in own.types:
        return low[0] + (low[1] or high[1]) < high[0]
    return integer(*whole(low, high)) is not nodes.NEVER
