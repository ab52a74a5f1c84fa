"""Schemas that hold together, read as one: their types and bounds, and what holds for the parts of a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.json_schema.character_automata import Texts, automaton_of
from constrained.grammar.json_schema.document import NOTING, Subschema, error
from constrained.grammar.json_schema.finite_automata import Nfa, nfa
from constrained.grammar.json_schema.keywords import (
    DENIED,
    EVERY,
    NO_MULTIPLE,
    PRESENT,
    SOME_ITEM,
    SOME_PROPERTY,
    Options,
    is_known,
    says_nothing,
    types_of,
)
from constrained.grammar.json_schema.numbers import Bound, common_multiple
from constrained.grammar.json_schema.patterns import is_simple, literal_ends, pattern_node
from constrained.grammar.json_schema.presence import Condition, names_in
from constrained.grammar.nodes import Node
from constrained.limits import Limits

Conjunction = tuple[Subschema, ...]
"""Schemas that hold for the same value, with nothing in them still to be resolved."""


def key_of(conjunction: Conjunction) -> tuple[str, ...]:
    """The pointers of a conjunction's schemas, which identify it."""
    return tuple([part.pointer for part in conjunction])


_MULTIPLIED = 8
"""Patterns of names whose automata are multiplied to tell whether they are small together."""

T = TypeVar("T")


class Once(cached_property[T]):
    """A `cached_property` without the lock that it has before Python 3.12: many are asked for."""

    def __get__(self, instance, owner=None) -> T:  # type: ignore[override]
        found = instance.__dict__[self.attrname] = self.func(instance)
        return found


NEITHER = Subschema(False, "#/false")
_ABOUT_PROPERTIES = frozenset(("properties", "patternProperties", "additionalProperties"))
_LISTING = frozenset(("type", "enum", "const", DENIED))
_REACHED = 10**9
"""A greater bound on a length or a count, such as 2,147,483,647, counts as none: no text comes to it."""


class Wanted(NamedTuple):
    """Of the items from `first` on, `low` to `high` fit a schema."""

    schema: Subschema
    first: int
    low: int
    high: int | None


class Witness(NamedTuple):
    """There is a property: see `keywords.SOME_PROPERTY`."""

    kind: str
    schema: Subschema
    pattern: str | None
    value: Subschema | None

    def names(self, limits: Limits) -> tuple[list[Node], list[Node]]:
        """The trees that its name fits, and those that it doesn't; of kind "name", none."""
        if self.kind == "pattern":
            return [self._tree(self.pattern or "", limits, False)], []
        if self.kind == "other":
            listed = [nodes.choices(name.encode() for name in self.schema["properties"] or ())]
            patterns = [self._tree(p, limits, True) for p in self.schema["patternProperties"] or ()]
            return [], [tree for tree in listed + patterns if tree is not nodes.NEVER]
        return [], []

    def may_be(self, name: str, limits: Limits) -> bool:
        """Whether a property of that name can be it, by those trees."""
        if self.kind == "pattern":
            return nfa(self._tree(self.pattern or "", limits, False), limits).accepts(name)
        if self.kind == "other":
            patterns = self.schema["patternProperties"] or ()
            listed = name in (self.schema["properties"] or ())
            return not listed and not any(nfa(self._tree(p, limits, True), limits).accepts(name) for p in patterns)
        return True

    def _tree(self, pattern: str, limits: Limits, either: bool) -> Node:
        return pattern_of(self.schema, "patternProperties", pattern, limits, either)


