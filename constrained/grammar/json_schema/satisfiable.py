"""Whether some value fits: yes, no, or unknown. What certainly has a value, and is never refused, may be written later.

A mask must not lead to where nothing can follow, and a refusal belongs to loading, not to the middle of a text. So a
schema is deferred until a text reaches it if all that it says is among what is looked into here (an allowlist), and
some value certainly fits it, or does so if others have one. Unknown means: it is written now. Whatever is missing in
the lists costs time while a schema is loaded, and nothing else.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from operator import attrgetter
from typing import NamedTuple

from constrained.grammar import nodes
from constrained.grammar.json_schema.alternatives import Alternatives, meet
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.numbers import integer, whole
from constrained.grammar.json_schema.objects import PATTERNS
from constrained.grammar.json_schema.presence import satisfiable
from constrained.grammar.json_schema.shape import (
    ANYTHING,
    NOTHING,
    Items,
    Join,
    Members,
    Numbers,
    Schema,
    Schemas,
    Shape,
    Strings,
    names_in,
    parsed,
)
from constrained.grammar.json_schema.strings import is_written
from constrained.grammar.patterns.ecma import end_differently
from constrained.grammar.patterns.formats import FORMAT_STATES, format_node
from constrained.grammar.patterns.trees import example
from constrained.limits import Limits

_ITSELF = frozenset(("keywords", "parts", "order"))
DECIDED: dict[type, frozenset[str]] = {
    Shape: _ITSELF | {"types", "listed", "numbers", "strings", "items", "members", "joins"},
    Numbers: frozenset(("low", "high")),
    Strings: frozenset(("low", "high", "patterns", "formats")),
    Items: frozenset(("low", "high", "rows", "wanted")),
    Members: frozenset(("groups", "required", "present", "limits")),
}
"""What of shapes, and of what they say of each type, is looked into. The rest is unknown."""
JOINS = frozenset(("ref", "all", "any", "one", "not", "if", "depends"))
"""The joins that are."""

_JOINED = _ITSELF | {"types", "joins"}
_COUNTED = 100
"""Rules of an array whose items are counted: so few never pass a limit."""
MODEST = 10**15
"""Bounds up to which every number between two is written without an exponent."""
_DEPTH = 64
"""Schemas joined in one another that are looked into."""
BRANCHES = 100
"""Alternatives of a deferred schema: so few never pass a limit."""
_UNKNOWN, _OPEN = 0, -1
"""In place of a number of alternatives: it isn't known whether a value fits; nor for what joins it."""
_TOO_MANY = "a JSON Schema of too many schemas"
_NO_OWNERS: frozenset[Schema] = frozenset()
_FREE = frozenset(("null", "boolean"))
_NOTHING = (NOTHING,)


class Contents(NamedTuple):
    """What the properties of an object, or the items of an array, are.

    Attributes
    ----------
    parts : list of tuple of Schema
        Schemas that one value must fit together.
    needed : list of tuple of Schema
        Some object, or array, is certain if some value fits each of these.
    necessary : bool
        Whether there is none else.
    """

    parts: list[Schemas]
    needed: list[Schemas]
    necessary: bool = True


_EMPTY = Contents([], [])


def contents(kind: str, shape: Shape, document: Document) -> Contents | None:
    """What is in the objects, or arrays, of a shape; None: it isn't known whether there are some."""
    if kind == "object":
        return _EMPTY if not shape.says("members") else _members(shape.members, document)
    return _EMPTY if not shape.says("items") else _elements(shape.items, document)


def _members(members: Members, document: Document) -> Contents | None:
    groups, limits = members.groups, document.limits
    if not members.says_only(DECIDED[Members]) or any(group.unevaluated is not None for group in groups):
        return None
    required, conditions = dict.fromkeys(members.required), members.present
    if conditions and not satisfiable(("and", *conditions, *required), limits):
        return None
    patterns = members.patterns if any(group.patterns for group in groups) else ()
    if patterns and not (_are_apart(patterns) and members.has_small_patterns):  # a name may match several
        return None
    names = dict.fromkeys([*required, *(name for one in conditions for name in names_in(one))])
    others = [group for group in groups if group.rest is not None and not group.rest.shape.says_nothing]
    values: dict[str, Schemas] = {}
    if len(groups) == 1 and not patterns:  # most
        values = {name: _saying((one,), document) for name, one in groups[0].named.items()}
    else:
        named = dict.fromkeys([name for group in groups for name in group.named])
        for name in [*named, *names] if patterns else named:
            if name not in values:
                values[name] = _saying(members.member(name), document)
    free = _saying(tuple([group.rest for group in others if group.rest is not None]), document)
    matched = [_saying(members.matching(None, frozenset([pattern])), document) for pattern in patterns]
    needed = [one for name in names if (one := values.get(name, free))]
    inside = [one for one in (*values.values(), free, *matched) if one]
    if any(NOTHING in one for one in inside):
        if any(NOTHING in one for one in needed):
            asked_for = any(NOTHING in values.get(name, free) for name in required)
            return Contents([], [_NOTHING]) if asked_for else None
        inside = [one for one in inside if NOTHING not in one]
    return Contents(inside, needed, not conditions)


