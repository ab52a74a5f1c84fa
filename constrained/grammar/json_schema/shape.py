"""What a schema says of a value, typed and immutable: its types, listed values, numbers, strings, items and members.

A :class:`Schema` is one schema of the document, or one made of others; its :class:`Shape` is read once, when it is
asked for. Shapes of schemas that hold for one value `meet` in one shape. What joins schemas (`$ref`, allOf, anyOf,
oneOf, not, if, dependencies) is a join, which `alternatives` resolves: a shape without joins says all by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.json_schema.numbers import Bound, common_multiple
from constrained.grammar.json_schema.values import EVERY, Listed, escaped, identity, type_of
from constrained.grammar.nodes import Node
from constrained.grammar.patterns.character_automata import automaton_of
from constrained.grammar.patterns.ecma import matches, pattern_node
from constrained.grammar.patterns.finite_automata import nfa
from constrained.limits import Limits

T = TypeVar("T")
Condition = bool | str | tuple
"""A name that is there; ("and", ...), ("or", ...), ("one", ...) of conditions, ("not", condition)."""


class Once(cached_property[T]):
    """A `cached_property` without the lock that it has before Python 3.12: many are asked for."""

    def __get__(self, instance, owner=None) -> T:  # type: ignore[override]
        found = instance.__dict__[self.attrname] = self.func(instance)
        return found


class Schema:
    """A schema, equal only to itself.

    Attributes
    ----------
    pointer : str
        Its JSON pointer (RFC 6901) as a URI fragment, such as ``#/properties/city``; that of the schema that it is made
        of, if it is made.
    depth : int
        In how many schemas it is.
    made : bool
        Whether it is made of others, and so doesn't stand in the document.
    source : object
        What its shape is read from.
    """

    __slots__ = ("_pointer", "_read", "_shape", "above", "context", "depth", "keys", "made", "resolved", "source")

    def __init__(
        self,
        shape: Shape | None = None,
        above: Schema | None = None,
        keys: tuple = (),
        source: Any = None,
        read: Callable[[Schema], Shape] | None = None,
        context: Any = None,
    ):
        self._shape, self._read, self.above, self.keys, self.source = shape, read, above, keys, source
        self.made, self.context, self._pointer = read is None, context, None if above is not None else "#"
        self.depth: int = 0 if above is None else above.depth + ((len(keys) + 1) // 2 if read is not None else 0)
        self.resolved: Schema | None = None  # kept by `Document.resolved`

    @property
    def shape(self) -> Shape:
        """What it says. Raises GrammarError where a keyword's value has the wrong form."""
        if self._shape is None:
            assert self._read is not None
            self._shape = self._read(self)
        return self._shape

    @property
    def pointer(self) -> str:
        if self._pointer is None:
            assert self.above is not None
            self._pointer = "/".join((self.above.pointer, *map(escaped, self.keys)))
        return self._pointer

    def making(self, **said: Any) -> Schema:
        """A schema made of this one, that says this."""
        made = Schema(None, self)
        made._shape = Shape(**said, parts=(made,))
        return made

    def error(self, keyword: str, what: str, hint: str | None = None) -> GrammarError:
        """A GrammarError about one of its keywords."""
        place = f"{self.pointer}/{escaped(keyword)}" if keyword and not self.made else self.pointer
        return GrammarError(f"JSON Schema at {place}: {what}", hint=hint)

    def __repr__(self) -> str:
        return f"<{self.pointer}{' (made)' if self.made else ''}>"


Schemas = tuple[Schema, ...]
"""Schemas that hold for one value."""