@dataclass(eq=False)
class Constraints:
    """What one alternative of a schema says.

    Attributes
    ----------
    parts : tuple of Subschema
    options : Options
    """

    parts: tuple[Subschema, ...]
    options: Options

    @property
    def limits(self) -> Limits:
        return self.options.limits

    def all(self, keyword) -> list[tuple[Subschema, Any]]:
        """(schema, value) wherever the keyword stands."""
        if keyword not in self.said:  # most
            return []
        return [(part, part.keywords[keyword]) for part in self.parts if keyword in part.keywords]

    @Once
    def said(self) -> frozenset:
        """All keywords."""
        return frozenset().union(*[part.keywords for part in self.parts])

    @Once
    def types(self) -> frozenset[str]:
        """The types admitted; "integer" only where "number" is not."""
        found = EVERY.intersection(*map(types_of, self.parts))
        return found - {"integer"} if "number" in found else found

    @Once
    def listed(self) -> tuple[Subschema, list] | None:
        """The shortest list of values by enum or const, and where it stands."""
        found = [*self.all("enum"), *((part, [value]) for part, value in self.all("const"))]
        return min(found, key=lambda one: len(one[1])) if found else None

    @Once
    def only_lists(self) -> bool:
        """Whether nothing is said but which types and values there are."""
        formats = any(self.options.enforces(name) for _, name in self.all("format"))
        return not formats and all(keyword in _LISTING or not is_known(keyword) for keyword in self.said)

    @property
    def denied(self) -> list:
        """Values left out."""
        return [value for _, values in self.all(DENIED) for value in values]

    @Once
    def listed_values(self) -> list[set]:
        """The values of each enum and const, by their identity."""
        lists = [values for _, values in self.all("enum")] + [[value] for _, value in self.all("const")]
        return [set(map(identity, values)) for values in lists]

    @Once
    def denied_values(self) -> set:
        return set(map(identity, self.denied))

    # numbers

    def bound(self, side: int) -> Bound | None:
        """The tightest bound below (side -1) or above (1)."""
        name = "imum"
        plain, strict = (f"min{name}", f"exclusiveMin{name}") if side < 0 else (f"max{name}", f"exclusiveMax{name}")
        found = [(exact(v), False) for _, v in self.all(plain)] + [(exact(v), True) for _, v in self.all(strict)]
        return min(found, key=lambda b: (side * b[0], not b[1])) if found else None

    def intervals(self) -> list[tuple[Bound | None, Bound | None]]:
        """Lower and upper bounds between the numbers that are left out."""
        cuts = sorted({exact(v) for v in self.denied if isinstance(v, (int, float)) and not isinstance(v, bool)})
        low, high = self.bound(-1), self.bound(1)
        inside = [c for c in cuts if (low is None or c >= low[0]) and (high is None or c <= high[0])]
        edges = [low, *((cut, True) for cut in inside), high]
        return list(pairwise(edges))

    def multiple(self) -> Fraction | None:
        """The number that all must be multiples of; None where any number will do."""
        found = [exact(value) for _, value in self.all("multipleOf")]
        return common_multiple(found) if found else None

    def no_multiples(self) -> list[Fraction]:
        """The numbers that none may be a multiple of."""
        return [exact(value) for _, value in self.all(NO_MULTIPLE)]

    # lengths

    def counts(self, what: str) -> tuple[int, int | None]:
        """The tightest min and max of "Length", "Items" or "Properties"."""
        least, most = f"min{what}", f"max{what}"
        low, high = 0, None
        if least not in self.said and most not in self.said:  # most
            return low, high
        for part in self.parts:
            low = max(low, int(part.keywords.get(least, 0)))
            own = part.keywords.get(most)
            if own is not None and own <= _REACHED and (high is None or own < high):
                high = int(own)
        return low, high

    # arrays

    def prefix(self) -> int:
        """How many items have a schema of their own."""
        return max((len(_tuple(part)) for part in self.parts), default=0)

    def item(self, at: int) -> list[Subschema]:
        """What holds for the item at that index."""
        out = []
        for part in self.parts:
            said = part.keywords
            items = said.get("items")
            if at < len(_tuple(part)):
                out.append(part.below("prefixItems" if "prefixItems" in said else "items", at))
            elif isinstance(items, (dict, bool)):
                out.append(part.below("items"))
            elif isinstance(items, list) and "additionalItems" in said:
                out.append(part.below("additionalItems"))
            if "unevaluatedItems" in said:
                out += self._unevaluated_item(part, at)
        return out

    def wanted(self) -> list[Wanted]:
        """The schemas that some items must fit, and how many."""
        out = []
        for part, _ in self.all("contains"):
            low, high = int(part.keywords.get("minContains", 1)), part["maxContains"]
            if low or high is not None:
                out.append(Wanted(part.below("contains"), 0, low, None if high is None else int(high)))
        return out + [Wanted(inner, first, 1, None) for _, (first, inner) in self.all(SOME_ITEM)]

    def _unevaluated_item(self, part: Subschema, at: int) -> list[Subschema]:
        seen = self._seen(part)
        if any("contains" in p and p.draft != 2019 for p in seen):
            what, hint = "unevaluatedItems is not supported beside contains", "say with items what there may be"
            self.options.refuse(part, "unevaluatedItems", what, hint)
            return []
        told = any(
            at < len(_tuple(p)) or isinstance(p["items"], (dict, bool))
            or "additionalItems" in p and isinstance(p["items"], list)
            or p is not part and "unevaluatedItems" in p
            for p in seen
        )  # fmt: skip
        return [] if told else [part.below("unevaluatedItems")]

    def _seen(self, part: Subschema) -> list[Subschema]:
        """The schemas whose evaluated properties or items count for an unevaluated… in `part`."""
        return [
            p for p in self.parts
            if p is part
            or part.pointer in p.within and "\0" not in p.pointer and not any("\0" in w for w in p.within - part.within)
        ]  # fmt: skip

    # objects

    @Once
    def names(self) -> list[str]:
        """The properties that are named, in the schema's order."""
        named = [name for _, properties in self.all("properties") for name in properties]
        return list(dict.fromkeys([*named, *self.required, *(n for one in self.present for n in names_in(one))]))

    @property
    def present(self) -> list[Condition]:
        """Conditions on which names there are."""
        return [condition for _, condition in self.all(PRESENT)]

    @Once
    def required(self) -> list[str]:
        return list(dict.fromkeys(name for _, names in self.all("required") for name in names))

    def witnesses(self) -> list[Witness]:
        """The properties that there must be besides the required ones."""
        return [Witness(*value) for _, value in self.all(SOME_PROPERTY)]

    @Once
    def key_patterns(self) -> list[str]:
        """The patterns that say something of a property."""
        found = {}
        for part, patterns in self.all("patternProperties"):
            free = says_nothing(part.keywords.get("additionalProperties", True)) and not self.all(
                "unevaluatedProperties"
            )
            for pattern, schema in patterns.items():
                if not is_simple(pattern, self.limits):
                    self._key_trees(part, pattern)
                if not (free and says_nothing(schema)):
                    found[pattern] = part
        return list(found)

    @Once
    def key_trees(self) -> dict[str, tuple[Node, Node]]:
        """Of these patterns, the names that match in both languages, and in either."""
        return {pattern: self._key_trees(self.parts[0], pattern) for pattern in self.key_patterns}

    def _key_trees(self, part: Subschema, pattern: str) -> tuple[Node, Node]:
        place = Subschema({}, f"{part.pointer}/patternProperties")
        both, either = (pattern_of(place, pattern, pattern, self.limits, either) for either in (False, True))
        return both, either

    def has_small_patterns(self) -> bool:
        """Whether it is plain that to tell names apart by their patterns passes no limit."""
        # What names have in common with some patterns, and not with others, is a product of these patterns' automata;
        # a name that is listed adds no more states than it has characters.
        trees, limits = self.key_trees, self.limits
        states, classes = 1, 0
        try:
            for pair in trees.values():
                automata = [automaton_of(tree, limits) for tree in pair]
                states *= 1 + max(len(one.ends) for one in automata)
                classes += max(one.after.shape[1] for one in automata)
            if (
                states * classes > limits.pattern_steps and len(trees) <= _MULTIPLIED
            ):  # where they begin differently, few
                every = [(None, []), *((pattern, [both]) for pattern, (both, _) in trees.items())]
                others = [[either for p, (_, either) in trees.items() if p != pattern] for pattern, _ in every]
                made = [Texts(own, rest, 0, None, limits).automaton for (_, own), rest in zip(every, others)]
                states = max(len(one.ends) for one in made)
        except LimitError:
            return False
        letters = "".join(self.names) if trees else ""
        return (states + len(letters)) * (classes + len(set(letters)) + 1) <= limits.pattern_steps

    def property(self, name: str) -> list[Subschema]:
        """What holds for the property of that name."""
        if not self.key_patterns:
            return self.key(name, frozenset())
        matched = {pattern: self.matches(pattern, name) for pattern in self.key_patterns}
        both = frozenset(pattern for pattern, (in_both, _) in matched.items() if in_both)
        either = frozenset(pattern for pattern, (_, in_either) in matched.items() if in_either)
        return self.key(name, both) if either == both else _each_once(self.key(name, both) + self.key(name, either))

    def matches(self, pattern: str, name: str) -> tuple[bool, bool]:
        """Whether a name has a pattern in both languages, and in either."""
        return _matches(pattern, name, self.limits)

    def key(self, name: str | None, matched: frozenset[str]) -> list[Subschema]:
        """What holds for a property whose name matches those patterns; None: its name is not among `names`."""
        out: list[Subschema] = []
        for part, named, patterns, others in self._about_properties:
            own = [part.below("properties", name)] if name in named else []
            if matched and patterns:
                own += [part.below("patternProperties", p) for p in patterns if p in matched]
            if own:
                out += own
            elif others:
                out.append(part.below("additionalProperties"))
        if self.options.closed and self._lists_only() and not any(name in own for _, own in self.all("properties")):
            out.append(NEITHER)
        if self._unevaluating:
            out += self._unevaluated(name, matched)
        return _each_once(out)

    @Once
    def _about_properties(self) -> list[tuple[Subschema, dict, dict, bool]]:
        """The schemas that say something of properties: those that each names, its patterns, whether it has a rest."""
        return [
            (
                part,
                part.keywords.get("properties", {}),
                part.keywords.get("patternProperties", {}),
                "additionalProperties" in part.keywords,
            )
            for part in self.parts
            if not _ABOUT_PROPERTIES.isdisjoint(part.keywords)
        ]

    @Once
    def _unevaluating(self) -> list[Subschema]:
        return [part for part in self.parts if "unevaluatedProperties" in part.keywords]

    def _lists_only(self) -> bool:
        others = ("additionalProperties", "patternProperties", "unevaluatedProperties")
        return bool(self.all("properties")) and not any(self.all(keyword) for keyword in others)

    def _unevaluated(self, name: str | None, matched: frozenset[str]) -> list[Subschema]:
        """What unevaluatedProperties says, where no schema it depends on has said anything."""
        out = []
        for part in self._unevaluating:
            evaluated = any(
                name is not None and name in (p["properties"] or ())
                or any(pattern in matched for pattern in p["patternProperties"] or ())
                or "additionalProperties" in p
                or p is not part and "unevaluatedProperties" in p
                for p in self._seen(part)
            )  # fmt: skip
            if not evaluated:
                out.append(part.below("unevaluatedProperties"))
        return out