def _are_apart(patterns: tuple[str, ...]) -> bool:
    """Whether it is certain that no name has two of some patterns, which are not too many."""
    return len(patterns) < 1 << PATTERNS and all(end_differently(a, b) for a, b in combinations(patterns, 2))


def _elements(items: Items, document: Document) -> Contents | None:
    low, high, wanted, own = items.low, items.high, items.wanted, items.first
    if not items.says_only(DECIDED[Items]) or any(row.unevaluated is not None for row in items.rows):
        return None
    if not _in_order(low, high, document.limits):
        return None
    if not wanted:
        count = own + 1 if high is None else min(own, high) + 1
        each = [_saying(items.item(i), document) for i in range(count)]
        if any(NOTHING in one for one in each[:low]):
            return Contents([], [_NOTHING])
        return Contents([one for one in each if one and NOTHING not in one], [one for one in each[:low] if one])
    if own or high is not None or any(one.high is not None for one in wanted):
        return None
    if (low + 1) * prod(one.low + 1 for one in wanted) * 2 ** len(wanted) > _COUNTED:
        return None
    item = items.item(0)
    ways = [(*item, *(one.schema for one in some)) for n in range(len(wanted) + 1) for some in combinations(wanted, n)]
    needed = [(*item, one.schema) for one in wanted if one.low]
    return Contents([one for one in ways if one], needed or [item] * (low > 0 and bool(item)))


def _saying(parts: Schemas, document: Document) -> Schemas:
    """Schemas for one value as what they refer to; none if that is no more than a type."""
    if len(parts) == 1:  # most
        (part,) = parts
        if part.context is None and not part.made:
            return parts if part is NOTHING else ()
    return tuple([part if part.context is None else document.resolved(part) for part in parts])


def _in_order(low: int, high: int | None, limits: Limits) -> bool:
    """Whether there are counts between two, and none is too large."""
    return max(low, high or 0) <= limits.repeat and (high is None or low <= high)


def has_strings(shape: Shape, limits: Limits) -> bool:
    """Whether it is certain that some string fits, and that to write them passes no limit."""
    said = shape.strings
    if not said.says_only(DECIDED[Strings]) or shape.denied or not _in_order(said.low, said.high, limits):
        return False
    if len(said.patterns) + len(said.formats) > 1:
        return False
    for pattern in said.patterns:
        if said.low or said.high is not None:
            return False
        place = shape.parts[0] if shape.parts else ANYTHING
        return is_written(parsed(place, "pattern", pattern, limits))
    for name in said.formats:
        if not said.low and said.high is None:
            return True
        length = len(example(format_node(name)) or "")
        fits = said.low <= length and (said.high is None or length <= said.high)
        return fits and min(limits.schema, limits.pattern_steps) >= FORMAT_STATES
    return True


def has_numbers(shape: Shape) -> bool:
    """Whether it is certain that some number fits, and that to write them passes no limit."""
    said = shape.numbers
    low, high = said.low, said.high
    if not said.says_only(DECIDED[Numbers]) or shape.denied:
        return False
    if any(bound is not None and abs(bound[0]) > MODEST for bound in (low, high)):
        return False
    if low is None or high is None:
        return True
    if "number" in shape.types:
        return low[0] + (low[1] or high[1]) < high[0]
    return integer(*whole(low, high)) is not nodes.NEVER


