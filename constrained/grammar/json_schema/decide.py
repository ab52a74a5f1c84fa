"""Whether a value fits, and whether no value fits two schemas: yes, no, or unknown.

Whether some value fits a schema is asked in `satisfiable`, of what is known here of objects and told apart here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, NamedTuple

from constrained.errors import GrammarError
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.presence import holds
from constrained.grammar.json_schema.shape import (
    NOTHING,
    Items,
    MemberGroup,
    Numbers,
    Schema,
    Schemas,
    Shape,
    Witness,
    say_the_same,
)
from constrained.grammar.json_schema.strings import some_in_both, trees, unmatched
from constrained.grammar.json_schema.values import EVERY, exact, identity, type_of
from constrained.grammar.patterns.ecma import end_differently, literal_ends
from constrained.grammar.patterns.finite_automata import Nfa, nfa
from constrained.limits import Limits

DEPTH = 4
"""Levels of properties and items that are looked into."""
PAIRS = 100_000
"""Pairs of branches that are kept, as those that have a listed value in common."""
_PREFIX = 16
"""Items that are looked into."""
_SPLIT = 6
"""So many pairs of branches that may share a value are told apart by whether a member is there."""
_TAGS = 4
"""Members that are tried as such a tag."""
_OBJECT = frozenset(("object",))


Resolve = Callable[..., list[Shape]]
"""What resolves schemas that hold together into shapes without joins: `alternatives.Alternatives.of`."""


class Fits:
    """Tells whether a value fits a shape without joins.

    Parameters
    ----------
    of : Resolve
    limits : Limits
    widely : bool
        Whether a string fits if some validator's reading of its pattern or format takes it.
    rough : bool
        See `alternatives.Alternatives`.
    """

    def __init__(self, of: Resolve, limits: Limits, widely: bool = False, rough: bool = False):
        self._of, self._limits, self._widely, self._rough = of, limits, widely, rough
        self._automata: dict[Shape, list[tuple[Nfa, bool]]] = {}

    def admits(self, value, parts: Iterable[Schema]) -> bool:
        """Whether a value fits all of some schemas."""
        return any(self(value, one) for one in self._of(parts, self._rough))

    def __call__(self, value, shape: Shape) -> bool:
        """Whether a value is one of those that a shape admits."""
        kind = type_of(value)
        if kind not in shape.types:
            return False
        if shape.denied or shape.listed:
            own = identity(value)
            if own in shape.denied_values or not all(own in one.identities for one in shape.listed):
                return False
            if shape.only_lists:
                return True
        match kind:
            case "string":
                return not shape.says("strings") or self.string(value, shape)
            case "integer" | "number":
                return not shape.says("numbers") or within(exact(value), shape.numbers)
            case "array":
                return not shape.says("items") or self._array(value, shape.items)
            case "object":
                return not shape.says("members") or self._object(value, shape)
        return True

    def string(self, value: str, shape: Shape) -> bool:
        """Whether a string does."""
        if shape not in self._automata:
            every = [(tree, True) for tree in trees(shape, self._limits, self._widely)]
            every += [(tree, False) for tree in unmatched(shape, self._limits, self._widely)]
            self._automata[shape] = [(nfa(tree, self._limits), wanted) for tree, wanted in every]
        return counted(value, shape.strings) and all(
            automaton.accepts(value) == wanted for automaton, wanted in self._automata[shape]
        )

    def _array(self, value: list, items: Items) -> bool:
        if not counted(value, items) or not all(self.admits(v, items.item(i)) for i, v in enumerate(value)):
            return False
        if items.unique and len(set(map(identity, value))) < len(value):
            return False
        for wanted in items.wanted:
            fitting = sum(self.admits(v, (wanted.schema,)) for v in value[wanted.first :])
            if fitting < wanted.low or wanted.high is not None and fitting > wanted.high:
                return False
        return True

    def _object(self, value: dict, shape: Shape) -> bool:
        members = shape.members
        return (
            counted(value, members)
            and all(name in value for name in members.required)
            and all(holds(condition, value) for condition in members.present)
            and all(self.admits(v, members.member(k)) for k, v in value.items())
            and all(self.admits(k, (one,)) for one in members.names for k in value)
            and all(any(self.stands(k, v, w) for k, v in value.items()) for w in members.some)
        )

    def stands(self, name: str, value, witness: Witness) -> bool:
        """Whether a member is the one that there must be."""
        fits = witness.may_be(name, self._limits) and (witness.schema is None or self.admits(name, (witness.schema,)))
        return fits and (witness.value is None or self.admits(value, (witness.value,)))


def within(value: Any, numbers: Numbers) -> bool:
    """Whether a number is between bounds, and of the multiples that it must be of."""
    low, high = numbers.low, numbers.high
    above = low is None or value > low[0] or value == low[0] and not low[1]
    below = high is None or value < high[0] or value == high[0] and not high[1]
    of = all(value % multiple == 0 for multiple in numbers.multiples)
    return above and below and of and not any(value % other == 0 for other in numbers.no_multiples)


def counted(value, record: Any) -> bool:
    """Whether there are as many characters, items or members as there may be."""
    return record.low <= len(value) and (record.high is None or len(value) <= record.high)


class Property(NamedTuple):
    """What schemas that hold together say of one property.

    Attributes
    ----------
    schemas : list of Schema
    required, absent : bool
        Whether it must be there, and whether it can't be, as far as is known.
    allowed : set or None
        The values that it may have, by their identity; None where they aren't listed.
    """

    schemas: list[Schema]
    required: bool
    absent: bool
    allowed: set | None


_UNKNOWN = Property([], False, False, None)
_CONDITION = frozenset(("types", "members", "parts", "keywords", "order"))
_OF_ONE = frozenset(("groups", "required", "limits", "closed"))


class Known:
    """What is known of an object that fits some schemas, apart from their joins.

    A row of `if` on one property, such as a `type`, would else have as many combinations as there are subsets of the
    row: most choices are decided by what other schemas say of the property.

    Parameters
    ----------
    before : Known, optional
        Other schemas that hold, too, and don't contradict.
    """

    def __init__(self, parts: list[Schema], document: Document, before: Known | None = None):
        self._document, self._before = document, before
        self._properties: dict[str, Property] = {}
        members = [part.shape.members for part in parts if part.shape.says("members")]
        groups = [group for one in members for group in one.groups]
        self._naming = [group for group in groups if group.named]
        self._closed = [group for group in groups if group.rest is NOTHING]
        required = {name for one in members for name in one.required}
        self.named = {name for group in self._naming for name in group.named}
        self._told = required | self.named
        self.required: set[str] = before.required | required if before is not None else required

    def contradict(self) -> bool:
        """Whether no object fits all of them: a required property has no value left."""
        for name in self.required if self._closed else self._told & self.required:
            found = self.property(name)
            if found.absent or found.allowed == set():
                return True
        return False

    def property(self, name: str) -> Property:
        """What is said of one property."""
        if name not in self._properties:
            found = self._before.property(name) if self._before is not None else _UNKNOWN
            if self._closed or name in self._told:
                inner = [group.named[name] for group in self._naming if name in group.named]
                schemas = [*found.schemas, *(one for one in map(self._resolved, inner) if one is not None)]
                absent = found.absent or any(one is NOTHING for one in schemas)
                found = Property(
                    schemas,
                    name in self.required,
                    absent or any(_excludes(group, name) for group in self._closed),
                    allowed(schemas) if inner else found.allowed,
                )
            self._properties[name] = found
        return self._properties[name]

    def decides(self, schema: Schema) -> bool | None:
        """Whether a condition on one property is sure to hold, or sure not to; None if that isn't known."""
        # It must not be there (its schema is false), or must be there, or must not fit a schema (`not`), and be there.
        shape = schema.shape
        members = shape.members
        if not schema.made or members is None or not shape.says_only(_CONDITION) or not members.says_only(_OF_ONE):
            return None  # only what is made, of a complement or a dependency, can be such a condition
        if shape.types is not EVERY and shape.types != _OBJECT or len(members.groups) > 1:
            return None
        if not members.groups:
            if any(self.property(name).absent for name in members.required):
                return False
            return True if self.required.issuperset(members.required) else None
        named, patterns, rest, unevaluated, _ = members.groups[0]
        if len(named) != 1 or patterns or rest is not None or unevaluated is not None:
            return None
        ((name, value),) = named.items()
        known, optional = self.property(name), not members.required
        if known.absent:
            return optional
        wrong = False if known.required or not optional else None  # if it is there, it breaks the condition
        if value is NOTHING:
            return wrong
        denied = self.denied(value)
        if denied is None:
            return None
        if any(one is denied or say_the_same(one, denied) for one in known.schemas):
            return wrong
        others = denied.shape.allowed
        if known.allowed is None or others is None:
            return None
        if known.allowed.isdisjoint(others):
            return True if known.required or optional else None
        return wrong if known.allowed <= others.keys() and denied.shape.only_lists else None

    def denied(self, schema: Schema) -> Schema | None:
        """What a schema leaves out, if that is all that it says."""
        joins = schema.shape.joins
        if not schema.made or schema.shape.own or len(joins) != 1 or joins[0].how != "not":
            return None
        return self._resolved(joins[0].schemas[0])

    def _resolved(self, schema: Schema) -> Schema | None:
        """What a schema stands for; None if it has an error, which is raised where it is written."""
        if schema.context is None:
            return schema
        try:
            found = self._document.resolved(schema)
            _ = found.shape
        except GrammarError:
            return None
        return found