class ValueWriter(Protocol):
    """What writes the values inside an array or object: `writer.Writer`."""

    options: Options
    limits: Limits
    settled: bool

    def later(self, name: str, write: Callable[[], Node]) -> Node: ...
    def wait(self, name: str, write: Callable[[], Node], hidden: bool = ...) -> Node: ...
    def node(self, parts: list[Subschema]) -> Node: ...
    def spellings(self, value: Any) -> set[bytes]: ...
    def values(self, parts: list[Subschema]) -> list[Any] | None: ...
    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]: ...
    @property
    def admits(self) -> Callable[[Any, list[Subschema]], bool]: ...
    @property
    def fits(self) -> Callable[[Any, Constraints], bool]: ...


def _each_once(parts: list[Subschema]) -> list[Subschema]:
    """Schemas for one value without those that say nothing, or the same as another of them."""
    if len(parts) < 2:
        return parts
    out: list[Subschema] = []
    told: dict[tuple, list[Subschema]] = {}  # by the keywords of what is written in the document
    for part in {part.pointer: part for part in parts}.values():
        if "\0" not in part.pointer and isinstance(part.schema, dict):
            said = tuple([keyword for keyword in part.keywords if keyword not in NOTING])
            alike = told.setdefault(said, [])
            if not said or any(_say_the_same(part, one) for one in alike):
                continue
            alike.append(part)
        out.append(part)
    return out