class Record:
    """What is said; what isn't has its class's value. Immutable."""

    fields: ClassVar[frozenset[str]] = frozenset()
    _found: ClassVar[frozenset[str]] = frozenset()  # what is found of these, and kept

    def __init__(self, **said: Any):
        self.__dict__.update(said)

    def __init_subclass__(cls):
        cls.fields = frozenset(cls.__annotations__)
        cls._found = frozenset(name for name, value in vars(cls).items() if isinstance(value, Once))

    def __setattr__(self, name: str, value: Any):
        raise AttributeError(f"{type(self).__name__} is immutable")

    @property
    def said(self) -> dict[str, Any]:
        """What is said."""
        return {name: value for name, value in self.__dict__.items() if name in self.fields}

    def says(self, field: str) -> bool:
        """Whether anything is said in that field."""
        return field in self.__dict__

    def says_only(self, fields: frozenset[str]) -> bool:
        """Whether nothing else is said than these."""
        return self.__dict__.keys() <= fields or self.__dict__.keys() - self._found <= fields


class Numbers(Record):
    """Numbers: between bounds, multiples of some numbers and of none of others."""

    low: Bound | None = None
    high: Bound | None = None
    multiples: tuple[Fraction, ...] = ()
    no_multiples: tuple[Fraction, ...] = ()

    @property
    def multiple(self) -> Fraction | None:
        """The number that all must be multiples of; None where any number will do."""
        return common_multiple([*self.multiples]) if self.multiples else None

    def meet(self, other: Numbers) -> Numbers:
        said = {**self.said, **other.said}
        for name in ("multiples", "no_multiples"):
            if name in said:
                said[name] = getattr(self, name) + getattr(other, name)
        if self.low is not None and other.low is not None:
            said["low"] = max(self.low, other.low)  # of equal bounds, the one that is left out itself
        if self.high is not None and other.high is not None:
            said["high"] = min(self.high, other.high, key=lambda bound: (bound[0], not bound[1]))
        return Numbers(**said)


class Strings(Record):
    """Strings: how many characters they have, which patterns and formats, and which they don't have."""

    low: int = 0
    high: int | None = None
    patterns: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    no_formats: tuple[str, ...] = ()

    def meet(self, other: Strings) -> Strings:
        return Strings(**_counted_together(self, other))


class Row(NamedTuple):
    """What one schema says of items by their index: those that come first, and all others (None: nothing).

    `all_evaluated`: for unevaluatedItems, `rest` or `contains` has looked at all items that don't come first.
    """

    first: tuple[Schema, ...] = ()
    rest: Schema | None = None
    by_contains: bool = False
    unevaluated: Schema | None = None

    def at(self, index: int) -> Schema | None:
        return self.first[index] if index < len(self.first) else self.rest


class Wanted(NamedTuple):
    """Of the items from `first` on, `low` to `high` fit a schema (`contains`)."""

    schema: Schema
    first: int
    low: int
    high: int | None


class Unevaluated(NamedTuple):
    """The rows, or groups, that an unevaluated… of a schema depends on, and the schema of what these leave."""

    owner: Schema
    schema: Schema
    seen: tuple