def allowed(parts: list[Schema]) -> set | None:
    """The values that are in all lists of schemas that hold together, by their identity; None without a list."""
    lists = [one.shape.allowed.keys() for one in parts if one.shape.allowed is not None]
    if not lists:
        return None
    nots = [join.schemas[0].shape for one in parts if one.made for join in one.shape.joins if join.how == "not"]
    return set(lists[0]).intersection(*lists).difference(*(one.allowed or () for one in nots if one.only_lists))


def _excludes(closed: MemberGroup, name: str) -> bool:
    """Whether a group without other members than it says certainly doesn't have one of that name."""
    return name not in closed.named and not any(may_have(name, pattern) for pattern in closed.patterns)


def may_have(text: str, pattern: str) -> bool:
    """Whether a text may have a pattern, by what all texts that have it begin and end with."""
    first, last = literal_ends(pattern)
    # a validator's $ may also stand before a last line break
    return text.startswith(first) and text.endswith((last, f"{last}\n"))


class ValueSet(NamedTuple):
    """Values that are listed, by their identity, and patterns of texts: one of these."""

    listed: frozenset | set
    patterns: tuple[str, ...] = ()

    def differ(self, other: ValueSet) -> bool:
        """Whether it is certain that no value is in both."""
        return (
            self.listed.isdisjoint(other.listed)
            and all(end_differently(a, b) for a in self.patterns for b in other.patterns)
            and not any(_text_may_have(value, pattern) for value in self.listed for pattern in other.patterns)
            and not any(_text_may_have(value, pattern) for value in other.listed for pattern in self.patterns)
        )


