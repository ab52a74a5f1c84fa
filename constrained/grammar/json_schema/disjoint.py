"""Whether no value fits two schemas, which spares a `oneOf` the complements of its branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

from constrained.grammar.json_schema.constraints import Conjunction, Constraints, key_of
from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.keywords import EVERY, types_of
from constrained.grammar.json_schema.patterns import end_differently
from constrained.grammar.json_schema.settled import Known, may_have
from constrained.grammar.json_schema.strings import some_in_both
from constrained.grammar.json_schema.validity import Resolver, type_of

DEPTH = 4
"""Levels of properties and items that are looked into."""
PAIRS = 100_000
"""Pairs of branches that are kept, as those that have a listed value in common."""


class Values(NamedTuple):
    """Values that are listed, by their identity, and patterns of texts: one of these."""

    listed: frozenset | set
    patterns: tuple[str, ...] = ()

    def differ(self, other: Values) -> bool:
        """Whether it is plain that no value is in both."""
        return (
            self.listed.isdisjoint(other.listed)
            and all(end_differently(a, b) for a in self.patterns for b in other.patterns)
            and not any(_may_have(value, pattern) for value in self.listed for pattern in other.patterns)
            and not any(_may_have(value, pattern) for value in other.listed for pattern in self.patterns)
        )


@dataclass
class Shown:
    """What keywords say outright of all values of a schema.

    Attributes
    ----------
    types : frozenset of str
        Their types.
    known : Known
        The schemas that hold in every alternative.
    own : Values or None
        The values, where these are listed or have a pattern.
    """

    types: frozenset[str]
    known: Known
    own: Values | None
    _told: dict[str, tuple[frozenset[str], Values | None]] = field(default_factory=dict)

    @cached_property
    def required(self) -> frozenset[str]:
        """The properties of every object; none where other values fit, too."""
        return frozenset(self.known.required) if self.types == {"object"} else frozenset()

    def property(self, name: str) -> tuple[frozenset[str], Values | None]:
        """The types and the values of a property."""
        if name not in self._told:
            said = self.known.property(name)
            types = EVERY.intersection(*map(_types_of, said.schemas))
            self._told[name] = types, _values_of(said.schemas, types, said.allowed)
        return self._told[name]

    def differ(self, other: Shown, telling: dict[str, None]) -> bool:
        """Whether it is plain that no value fits both; `telling`: properties that told others apart, tried first."""
        if self.types.isdisjoint(other.types) or self.own and other.own and self.own.differ(other.own):
            return True
        names = self.required | other.required
        first = [name for name in telling if name in names]
        found = next((name for name in (*first, *names.difference(first)) if self._differ_in(other, name)), None)
        if found is not None:
            telling[found] = None
        return found is not None

    def _differ_in(self, other: Shown, name: str) -> bool:
        """Whether a property that one has plainly has no value that fits both."""
        (types, values), (types2, values2) = self.property(name), other.property(name)
        apart = values is not None and values2 is not None and values.differ(values2)
        return apart or types.isdisjoint(types2) or any(one.known.property(name).absent for one in (self, other))


def _types_of(part: Subschema) -> frozenset[str]:
    """The types by `type`, and by the values listed."""
    types, said = types_of(part), part.keywords
    if "enum" in said:
        types &= {type_of(value) for value in said["enum"]}
    if "const" in said:
        types &= {type_of(said["const"])}
    return types


def _values_of(parts: list[Subschema], types: frozenset[str], allowed: set | None) -> Values | None:
    """The values of schemas that hold together, where these are listed or have a pattern."""
    if allowed is not None:
        return Values(allowed)
    pattern = next((part["pattern"] for part in parts if "pattern" in part), None) if types == {"string"} else None
    return None if pattern is None else Values(frozenset(), (pattern,))


def _may_have(value, pattern: str) -> bool:
    """Whether a value, by its identity, may be a text that has a pattern."""
    text = value[1] if isinstance(value, tuple) and value[0] is False else None  # `identity` of a text: (False, text)
    return isinstance(text, str) and may_have(text, pattern)


class Disjoint:
    """Tells whether no value fits two schemas of one document, as far as their keywords show it."""

    def __init__(self, alternatives: Resolver):
        self.alternatives = alternatives
        self._found: dict[tuple, bool] = {}
        self._shows: dict[tuple[str, ...], Shown] = {}

    def __call__(self, one: list[Subschema], other: list[Subschema], depth: int = DEPTH) -> bool:
        """Whether it is certain that no value fits both."""
        if not depth or [part.pointer for part in one] == [part.pointer for part in other]:
            return False
        with self._roughly():
            return all(self._pair(a, b, depth) for a in self.alternatives.of(one) for b in self.alternatives.of(other))

    @contextmanager
    def _roughly(self) -> Iterator[None]:
        before, self.alternatives.roughly = self.alternatives.roughly, True
        try:
            with self.alternatives.validator.widely():
                yield
        finally:
            self.alternatives.roughly = before

    def overlaps(self, branches: list[list[Subschema]]) -> list[list[int]]:
        """Return, for each branch, the others that it may share a value with."""
        # From the cheapest test to the dearest: what keywords say outright (of all branches, then of two), what all
        # alternatives of a branch list, and the general test.
        out: list[list[int]] = [[] for _ in branches]
        shown = [self._shown(branch) for branch in branches]
        telling: dict[str, None] = {}
        resolved: dict[int, dict[str | None, Values]] = {}
        for i, j in _in_common(shown):
            if shown[i].differ(shown[j], telling):
                continue
            for k in {i, j} - resolved.keys():
                with self._roughly():
                    resolved[k] = self._values(branches[k])
            if not differ(resolved[i], resolved[j]) and not self(branches[i], branches[j]):
                out[i].append(j)
                out[j].append(i)
        return out

    def _shown(self, parts: list[Subschema]) -> Shown:
        """What the keywords that hold in every alternative say outright."""
        document = self.alternatives.document
        work = [document.meant(part) for part in parts]
        key = key_of(tuple(work))
        if key in self._shows:
            return self._shows[key]
        known: dict[str, Subschema] = {}
        kinds = EVERY
        for one in work:  # which grows meanwhile
            part = document.meant(one)
            if part.pointer not in known:
                known[part.pointer] = part
                self.alternatives.check(part)
                kinds &= _types_of(part)
                work += [document.refer(part)] if "$ref" in part.keywords else []
                work += [part.below("allOf", i) for i in range(len(part.keywords.get("allOf", ())))]
        together = Known(list(known.values()), self.alternatives)
        own = _values_of(together.parts, kinds, together.allowed(together.parts))
        self._shows[key] = Shown(kinds, together, own)
        return self._shows[key]

    def _values(self, parts: list[Subschema]) -> dict[str | None, Values]:
        """The values that each alternative lists: for itself (None), and for properties that are required."""
        each = [self._listed(one) for one in self.alternatives.constraints_of(parts)]
        names = set.intersection(*map(set, each)) if each else set()
        return {name: _any_of(one[name] for one in each) for name in names}

    def _listed(self, constraints: Constraints) -> dict[str | None, Values]:
        own = _texts_or_values(constraints)
        out: dict[str | None, Values] = {} if own is None else {None: own}
        for name in constraints.required if constraints.types == {"object"} else ():
            inner = [_texts_or_values(one) for one in self.alternatives.constraints_of(constraints.property(name))]
            if None not in inner:
                out[name] = _any_of(one for one in inner if one)
        return out

    def _pair(self, one: Conjunction, other: Conjunction, depth: int) -> bool:
        key = (key_of(one), key_of(other), depth)
        if key not in self._found:
            constraints = self.alternatives.constraints
            self._found[key] = self._apart(constraints(one), constraints(other), depth)
        return self._found[key]

    def _apart(self, one: Constraints, other: Constraints, depth: int) -> bool:
        fits = self.alternatives.validator.fits
        for a, b in ((one, other), (other, one)):
            if a.listed:
                return not any(fits(v, b) and fits(v, a) for v in a.listed[1])
        kinds = {"number" if t == "integer" else t for t in one.types}
        kinds &= {"number" if t == "integer" else t for t in other.types}
        how = {
            "number": _numbers,
            "string": lambda a, b, _: not some_in_both(a, b),
            "array": self._arrays,
            "object": self._objects,
        }
        return all(kind in how and how[kind](one, other, depth) for kind in kinds)

    def _arrays(self, one: Constraints, other: Constraints, depth: int) -> bool:
        (low, high), (low2, high2) = one.counts("Items"), other.counts("Items")
        if high is not None and high < low2 or high2 is not None and high2 < low:
            return True
        return any(self(one.item(i), other.item(i), depth - 1) for i in range(min(max(low, low2), 16)))

    def _objects(self, one: Constraints, other: Constraints, depth: int) -> bool:
        names = dict.fromkeys([*one.required, *other.required])
        return any(self(one.property(name), other.property(name), depth - 1) for name in names)


def _texts_or_values(constraints: Constraints) -> Values | None:
    if constraints.listed:
        return Values(constraints.listed_values[0])
    patterns = constraints.all("pattern") if constraints.types == {"string"} else []
    return Values(frozenset(), (patterns[0][1],)) if patterns else None


def _any_of(every: Iterable[Values]) -> Values:
    listed, patterns = zip(*every) if (every := list(every)) else ((), ())
    return Values(frozenset().union(*listed), tuple(pattern for some in patterns for pattern in some))


def _in_common(every: list[Shown]) -> Iterable[tuple[int, int]]:
    """The pairs that may share a value, by what all list for themselves, or for a property that all require."""
    pairs: set[tuple[int, int]] | None = None  # None: all
    for name in (None, *frozenset.intersection(*(one.required for one in every))):
        having: dict[Any, list[int]] = {}
        for i, one in enumerate(every):
            values = one.own if name is None else one.property(name)[1]
            if values is None or values.patterns:
                break
            for value in values.listed:
                having.setdefault(value, []).append(i)
        else:
            sharing = {tuple(some) for some in having.values() if len(some) > 1}
            if sum(len(some) ** 2 for some in sharing) > PAIRS:
                continue
            found = {pair for some in sharing for pair in combinations(some, 2)}
            pairs = found if pairs is None else pairs & found
            if not pairs:
                break
    return combinations(range(len(every)), 2) if pairs is None else sorted(pairs)


def differ(one: dict[str | None, Values], other: dict[str | None, Values]) -> bool:
    """Whether some property, or the value itself, plainly has no value in common."""
    return any(one[name].differ(other[name]) for name in one.keys() & other.keys())


def _numbers(one: Constraints, other: Constraints, _depth: int) -> bool:
    for a, b in ((one, other), (other, one)):
        high, low = a.bound(1), b.bound(-1)
        if high and low and (high[0] < low[0] or high[0] == low[0] and (high[1] or low[1])):
            return True
    return False