class Items(Record):
    """The items of an array: how many, what each fits, what some fit (`wanted`), whether all differ."""

    low: int = 0
    high: int | None = None
    rows: tuple[Row, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    unique: bool = False
    unevaluated: tuple[Unevaluated, ...] = ()

    def meet(self, other: Items) -> Items:
        return Items(**_counted_together(self, other))

    @Once
    def first(self) -> int:
        """How many items have a schema of their own."""
        return max((len(row.first) for row in self.rows), default=0)

    def item(self, index: int) -> Schemas:
        """What holds for the item at that index."""
        found = [schema for row in self.rows if (schema := row.at(index)) is not None]
        for one in self.unevaluated:
            told = any(
                row.at(index) is not None or row.unevaluated is not None and row.unevaluated is not one.schema
                for row in one.seen
            )
            found += [] if told else [one.schema]
        return each_once(found)


class MemberGroup(NamedTuple):
    """What one schema says of members: of those it names, of those of a pattern, and of all others (None: nothing)."""

    named: dict[str, Schema] = {}  # noqa: RUF012  # never written to
    patterns: dict[str, Schema] = {}  # noqa: RUF012
    rest: Schema | None = None
    unevaluated: Schema | None = None
    place: Schema | None = None


class Witness(NamedTuple):
    """There is a member whose value fits `value` (None: any), and whose name `fits` a kind.

    `kind`: "pattern": the name matches `pattern`. "other": it is none that `group` lists or matches. "name": it fits
    `schema`.
    """

    kind: str
    group: MemberGroup
    pattern: str
    schema: Schema | None
    value: Schema | None

    def names(self, limits: Limits) -> tuple[list[Node], list[Node]]:
        """The trees that its name fits, and those that it doesn't; of kind "name", none."""
        if self.kind == "pattern":
            return [pattern_node(self.pattern, limits)], []
        if self.kind == "other":
            listed = [nodes.choices(name.encode() for name in self.group.named)]
            patterns = [pattern_node(p, limits, True) for p in self.group.patterns]
            return [], [tree for tree in listed + patterns if tree is not nodes.NEVER]
        return [], []

    def may_be(self, name: str, limits: Limits) -> bool:
        """Whether a property of that name can be it, by those trees."""
        if self.kind == "pattern":
            return nfa(pattern_node(self.pattern, limits), limits).accepts(name)
        if self.kind == "other":
            patterns = (nfa(pattern_node(p, limits, True), limits) for p in self.group.patterns)
            return name not in self.group.named and not any(one.accepts(name) for one in patterns)
        return True


class Members(Record):
    """The members of an object: how many, what each fits, and which there must be.

    Attributes
    ----------
    groups : tuple of MemberGroup
    required : tuple of str
    present : tuple of Condition
        Conditions on which names there are.
    names : tuple of Schema
        What every name fits (`propertyNames`).
    some : tuple of Witness
        Members that there must be besides the required ones.
    closed : bool
        Whether objects have no other members than are named, where nothing is said of others.
    limits : Limits
    """

    low: int = 0
    high: int | None = None
    groups: tuple[MemberGroup, ...] = ()
    required: tuple[str, ...] = ()
    present: tuple[Condition, ...] = ()
    names: Schemas = ()
    some: tuple[Witness, ...] = ()
    unevaluated: tuple[Unevaluated, ...] = ()
    closed: bool = False
    limits: Limits

    def meet(self, other: Members) -> Members:
        return Members(**_counted_together(self, other))

    @Once
    def named(self) -> tuple[str, ...]:
        """The members that are named, in the schema's order."""
        named = [name for group in self.groups for name in group.named]
        return tuple(dict.fromkeys([*named, *self.required, *(n for one in self.present for n in names_in(one))]))

    @Once
    def patterns(self) -> tuple[str, ...]:
        """The patterns that say something of a member."""
        found: dict[str, None] = {}
        for group in self.groups:
            free = (group.rest is None or group.rest.shape.says_nothing) and not self.unevaluated
            for pattern, schema in group.patterns.items():
                parsed(group.place or ANYTHING, "patternProperties", pattern, self.limits)  # errors come with its place
                if not (free and schema.shape.says_nothing):
                    found[pattern] = None
        return tuple(found)

    @Once
    def trees(self) -> dict[str, tuple[Node, Node]]:
        """Of these patterns, the names that match in both languages, and in either."""
        return {p: (pattern_node(p, self.limits), pattern_node(p, self.limits, True)) for p in self.patterns}

    @Once
    def has_small_patterns(self) -> bool:
        """Whether it is certain that to tell names apart by their patterns passes no limit."""
        # What names have in common with some patterns, and not with others, is a product of these patterns' automata;
        # a name that is listed adds no more states than it has characters.
        if not self.patterns:
            return True
        trees, limits = self.trees, self.limits
        states, classes = 1, 0
        try:
            for pair in trees.values():
                automata = [automaton_of((tree,), (), limits) for tree in pair]
                states *= 1 + max(len(one.ends) for one in automata)
                classes += max(one.after.shape[1] for one in automata)
                if states * classes > limits.pattern_steps:
                    return False
        except LimitError:
            return False
        letters = "".join(self.named)
        return (states + len(letters)) * (classes + len(set(letters)) + 1) <= limits.pattern_steps

    def member(self, name: str) -> Schemas:
        """What holds for the member of that name."""
        if not self.patterns:
            return self.matching(name, frozenset())
        matched = {pattern: matches(pattern, name, self.limits) for pattern in self.patterns}
        both = frozenset(pattern for pattern, (in_both, _) in matched.items() if in_both)
        either = frozenset(pattern for pattern, (_, in_either) in matched.items() if in_either)
        found = self.matching(name, both)
        return found if either == both else each_once([*found, *self.matching(name, either)])

    def matching(self, name: str | None, matched: frozenset[str]) -> Schemas:
        """What holds for a member whose name matches those patterns; None: its name is none of those named."""
        out: list[Schema] = []
        for named, patterns, rest, _, _ in self.groups:
            own = [named[name]] if name in named else []
            if matched and patterns:
                own += [schema for pattern, schema in patterns.items() if pattern in matched]
            if own:
                out += own
            elif rest is not None:
                out.append(rest)
        if self.closed and self._lists_only and not any(name in group.named for group in self.groups):
            out.append(NOTHING)
        for one in self.unevaluated:
            told = any(
                name is not None and name in group.named
                or any(pattern in matched for pattern in group.patterns)
                or group.rest is not None
                or group.unevaluated is not None and group.unevaluated is not one.schema
                for group in one.seen
            )  # fmt: skip
            out += [] if told else [one.schema]
        return each_once(out)

    @Once
    def _lists_only(self) -> bool:
        others = (group.rest is not None or group.patterns for group in self.groups)
        return not any(others) and not self.unevaluated


class Join(NamedTuple):
    """What joins schemas for the same value.

    `how`: "ref" (of a `$ref`, whose text is `to`), "all", "any", "one", "not", "if" (test, then, else, ANYTHING in
    place of one that isn't there), "depends" (an object that has the member `to` has `names`, and fits the schema).
    `at`: where it stands among the schema's keywords.
    """

    how: str
    at: int
    schemas: Schemas = ()
    keyword: str = ""
    to: str = ""
    names: tuple[str, ...] = ()


class Shape(Record):
    """What schemas that hold together say of a value.

    Attributes
    ----------
    types : frozenset of str
        The types admitted, among :data:`TYPES`.
    listed : tuple of Listed
        Lists of values: the value is in each.
    denied : tuple
        Values left out.
    numbers, strings, items, members
        What is said of values of these types.
    joins : tuple of Join
    keywords : frozenset of str
        The keywords that were read.
    parts : tuple of Schema
        The schemas that met here.
    order : int
        Where, in the schema, what names members stands.
    """

    types: frozenset[str] = EVERY
    listed: tuple[Listed, ...] = ()
    denied: tuple = ()
    numbers: Numbers = Numbers()
    strings: Strings = Strings()
    items: Items = Items()
    members: Members = Members()
    joins: tuple[Join, ...] = ()
    keywords: frozenset[str] = frozenset()
    parts: Schemas = ()
    order: int = 0

    @Once
    def kinds(self) -> frozenset[str]:
        """The types admitted; "integer" only where "number" is not."""
        return self.types - _WHOLE if "number" in self.types else self.types

    @Once
    def says_nothing(self) -> bool:
        """Whether it is certain that every value fits."""
        if not self.says("members"):
            return self.says_only(_DESCRIBING)
        free = (group.rest is ANYTHING and not group.named and not group.patterns for group in self.members.groups)
        return self.says_only(_DESCRIBING | {"members"}) and self.members.says_only(_GROUPS) and all(free)

    @Once
    def own(self) -> bool:
        """Whether it says something of the value itself, besides its joins."""
        return not self.says_only(_JOINING)

    @Once
    def only_lists(self) -> bool:
        """Whether nothing is said but which types and values there are."""
        return self.says_only(_LISTING)

    @Once
    def shortest(self) -> Listed | None:
        """The shortest list of values."""
        return min(self.listed, key=lambda one: len(one.values)) if self.listed else None

    @Once
    def allowed(self) -> dict[Any, Any] | None:
        """The values that are in all lists, and of the types admitted, by their identity; None without a list."""
        if self.shortest is None:
            return None
        values = {identity(value): value for value in self.shortest.values if type_of(value) in self.types}
        for other in self.listed if len(self.listed) > 1 else ():
            values = {key: value for key, value in values.items() if key in other.identities}
        return values

    @Once
    def denied_values(self) -> frozenset:
        """The identity of the values left out."""
        return frozenset(map(identity, self.denied))

    def place(self, keyword: str) -> Schema:
        """The last schema that has a keyword, for messages."""
        parts = self.parts or (ANYTHING,)
        return next((part for part in reversed(parts) if keyword in part.shape.keywords), parts[0])

    def of_types(self, types: frozenset[str]) -> Shape:
        """The same, of these types alone."""
        return Shape(**{**self.said, "types": self.types & types})


_WHOLE = frozenset(("integer",))
_DESCRIBING = frozenset(("keywords", "parts", "order"))
_JOINING = _DESCRIBING | {"joins"}
_LISTING = _DESCRIBING | {"types", "listed", "denied"}
_GROUPS = frozenset(("groups", "limits", "closed"))

ANYTHING = Schema(Shape())
"""What every value fits."""
NOTHING = Schema(Shape(types=frozenset()))
"""What no value fits."""


_MET = frozenset(("low", "high"))
"""What only one of two schemas may say, unless it is said which counts."""


def _together(one: Record, other: Record) -> dict[str, Any]:
    """What both say: tuples one after the other, and flags if one says so; what else both say, `meet` has to say."""
    said = one.said
    for name, value in other.said.items():
        if name in said and isinstance(value, tuple):
            value = said[name] + value
        assert name not in said or isinstance(value, tuple | bool | Limits) or name in _MET, f"how do two {name} meet?"
        said[name] = value
    return said


def _counted_together(one: Any, other: Any) -> dict[str, Any]:
    """The same, with the tighter bounds on a count."""
    said = _together(one, other)
    if one.low or other.low:
        said["low"] = max(one.low, other.low)
    if one.high is not None and other.high is not None:
        said["high"] = min(one.high, other.high)
    return said


def each_once(parts: Iterable[Schema]) -> Schemas:
    """Schemas for one value without those that say nothing, or the same as another of them."""
    parts = list(parts)
    if len(parts) < 2:
        return tuple(parts)
    out: dict[Schema, None] = {}
    for part in parts:
        if part is ANYTHING or part in out or not part.made and any(say_the_same(part, one) for one in out):
            continue
        out[part] = None
    return tuple(out)


def say_the_same(one: Schema, other: Schema) -> bool:
    """Whether schemas of the document are written alike, apart from what describes."""
    if one.made or other.made or one.context is not other.context or one.context is None:
        return one is other
    return one.context.document.first(one) is one.context.document.first(other)


def names_in(condition: Condition) -> list[str]:
    """The names that a condition is about."""
    found: dict[str, None] = {}
    work = [condition]
    while work:
        one = work.pop()
        if isinstance(one, str):
            found[one] = None
        elif isinstance(one, tuple):
            work += one[:0:-1]  # in the order in which they are written
    return list(found)


def parsed(part: Schema, keyword: str, pattern: str, limits: Limits, either: bool = False) -> Node:
    """The texts in which a pattern is found; an error in it is raised with its place."""
    try:
        return pattern_node(pattern, limits, either)
    except LimitError:
        raise
    except GrammarError as fault:
        if keyword == "patternProperties":
            place = f"{part.pointer}/{keyword}/{escaped(pattern)}"
            raise GrammarError(f"JSON Schema at {place}: {fault.problem}", hint=fault.hint) from None
        raise part.error(keyword, fault.problem, fault.hint) from None