def _text_may_have(value, pattern: str) -> bool:
    """Whether a value, by its identity, may be a text that has a pattern."""
    text = value[1] if isinstance(value, tuple) and value[0] is False else None  # `identity` of a text: (False, text)
    return isinstance(text, str) and may_have(text, pattern)


class Approximation:
    """What holds for all values that fit some schemas: an over-approximation, as alternatives are not looked into.

    Attributes
    ----------
    types : frozenset of str
        Their types.
    own : ValueSet or None
        The values, where these are listed or have a pattern.
    known : Known
        What is known of those that are objects.
    required : frozenset of str
        The properties of every value; none where other values than objects fit, too.
    """

    def __init__(self, parts: Iterable[Schema], document: Document):
        self._document = document
        work = [document.resolved(part) for part in parts]
        found: dict[Schema, None] = {}
        types = EVERY
        for part in work:  # which grows meanwhile
            if part in found:
                continue
            found[part] = None
            shape = part.shape
            types = types & shape.types
            if shape.allowed is not None:
                types = types & {type_of(value) for value in shape.allowed.values()}
            for join in shape.joins:
                if join.how == "ref":
                    work.append(document.resolved(document.target(part, join)))
                elif join.how == "all":
                    work += map(document.resolved, join.schemas)
        every = [*found]
        self.types = types
        self.known = Known(every, document)
        values = allowed(every)
        texts = (part.shape.strings.patterns for part in every)
        pattern = next((one[0] for one in texts if one), None) if types == {"string"} else None
        self.own = (
            ValueSet(values) if values is not None else None if pattern is None else ValueSet(frozenset(), (pattern,))
        )
        self.required = frozenset(self.known.required) if types == _OBJECT else frozenset()
        self._inner: dict[str, Approximation] = {}

    def property(self, name: str) -> Approximation:
        """The approximation of the values of a property."""
        if name not in self._inner:
            self._inner[name] = Approximation(self.known.property(name).schemas, self._document)
        return self._inner[name]

    def differs(self, other: Approximation, telling: dict[str, None], depth: int = DEPTH) -> bool:
        """Whether it is certain that no value fits both; `telling`: properties that told others apart, tried first."""
        types = self.types & other.types
        if not types or self.own is not None and other.own is not None and self.own.differ(other.own):
            return True
        if types != _OBJECT or not depth:
            return False
        names = self.known.required | other.known.required
        first = [name for name in telling if name in names]
        every = (*first, *names.difference(first))
        found = next((name for name in every if self.differs_in(name, other, depth)), None)
        if found is not None:
            telling[found] = None
        return found is not None

    def differs_in(self, name: str, other: Approximation, depth: int = DEPTH) -> bool:
        """Whether a property certainly has no value that fits both."""
        if any(one.known.property(name).absent for one in (self, other)):
            return True
        return self.property(name).differs(other.property(name), {}, depth - 1)


