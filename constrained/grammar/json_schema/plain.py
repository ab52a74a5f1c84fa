"""Plain schemas: what they admit can be told without writing it, so that it is written when a text reaches it.

A mask must not lead to where nothing can follow, and a refusal belongs to loading, not to the middle of a text. So a
schema may wait if it has only keywords that are always honoured, and if it is certain that some value fits it. All
other schemas are written while the document is loaded.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import NamedTuple

from constrained.grammar import nodes
from constrained.grammar.analysis import components
from constrained.grammar.assertions import looks
from constrained.grammar.json_schema.alternatives import FOLLOWED, Alternatives
from constrained.grammar.json_schema.constraints import Constraints, pattern_of
from constrained.grammar.json_schema.containers import PATTERNS
from constrained.grammar.json_schema.document import Document, Subschema
from constrained.grammar.json_schema.keywords import FORMS, SOME_PROPERTY, Options, is_type, says_nothing, types_of
from constrained.grammar.json_schema.numbers import integer, whole
from constrained.grammar.json_schema.patterns import EXAMPLES, FORMAT_STATES, end_differently, is_simple
from constrained.grammar.json_schema.presence import names_in, satisfiable
from constrained.grammar.json_schema.strings import has_large_sets
from constrained.grammar.json_schema.validity import type_of

_RESTRICTING = frozenset(FORMS)
_SIMPLE = frozenset(
    "type minLength maxLength minimum maximum properties required additionalProperties patternProperties items "
    "minItems maxItems exclusiveMinimum exclusiveMaximum".split()
)
_COUNTING = frozenset(("propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", SOME_PROPERTY))
JOINING = FOLLOWED - {"then", "else"}
BRANCHES = 100
"""Alternatives of a plain schema: so few never pass a limit."""
BOUNDS = frozenset("minLength maxLength minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum".split())
_UNTOLD = frozenset(("uniqueItems", "unevaluatedItems"))
_COUNTED = 100
"""Rules of an array whose items are counted: so few never pass a limit."""
_COUNTED_TEXT = frozenset(("type", "minLength", "maxLength"))
_SCALAR = BOUNDS | {"type"}
MODEST = 10**15
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


def plain(part: Subschema, alternatives: Alternatives) -> Plain | None:
    """What is known of a schema that has been checked; None if it is not plain."""
    options = alternatives.options
    said = _RESTRICTING.intersection(part.keywords)
    if options.enforces(part["format"]):
        return Plain([], _CERTAIN) if has_format(Constraints((part,), options)) else None
    if not said or said == {"type"}:
        return Plain([], _CERTAIN) if part.schema is not False else None
    if len(joined := said - {"type"}) == 1 and joined <= {"$ref", "allOf", "anyOf", "oneOf"}:
        return _branches(part, next(iter(joined)), alternatives)
    if said == {"enum"} or said == {"const"} or said == {"enum", "type"} or said == {"const", "type"}:
        values = part["enum"] if "enum" in said else [part["const"]]
        types = types_of(part)
        return Plain([], _CERTAIN) if any(type_of(value) in types for value in values) else None
    if said == {"pattern"} or said == {"pattern", "type"} and part["type"] == "string":
        return Plain([], _CERTAIN) if is_certain(part, "pattern", part["pattern"], options) else None
    if said <= _SCALAR:
        return Plain([], _CERTAIN) if are_in_order(Constraints((part,), options)) else None
    return _simple(part, said - _SIMPLE, alternatives)


def _branches(part: Subschema, keyword: str, alternatives: Alternatives) -> Plain | None:
    """What is known of a schema that only joins others by `keyword`, and perhaps names their types."""
    document = alternatives.document
    if keyword == "$ref":
        branches = [document.refer(part)]
    else:
        branches = [document.meant(part.beside(keyword, i)) for i in range(len(part[keyword]))]
    if len(branches) > (1 if keyword == "allOf" else BRANCHES):
        return None
    if keyword == "oneOf" and id(part.schema) not in alternatives.apart and not alternatives.are_disjoint(part):
        return None
    if "type" not in part:
        return Plain(branches, [[branch.pointer] for branch in branches], same=True)
    # each branch and the types are an alternative of their own, of which some value is certain only if the types change
    # nothing, and the branch is one alternative
    targets = (document.refer(one) if "$ref" in one else one for one in branches)
    if any(types_of(one) - types_of(part) or not JOINING.isdisjoint(one.keywords) for one in targets):
        return None
    return Plain(branches, [[branch.pointer for branch in branches]], same=True)


class Contents(NamedTuple):
    """What the properties of an object, or the items of an array, are.

    Attributes
    ----------
    parts : list of list of Subschema
        Schemas that one value must fit together.
    needed : list of list of Subschema
        Some object, or array, is certain if some value fits each of these.
    """

    parts: list[list[Subschema]]
    needed: list[list[Subschema]]


def members(constraints: Constraints, document: Document) -> Contents | None:
    """What the properties of an object are, if that is all that its keywords say; None: it may be refused."""
    parts, options = constraints.parts, constraints.options
    required, conditions = constraints.required, constraints.present
    if options.closed or not all(_COUNTING.isdisjoint(part.keywords) for part in parts):
        return None
    if conditions and not satisfiable(("and", *conditions, *required), options.limits):
        return None
    others = [part for part in parts if not says_nothing(part.keywords.get("additionalProperties", True))]
    patterns = constraints.key_patterns
    if not are_apart(patterns):  # a name may match several
        return None
    constraints.check_patterns()
    values: dict[str, list[Subschema]] = {}
    for part in parts:
        shared = bool(patterns) or any(other is not part for other in others)
        own = {} if shared else _own_properties(part, document)
        if values.keys().isdisjoint(own):
            values |= own
            own = {}
        for name in part["properties"] or {} if shared or own else ():
            if shared or name in values:
                values[name] = _saying(constraints.property(name), document)
            else:
                values[name] = own[name]
    free = _saying([part.below("additionalProperties") for part in others], document)
    matched = [_saying(constraints.key(None, frozenset([pattern])), document) for pattern in patterns]
    names = dict.fromkeys([*required, *(name for one in conditions for name in names_in(one))])
    for name in names if patterns else ():
        if name not in values:
            values[name] = _saying(constraints.property(name), document)
    needed = [values.get(name, free) for name in names]
    if any(one.schema is False for inner in needed for one in inner):
        return None
    return Contents([one for one in [*values.values(), free, *matched] if one], [one for one in needed if one])


def are_apart(patterns: list[str]) -> bool:
    """Whether it is plain that no name has two of some patterns, which are not too many."""
    return len(patterns) < 1 << PATTERNS and all(end_differently(a, b) for a, b in combinations(patterns, 2))


def _own_properties(part: Subschema, document: Document) -> dict[str, list[Subschema]]:
    """What a schema says of each property that it names; many alternatives have it in common."""
    if part.pointer not in document.named:
        document.named[part.pointer] = {
            name: [] if is_type(schema) else [document.meant(part.below("properties", name))]
            for name, schema in (part["properties"] or {}).items()
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
            return None
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


def tangled(known: dict[str, Plain], walked: dict[str, int]) -> set[str]:
    """The schemas that refer to themselves for the same value, or have too many alternatives.

    `walked`: of how many alternatives other schemas are.
    """
    same = {pointer: [part.pointer for part in found.parts] for pointer, found in known.items() if found.same}
    ways = dict(walked)
    out: set[str] = set()
    for group in components(same):
        pointer = group[0]
        ways[pointer] = sum(ways.get(other, 1) for other in same[pointer])
        if len(group) > 1 or pointer in same[pointer] or ways[pointer] > BRANCHES:
            out.update(group)
    return out


def is_certain(part: Subschema, keyword: str, pattern: str, options: Options) -> bool:
    """Whether some text has the pattern, as far as the pattern or its tree shows it."""
    if is_simple(pattern, options.limits):
        return True
    tree = pattern_of(part, keyword, pattern, options.limits)
    written = not looks(tree) and not has_large_sets(tree)  # without a search for an end, which may pass a limit
    return written and all(node is not nodes.NEVER for node in nodes.walk(tree))


def has_format(own: Constraints) -> bool:
    """Whether some text of the right length has the format of a schema, which says no more, as an example shows it."""
    (part,) = own.parts
    said = _RESTRICTING.intersection(part.keywords)
    if not said or said == {"type"}:
        return not said or part["type"] == "string"
    (low, high), length = own.counts("Length"), len(EXAMPLES[part["format"]])
    small = max(low, high or 0) <= own.limits.repeat and own.limits.schema >= FORMAT_STATES
    counted = said <= _COUNTED_TEXT and part["type"] == "string"
    return counted and small and low <= length and (high is None or length <= high)


def _simple(part: Subschema, conditions: frozenset, alternatives: Alternatives) -> Plain | None:
    """What is known of a schema of the simple keywords, and of `conditions` on which names there are."""
    present = [alternatives.present(part, keyword) if keyword in FOLLOWED else None for keyword in conditions]
    own = Constraints((part, *filter(None, present)), alternatives.options)
    if not all(present) or not BOUNDS.isdisjoint(part.keywords) and not are_in_order(own):
        return None
    if not isinstance(part.keywords.get("items", {}), dict):
        return None
    items = _saying([part.below("items")], alternatives.document) if "items" in part else []
    found = members(own, alternatives.document)
    if found is None or any(len(one) > 1 for one in found.parts):
        return None
    parts = items + [one for (one,) in found.parts if one.schema is not False]
    if own.types - {"object", "array"}:
        return Plain(parts, _CERTAIN)
    needs = {"array": items if own.counts("Items")[0] else [], "object": [one for (one,) in found.needed]}
    return Plain(parts, [[one.pointer for one in needs[kind]] for kind in sorted(own.types)])


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
