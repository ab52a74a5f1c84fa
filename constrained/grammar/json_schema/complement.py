"""What a schema leaves out: its complement as alternatives, field by field of its shape (De Morgan's laws).

A value is not valid under a schema if it breaks something that the schema says. What breaks it is a schema again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.shape import (
    ANYTHING,
    NOTHING,
    Items,
    Join,
    MemberGroup,
    Members,
    Numbers,
    Row,
    Schema,
    Schemas,
    Strings,
    Wanted,
    Witness,
)
from constrained.grammar.json_schema.values import EVERY, Listed

_OBJECT, _ARRAY, _STRING = (frozenset((kind,)) for kind in ("object", "array", "string"))
_NUMBER = frozenset(("number", "integer"))
_READ = {
    "numbers": frozenset(("low", "high", "multiples", "no_multiples")),
    "strings": frozenset(("low", "high", "patterns", "formats")),
    "items": frozenset(("low", "high", "rows", "wanted")),
    "members": frozenset(("low", "high", "groups", "required", "names", "limits", "closed")),
}
"""What can be broken, of what is said of each type; anything else is refused."""


class Complement:
    """The complements of schemas; `negated` makes the schema of what doesn't fit another one."""

    def __init__(self, document: Document, negated: Callable[[Schema], Schema]):
        self._document, self._negated = document, negated
        self._options, self._limits = document.options, document.limits
        self._found: dict[Schema, list[Schemas]] = {}

    def __call__(self, schema: Schema) -> list[Schemas]:
        """The alternatives of not fitting a schema, each made once."""
        if schema not in self._found:
            self._found[schema] = self._with_tag(schema, list(self._broken(schema)))
        return self._found[schema]

    def _broken(self, schema: Schema) -> Iterator[Schemas]:
        # A value breaks what is said of a type if it is of that type, and fits one of the alternatives.
        shape = schema.shape
        if shape.allowed is not None and shape.only_lists and not shape.denied:  # one alternative, of whatever type
            yield self._other_values(schema, shape.allowed.values())
            return
        if shape.types is not EVERY:
            yield from self._other_types(schema)
        if shape.denied:
            yield (schema.making(listed=(Listed([*shape.denied]),)),)
        for listed in shape.listed:
            yield self._other_values(schema, listed.values)
        self._refuse_others(schema)
        if shape.says("numbers"):
            for numbers in _other_numbers(shape.numbers):
                yield (schema.making(types=_NUMBER, numbers=numbers),)
        if shape.says("strings"):
            for strings in _other_strings(shape.strings):
                yield (schema.making(types=_STRING, strings=strings),)
        if shape.says("items"):
            for items in self._other_items(shape.items):
                yield (schema.making(types=_ARRAY, items=items),)
        if shape.says("members"):
            for members in self._other_members(schema, shape.members):
                yield (schema.making(types=_OBJECT, members=members),)
        for join in shape.joins:
            yield from self._unjoined(schema, join)

    def _refuse_others(self, schema: Schema) -> None:
        """Refuse what can't be broken."""
        for record, known in _READ.items():
            own = schema.shape.__dict__.get(record)
            if own is None:
                continue
            others = [_keyword(schema, field) for field in own.said if field not in known]
            if record == "items" and any(row.unevaluated is not None for row in own.rows):
                others.append("unevaluatedItems")
            if record == "members" and any(group.unevaluated is not None for group in own.groups):
                others.append("unevaluatedProperties")
            for keyword in others:
                what = f"what breaks this {keyword} can't be written down, and a not, oneOf or if asks for it"
                self._options.refuse(schema, keyword, what, "say instead what there may be")

    def _other_types(self, schema: Schema) -> Iterator[Schemas]:
        left = EVERY - schema.shape.types
        if "integer" in schema.shape.types and "number" in left:
            left -= _NUMBER
            yield (schema.making(types=_NUMBER, numbers=Numbers(no_multiples=(1,))),)
        if left:
            yield (schema.making(types=left),)

    def _other_values(self, schema: Schema, listed: Collection[Any]) -> Schemas:
        inner = [value for value in listed if isinstance(value, (list, dict))]
        scalar = tuple(value for value in listed if not isinstance(value, (list, dict)))
        return (schema.making(denied=scalar), *(self._negated(_only(schema, value, self._limits)) for value in inner))

    def _other_items(self, items: Items) -> Iterator[Items]:
        yield from (Items(**said) for said in _other_counts(items))
        for row in items.rows:
            for i, one in enumerate(row.first):
                inner = self._negated(one)
                if inner is not NOTHING:
                    yield Items(low=i + 1, rows=(Row((*(ANYTHING,) * i, inner)),))
            if row.rest is not None and row.rest is not ANYTHING:
                yield Items(wanted=(Wanted(self._negated(row.rest), len(row.first), 1, None),))
        for wanted in items.wanted:
            if wanted.low:
                yield Items(wanted=(wanted._replace(low=0, high=wanted.low - 1),))
            if wanted.high is not None:
                yield Items(wanted=(wanted._replace(low=wanted.high + 1, high=None),))

    def _other_members(self, schema: Schema, members: Members) -> Iterator[Members]:
        limits = self._limits

        def value(inner: Schema) -> Schema | None:
            return None if inner is NOTHING else self._negated(inner)

        yield from (Members(**said, limits=limits) for said in _other_counts(members))
        named = {name for group in members.groups for name in group.named}
        for name in dict.fromkeys(members.required):
            if name not in named:
                yield Members(groups=(MemberGroup({name: NOTHING}),), limits=limits)
        for group in members.groups:
            for name, inner in group.named.items():
                there = () if name in members.required else (name,)  # if it must be there, it may also be absent
                yield Members(required=there, groups=(MemberGroup({name: self._negated(inner)}),), limits=limits)
            for pattern, inner in group.patterns.items():
                yield Members(some=(Witness("pattern", group, pattern, None, value(inner)),), limits=limits)
            if group.rest is not None:
                yield Members(some=(Witness("other", group, "", None, value(group.rest)),), limits=limits)
        for one in members.names:
            yield Members(some=(Witness("name", _NO_GROUP, "", self._negated(one), None),), limits=limits)

    def _unjoined(self, schema: Schema, join: Join) -> Iterator[Schemas]:
        no = self._negated
        match join.how:
            case "ref":
                yield (no(self._document.target(schema, join)),)
            case "all":
                yield from ((no(one),) for one in join.schemas)
            case "any":
                yield tuple(map(no, join.schemas))
            case "one":
                yield tuple(map(no, join.schemas))
                yield from ((a, b) for i, a in enumerate(join.schemas) for b in join.schemas[:i])
            case "not":
                yield (join.schemas[0],)
            case "if":
                test, then, other = join.schemas
                if then is not ANYTHING:
                    yield (test, no(then))
                if other is not ANYTHING:
                    yield (no(test), no(other))
            case "depends":
                limits = self._limits
                has = schema.making(types=_OBJECT, members=Members(required=(join.to,), limits=limits))
                for name in join.names:
                    yield has, schema.making(members=Members(groups=(MemberGroup({name: NOTHING}),), limits=limits))
                yield from ((has, no(one)) for one in join.schemas)

    def _with_tag(self, schema: Schema, alternatives: list[Schemas]) -> list[Schemas]:
        """The alternatives, told apart by a member that must be there and lists its values, if there is one.

        Such a member is often a tag, and other schemas list other values of it. So where several of them are left out
        together, most combinations of alternatives contradict themselves.
        """
        members = schema.shape.members
        if members is None or len(members.groups) != 1:
            return alternatives
        named = members.groups[0].named
        tag = next((k for k in members.required if k in named and _is_tag(named[k])), None)
        if tag is None:
            return alternatives
        having = schema.making(
            members=Members(required=(tag,), groups=(MemberGroup({tag: named[tag]}),), limits=self._limits)
        )
        out = []
        for one in alternatives:
            first = one[0].shape
            about = first.says("members") and any(tag in group.named for group in first.members.groups)
            is_object = one[0].made and first.types in (EVERY, _OBJECT)
            out.append((*one, having) if is_object and not about else one)
        return out