class Disjoint:
    """Tells whether it is certain that no value fits two schemas of one document."""

    def __init__(self, of: Resolve, document: Document):
        self._of, self._document = of, document
        self._fits = Fits(of, document.limits, widely=True, rough=True)
        self._found: dict[tuple, bool] = {}
        self._approximations: dict[Schemas, Approximation] = {}

    def __call__(self, one: Iterable[Schema], other: Iterable[Schema], depth: int = DEPTH) -> bool:
        """Whether no value fits both."""
        one, other = tuple(one), tuple(other)
        if not depth or one == other:
            return False
        return all(self._pair(a, b, depth) for a in self._of(one, True) for b in self._of(other, True))

    def approximation(self, parts: Schemas) -> Approximation:
        if parts not in self._approximations:
            self._approximations[parts] = Approximation(parts, self._document)
        return self._approximations[parts]

    def overlaps(self, branches: list[Schemas]) -> list[list[int]]:
        """Return, for each branch, the others that it may share a value with."""
        # The cheapest test comes first: what shapes say outright, of all branches, then of two; then the general test.
        out: list[list[int]] = [[] for _ in branches]
        approximations = [self.approximation(branch) for branch in branches]
        telling: dict[str, None] = {}
        for i, j in _in_common(approximations):
            if approximations[i].differs(approximations[j], telling):
                continue
            if not self(branches[i], branches[j]):
                out[i].append(j)
                out[j].append(i)
        return out

    def tag(self, branches: list[Schemas], overlaps: list[list[int]]) -> str | None:
        """A member that, where it is there, tells most of the branches apart that may share a value, if any."""
        pairs = [(i, j) for i, others in enumerate(overlaps) for j in others if i < j]
        if not _SPLIT <= len(pairs) <= PAIRS:
            return None
        approximations = [self.approximation(branch) for branch in branches]
        listing: dict[str, int] = {}
        for one in approximations:
            for name in one.known.named:
                if one.property(name).own is not None:
                    listing[name] = listing.get(name, 0) + 1
        for name in sorted(listing, key=lambda name: -listing[name])[:_TAGS]:
            told = sum(approximations[i].differs_in(name, approximations[j]) for i, j in pairs)
            if 2 * told >= len(pairs):
                return name
        return None

    def _pair(self, one: Shape, other: Shape, depth: int) -> bool:
        key = one, other, depth
        if key not in self._found:
            self._found[key] = self._differ(one, other, depth)
        return self._found[key]

    def _differ(self, one: Shape, other: Shape, depth: int) -> bool:
        for a, b in ((one, other), (other, one)):
            if a.shortest:
                return not any(self._fits(v, b) and self._fits(v, a) for v in a.shortest.values)
        kinds = {"number" if kind == "integer" else kind for kind in one.types & other.types}
        return all(self._differ_in(kind, one, other, depth) for kind in kinds)

    def _differ_in(self, kind: str, one: Shape, other: Shape, depth: int) -> bool:
        """Whether no value of a type fits both."""
        match kind:
            case "number":
                numbers = one.numbers.meet(other.numbers)
                low, high = numbers.low, numbers.high
                if low is None or high is None:
                    return False
                return high[0] < low[0] or high[0] == low[0] and (high[1] or low[1])
            case "string":
                return not some_in_both(one, other, self._document.limits)
            case "array":
                items, items2 = one.items, other.items
                both = items.meet(items2)
                if both.high is not None and both.high < both.low:
                    return True
                looked = range(min(both.low, _PREFIX))
                return any(self(items.item(i), items2.item(i), depth - 1) for i in looked)
            case "object":
                members, members2 = one.members, other.members
                names = dict.fromkeys([*members.required, *members2.required])
                return any(self(members.member(name), members2.member(name), depth - 1) for name in names)
        return False


def _in_common(every: list[Approximation]) -> Iterable[tuple[int, int]]:
    """The pairs that may share a value, by what all list for themselves, or for a property that all require."""
    pairs: set[tuple[int, int]] | None = None  # None: all
    for name in (None, *frozenset.intersection(*(one.required for one in every))):
        having: dict[Any, list[int]] = {}
        for i, one in enumerate(every):
            values = one.own if name is None else one.property(name).own
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