def _say_the_same(one: Subschema, other: Subschema) -> bool:
    """Whether schemas with the same keywords say the same."""
    return (one.base, one.draft) == (other.base, other.draft) and one.said == other.said


@lru_cache(maxsize=4096)
def _matches(pattern: str, name: str, limits: Limits) -> tuple[bool, bool]:
    first, last = literal_ends(pattern)
    if not (name.startswith(first) and name.endswith((last, f"{last}\n"))):
        return False, False
    if _automaton(pattern, limits).accepts(name):
        return True, True
    return False, _automaton(pattern, limits, True).accepts(name)


@lru_cache(maxsize=512)
def _automaton(pattern: str, limits: Limits, either: bool = False) -> Nfa:
    """What accepts the texts that have a pattern in both languages, or in either."""
    return nfa(pattern_node(pattern, limits, either), limits)


def pattern_of(part: Subschema, keyword: str, pattern: str, limits: Limits, either: bool = False) -> Node:
    """The texts in which a pattern is found; an error in it is raised with its pointer."""
    try:
        return pattern_node(pattern, limits, either)
    except LimitError:
        raise
    except GrammarError as fault:
        raise error(part, keyword, fault.problem, fault.hint) from None


def exact(value: int | float) -> Fraction:
    """The number exactly as it is written."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def identity(value):
    """A key that is equal for equal JSON values: 1 is 1.0 but not true."""
    if isinstance(value, str):  # most
        return (False, value)
    if isinstance(value, list):
        return ("array", *map(identity, value))
    if isinstance(value, dict):
        return frozenset((k, identity(v)) for k, v in value.items())
    return (isinstance(value, bool), value)


def _tuple(part: Subschema) -> list:
    said = part.keywords
    found = said.get("prefixItems", said.get("items"))
    return found if isinstance(found, list) else []