_NO_GROUP = MemberGroup()


def _keyword(schema: Schema, field: str) -> str:
    """The keyword that says a field, by its name."""
    return next((keyword for keyword in sorted(schema.shape.keywords) if field in keyword.lower()), field)


def _is_tag(schema: Schema) -> bool:
    """Whether a schema does no more than list values, none of them an array or object."""
    shape = schema.shape
    lists = shape.only_lists and shape.shortest is not None and not shape.denied
    return lists and not any(isinstance(value, (list, dict)) for one in shape.listed for value in one.values)


def _other_counts(record: Any) -> Iterator[dict[str, int]]:
    """What breaks a bound on a length or a count."""
    if record.low:
        yield {"high": record.low - 1}
    if record.high is not None:
        yield {"low": record.high + 1}


def _other_numbers(numbers: Numbers) -> Iterator[Numbers]:
    if numbers.low is not None:
        yield Numbers(high=(numbers.low[0], not numbers.low[1]))
    if numbers.high is not None:
        yield Numbers(low=(numbers.high[0], not numbers.high[1]))
    for multiple in numbers.multiples:
        yield Numbers(no_multiples=(multiple,))
    for multiple in numbers.no_multiples:
        yield Numbers(multiples=(multiple,))


def _other_strings(strings: Strings) -> Iterator[Strings]:
    yield from (Strings(**said) for said in _other_counts(strings))
    yield from (Strings(unmatched=(pattern,)) for pattern in strings.patterns)
    yield from (Strings(no_formats=(name,)) for name in strings.formats)


def _only(place: Schema, value: Any, limits: Any) -> Schema:
    """The schema that only this array or object fits."""
    count = len(value)
    inner = [place.making(listed=(Listed([one]),)) for one in (value if isinstance(value, list) else value.values())]
    if isinstance(value, list):
        return place.making(types=_ARRAY, items=Items(low=count, high=count, rows=(Row(tuple(inner)),)))
    group = MemberGroup(dict(zip(value, inner)), {}, NOTHING)
    return place.making(types=_OBJECT, members=Members(groups=(group,), required=tuple(value), limits=limits))