class Satisfiable:
    """Tells which schemas of one document may be written later: a value certainly fits, or does so if others have one.

    A schema that is asked about, and those that it leads to, are looked into once. Those of which it isn't known are
    in :meth:`left`; those that need others to have a value, in :meth:`needs`.
    """

    def __init__(self, alternatives: Alternatives):
        self._alternatives, self._document = alternatives, alternatives.document
        self._limits = alternatives.limits
        self._ways: dict[Schema, int] = {ANYTHING: 1}  # of how many alternatives a schema is
        self._needs: dict[Schema, list[list[Schema]]] = {}  # in one of these lists, all must have a value
        self._work: dict[Schema, None] = {}  # schemas to be looked into
        self._left: dict[Schema, None] = {}
        self._distinct: set[Schema] | None = None

    def __call__(self, schema: Schema) -> bool:
        """Whether a schema may be written later; what it leads to is looked into, too."""
        ways = self._known(self._document.resolved(schema), 0)
        while self._work:
            work, self._work = self._work, {}
            for one in work:
                if self._known(one, 0) <= _UNKNOWN:
                    self._left[one] = None
        return ways > _UNKNOWN

    def left(self) -> list[Schema]:
        """The schemas that others lead to, and of which it isn't known, each once; those outside first."""
        found, self._left = sorted(self._left, key=attrgetter("depth")), {}
        return found

    def needs(self) -> list[Schema]:
        """Schemas of which no value is certain yet: in one of some lists of others, all must have one."""
        # One pass decides most, as what a schema leads to mostly comes after it; equations decide the others.
        unsure = dict(self._needs)
        for key, needs in reversed(self._needs.items()):
            for others in needs:
                if unsure.keys().isdisjoint(others) and all(self._ways.get(one, _UNKNOWN) > 0 for one in others):
                    del unsure[key]
                    break
        return [*unsure]

    def needs_of(self, schema: Schema) -> list[list[Schema]]:
        """In which lists of other schemas all must have a value, for a schema that needs some."""
        return self._needs[schema]

    def give_up(self, schema: Schema) -> None:
        """Count a schema as one of which it isn't known."""
        self._ways[schema] = _UNKNOWN
        del self._needs[schema]

    def _known(self, schema: Schema, joined: int) -> int:
        """Of how many alternatives a schema is that may be written later.

        `_OPEN` where it leads back to what joins it, or is too deep. `joined`: in how many schemas that join others.
        """
        found = self._ways.get(schema)
        if found is not None:
            return found
        if joined > _DEPTH:
            return _OPEN
        if len(self._ways) > self._limits.schema:
            self._count(schema)
        self._ways[schema] = _OPEN  # as long as it is looked into
        self._ways[schema] = found = self._look(schema, joined + 1)
        return found

    def _count(self, schema: Schema) -> None:
        """Refuse too many schemas; those that say the same count once."""
        first = self._document.first
        if self._distinct is None:
            self._distinct = {one if one.made else first(one) for one in self._ways}
        self._distinct.add(schema if schema.made else first(schema))
        self._limits.check("schema", len(self._distinct), _TOO_MANY)

    def _look(self, schema: Schema, joined: int) -> int:
        shape = schema.shape
        if not shape.says_only(DECIDED[Shape]) or not shape.types:
            return _UNKNOWN
        joins = shape.joins
        if not joins:
            return self._of_value(schema, shape)
        if any(join.how not in JOINS for join in joins):
            return _UNKNOWN
        if len(joins) == 1 and joins[0].how in ("ref", "all", "any", "one") and shape.says_only(_JOINED):
            return self._joined(schema, shape, joins[0], joined)
        present = [self._alternatives.present(schema, join) for join in joins]
        conditions = [one for one in present if one is not None]
        if len(conditions) < len(present):
            return _UNKNOWN
        own = schema.making(**{field: value for field, value in shape.said.items() if field not in ("joins", "parts")})
        return self._of_value(schema, meet((one, _NO_OWNERS) for one in (own, *conditions)))

    def _of_value(self, schema: Schema, shape: Shape) -> int:
        """The same, of a shape without joins."""
        if shape.listed:
            return int(shape.only_lists and bool(shape.allowed))
        types = shape.types
        sure = not types.isdisjoint(_FREE)
        if "string" in types:
            if shape.says("strings") and not has_strings(shape, self._limits):
                return _UNKNOWN
            sure = True
        if "integer" in types:
            if shape.says("numbers") and not has_numbers(shape):
                return _UNKNOWN
            sure = True
        unsure: list[list[Schema]] = []
        for kind in ("object", "array"):
            if kind in types:
                found = contents(kind, shape, self._document)
                if found is None or _NOTHING in found.needed:
                    return _UNKNOWN
                for one in found.parts:
                    if len(one) > 1:
                        return _UNKNOWN
                    if one[0] not in self._ways:
                        self._work[one[0]] = None
                if found.needed:
                    unsure.append([one for (one,) in found.needed])
                else:
                    sure = True
        if not sure:
            self._needs[schema] = unsure
        return 1

    def _joined(self, schema: Schema, shape: Shape, join: Join, joined: int) -> int:
        """The same, of what only joins other schemas."""
        document = self._document
        branches: Schemas = (document.target(schema, join),) if join.how == "ref" else join.schemas
        if join.how == "all" and len(branches) > 1 or len(branches) > BRANCHES:
            return _UNKNOWN
        if join.how == "one" and not self._alternatives.are_disjoint(schema, join):
            return _UNKNOWN
        ways, certain = 0, False
        keys, others = [], []
        for branch in map(document.resolved, branches):
            if not branch.shape.types <= shape.types:  # each branch and the types beside it are an alternative
                if branch.shape.joins or branch.shape.types.isdisjoint(shape.types):
                    return _UNKNOWN
                branch = _of_types(branch, shape.types)
            own = self._known(branch, joined)
            if own == _OPEN or own == _UNKNOWN and branch.made:
                return own
            keys.append(branch)
            if own == _UNKNOWN:
                others.append(branch)
            certain = certain or own > _UNKNOWN and branch not in self._needs
            ways += max(own, 1)
        if ways > BRANCHES or NOTHING in keys:
            return _UNKNOWN
        self._left.update(dict.fromkeys(others))
        if not certain:
            self._needs[schema] = [[key] for key in keys]
        return ways


def _of_types(schema: Schema, types: frozenset[str]) -> Schema:
    """A schema with the types that stand beside it."""
    said = {field: value for field, value in schema.shape.said.items() if field != "parts"}
    return schema.making(**{**said, "types": schema.shape.types & types})
