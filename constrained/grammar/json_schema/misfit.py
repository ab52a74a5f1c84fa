"""What a schema says of one value: why it doesn't fit, and in which order and spelling the masks write it.

`decide` tells whether a value fits, by the same reading of the schema that the masks are made of. A validator of
JSON Schema would decide otherwise where formats are enforced, where two languages read a pattern differently, where
objects are closed, and where keywords are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from typing import Any, NamedTuple

from constrained.errors import GrammarError
from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.decide import Fits, within
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.numbers import Bound
from constrained.grammar.json_schema.options import Options
from constrained.grammar.json_schema.presence import holds
from constrained.grammar.json_schema.shape import NOTHING, Schema, Schemas, Shape, parsed
from constrained.grammar.json_schema.values import exact, identity, type_of
from constrained.grammar.patterns.finite_automata import nfa
from constrained.grammar.patterns.formats import format_node

_SHOWN = 60
"""Characters of a value that a message shows."""
_NAMED = 8
"""Values, types or names that a message lists."""
_LOOKED_INTO = 64
"""Alternatives of a schema of which it is said why a value doesn't fit."""

_LOCK = RLock()  # what a document's schemas are resolved to is cached, for all threads

Place = tuple[str | int, ...]
"""The keys that lead to a value."""


class Misfit(NamedTuple):
    """Why a value doesn't fit.

    Attributes
    ----------
    place : tuple of str and int
        The keys that lead to the part of it that doesn't.
    keyword : str
        The keyword that rules it out; empty where several do together.
    problem : str
    """

    place: Place
    keyword: str
    problem: str

    def __str__(self) -> str:
        where = shown_place(self.place)
        return f"{where}: {self.problem}" if where else self.problem


class Values:
    """The values of one schema.

    Parameters
    ----------
    schema : dict or bool
    options : Options
    """

    def __init__(self, schema: Any, options: Options):
        document = Document(schema, options)
        self._parts, self._alternatives = (document.root,), Alternatives(document, options)

    def misfit(self, value: Any) -> Misfit | None:
        """Why a JSON value doesn't fit; None if it does.

        Raises
        ------
        RecursionError
            It is nested too deeply.
        GrammarError
            The schema has what is refused, or looking into it costs more than the limits allow.
        """
        with _LOCK:
            return _Judge(self._alternatives).misfit(value, self._parts, ())

    def written(self, value: Any) -> Any:
        """A value that fits, as the masks write it: members in the schema's order, whole numbers as integers.

        Raises as :meth:`misfit`.
        """
        with _LOCK:
            return _Judge(self._alternatives).written(value, self._parts)


class _Judge(Fits):
    """Judges one value. What is known of its parts is kept, as alternatives look at the same part again and again."""

    def __init__(self, alternatives: Alternatives):
        super().__init__(alternatives.of, alternatives.limits)
        self._known: dict[tuple, bool] = {}

    def admits(self, value: Any, parts: Iterable[Schema]) -> bool:
        if not isinstance(value, (dict, list)):
            return super().admits(value, parts)
        key = id(value), *(parts := tuple(parts))
        if key not in self._known:
            self._known[key] = super().admits(value, parts)
        return self._known[key]

    def misfit(self, value: Any, parts: Schemas, place: Place) -> Misfit | None:
        """Why a value at a place doesn't fit some schemas together: by the alternative that it is nearest to."""
        alternatives = self._of(parts)
        if any(self(value, one) for one in alternatives):
            return None
        of_type = [one for one in alternatives if type_of(value) in one.types]
        if not alternatives:
            return Misfit(place, "", "no value may be there")
        if not of_type:
            types = sorted({kind for one in alternatives for kind in one.kinds})
            return Misfit(place, "type", f"{_shown(value)} is not of type {_listed(types, str)}")
        lists = [one.shortest.values for one in of_type if one.shortest is not None]
        if len(lists) == len(of_type) and identity(value) not in {identity(choice) for own in lists for choice in own}:
            return Misfit(place, "enum", _none_of(value, [choice for own in lists for choice in own]))
        # Only one of them is looked into, or looking into all that are nested would take exponential time.
        nearest = of_type[0]
        if len(of_type) > 1:
            nearest = max(of_type[:_LOOKED_INTO], key=lambda one: (not one.listed, self._alike(value, one)))
        return next(self._reasons(value, nearest, place), Misfit(place, "", f"{_shown(value)} is ruled out"))

    def _alike(self, value: Any, shape: Shape) -> int:
        """How many parts of a value fit an alternative, which tells those apart by what names their kind."""
        if isinstance(value, dict):
            return sum(self.admits(inner, shape.members.member(name)) for name, inner in value.items())
        if isinstance(value, list):
            return sum(self.admits(inner, shape.items.item(i)) for i, inner in enumerate(value))
        return 0

    def _reasons(self, value: Any, shape: Shape, place: Place) -> Iterator[Misfit]:
        """Yield what one alternative says against a value of its types."""
        kind = type_of(value)
        if shape.listed or shape.denied:
            own = identity(value)
            if shape.shortest is not None and any(own not in one.identities for one in shape.listed):
                yield Misfit(place, "enum", _none_of(value, shape.shortest.values))
            if own in shape.denied_values:
                yield Misfit(place, "not", f"{_shown(value)} is ruled out")
        if kind == "string":
            yield from self._of_string(value, shape, place)
        elif kind in ("integer", "number"):
            yield from self._of_number(value, shape, place)
        elif kind == "array":
            yield from self._of_array(value, shape, place)
        elif kind == "object":
            yield from self._of_object(value, shape, place)

    def _of_number(self, value: Any, shape: Shape, place: Place) -> Iterator[Misfit]:
        said = shape.numbers
        low, high, of = said.low, said.high, said.multiple
        if within(exact(value), said):
            return
        if low is not None and (value < low[0] or value == low[0] and low[1]):
            yield Misfit(place, *_bound(value, low, "inimum", "below"))
        if high is not None and (value > high[0] or value == high[0] and high[1]):
            yield Misfit(place, *_bound(value, high, "aximum", "above"))
        if of is not None:
            number = float(of) if of.denominator > 1 else int(of)
            yield Misfit(place, "multipleOf", f"{_shown(value)} is no multiple of {number}")

    def _of_string(self, value: str, shape: Shape, place: Place) -> Iterator[Misfit]:
        said, limits = shape.strings, self._limits
        yield from _count(len(value), said, "Length", "character", place)
        for pattern in said.patterns:
            if not nfa(parsed(shape.place("pattern"), "pattern", pattern, limits), limits).accepts(value):
                yield Misfit(place, "pattern", f"{_shown(value)} doesn't match the pattern {_cut(pattern)}")
        for name in said.formats:
            if not nfa(format_node(name), limits).accepts(value):
                yield Misfit(place, "format", f"{_shown(value)} has not the format {name}")

    def _of_array(self, value: list, shape: Shape, place: Place) -> Iterator[Misfit]:
        said = shape.items
        for i, item in enumerate(value):
            if (why := self.misfit(item, said.item(i), (*place, i))) is not None:
                yield why
        yield from _count(len(value), said, "Items", "item", place)
        if said.unique:
            first: dict[Any, int] = {}
            for i, item in enumerate(value):
                if (other := first.setdefault(identity(item), i)) != i:
                    yield Misfit(place, "uniqueItems", f"its items {other} and {i} are equal: {_shown(item)}")
        for wanted in said.wanted:
            fitting = sum(self.admits(item, (wanted.schema,)) for item in value[wanted.first :])
            if fitting < wanted.low or wanted.high is not None and fitting > wanted.high:
                yield Misfit(place, "contains", f"{fitting} of its items are of the kind that `contains` counts")

    def _of_object(self, value: dict, shape: Shape, place: Place) -> Iterator[Misfit]:
        members = shape.members
        for name in dict.fromkeys(members.required):
            if name not in value:
                yield Misfit(place, "required", f"{name!r} is missing")
        for name, inner in value.items():
            parts = members.member(name)
            if NOTHING in parts:
                known = [known for group in members.groups for known in group.named]
                yield Misfit(place, "additionalProperties", f"{name!r} may not be there; {_may_be(known)}")
            elif (why := self.misfit(inner, parts, (*place, name))) is not None:
                yield why
            for one in members.names:
                if (why := self.misfit(name, (one,), place)) is not None:
                    yield Misfit(place, "propertyNames", f"its name {name!r}: {why.problem}")
        yield from _count(len(value), members, "Properties", "member", place)
        if not all(holds(condition, value) for condition in members.present):
            yield Misfit(place, "", "its members can't be there together, or one that another needs is missing")
        if not all(any(self.stands(k, v, w) for k, v in value.items()) for w in members.some):
            yield Misfit(place, "not", "a member is missing that tells it from what is ruled out")

    def written(self, value: Any, parts: Schemas) -> Any:
        """As `Values.written`; what doesn't fit stays as it is, or is ordered as far as it can be."""
        if isinstance(value, (str, bool)) or value is None:
            return value
        alternatives = self._of(parts)
        if len(alternatives) > 1:
            alternatives = [one for one in alternatives if self(value, one)]
        if not alternatives:
            return value
        shape = alternatives[0]
        if shape.shortest is not None:
            own = identity(value)
            return next((choice for choice in shape.shortest.values if identity(choice) == own), value)
        if isinstance(value, list):
            items = shape.items
            wanted = [one for one in items.wanted if one.low]
            asked = [
                [w.schema for w in wanted if i >= w.first and self.admits(v, (w.schema,))] for i, v in enumerate(value)
            ]
            return [self.written(item, (*items.item(i), *asked[i])) for i, item in enumerate(value)]
        if isinstance(value, dict):
            members = shape.members
            ordered = dict.fromkeys([*(name for name in members.named if name in value), *value])
            return {name: self.written(value[name], members.member(name)) for name in ordered}
        return int(value) if isinstance(value, float) and value.is_integer() else value


def _count(count: int, said: Any, what: str, unit: str, place: Place) -> Iterator[Misfit]:
    has = f"has {count:,} {unit}{'' if count == 1 else 's'}"
    if count < said.low:
        yield Misfit(place, f"min{what}", f"{has}; {said.low:,} at least are needed")
    if said.high is not None and count > said.high:
        yield Misfit(place, f"max{what}", f"{has}; {said.high:,} at most may be there")


def _bound(value: Any, bound: Bound, name: str, way: str) -> tuple[str, str]:
    at = int(bound[0]) if bound[0].denominator == 1 else float(bound[0])
    if bound[1]:
        return f"exclusiveM{name}", f"{_shown(value)} is not {'above' if way == 'below' else 'below'} {at}"
    return f"m{name}", f"{_shown(value)} is {way} {at}"


def _none_of(value: Any, values: list[Any]) -> str:
    return f"{_shown(value)} is not {'one of ' if len(values) > 1 else ''}{_listed(values, _shown)}"


def _listed(values: Sequence[Any], show: Any) -> str:
    """Values in words: "a", "a or b", "a, b, c or 4 more"."""
    shown = [show(value) for value in values[:_NAMED]]
    shown += [f"{len(values) - _NAMED:,} more"] if len(values) > _NAMED else []
    return " or ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]])) or "any"


def _may_be(names: list[str]) -> str:
    names = list(dict.fromkeys(names))
    if not names:
        return "nothing may"
    return f"what may be: {', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}"


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"


def shown_place(place: Place) -> str:
    """The keys that lead to a value, as they are written in programs: ``items[0].name``."""
    out = ""
    for key in place:
        if isinstance(key, str) and key.isidentifier():
            out += f".{key}" if out else key
        else:
            out += f"[{json.dumps(key, ensure_ascii=False)}]"
    return out


def missing_property(schema: Any, options: Options) -> GrammarError | None:
    """An error that names the required property that no object may have; None if that isn't what is wrong.

    Parameters
    ----------
    schema : dict or bool
        A schema that no value fits.
    options : Options
    """
    document = Document(schema, options)
    return _missing((document.root,), Alternatives(document, options), set())


def _missing(parts: Schemas, alternatives: Alternatives, seen: set[Schemas]) -> GrammarError | None:
    """Of schemas that hold together, the first such property, in the object itself or in what it must have inside."""
    if parts in seen:
        return None
    seen.add(parts)
    for shape in alternatives.of(parts):
        inside = []
        for name in shape.members.required:
            below = shape.members.member(name)
            if NOTHING in below:
                return _named(shape, name)
            inside.append(below)
        for below in inside:
            if below and (found := _missing(below, alternatives, seen)) is not None:
                return found
    return None


def _named(shape: Shape, name: str) -> GrammarError:
    place = next(part for part in shape.parts if name in part.shape.members.required)
    if any(name in group.named for group in shape.members.groups):
        return place.error("required", f"{name!r} is required, and its schema admits no value", "correct its schema")
    what = f"{name!r} is required, but properties lacks it, and no others may be there"
    return place.error("required", what, f"add {name!r} to properties, or leave it out of required")
