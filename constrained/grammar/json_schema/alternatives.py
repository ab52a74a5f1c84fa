"""Schemas as alternatives: `$ref`, allOf, anyOf, oneOf, not, if and dependencies are resolved.

What schemas that hold together say becomes a list of shapes without joins; a value fits if it fits one of them. Each is
made once, so that it is written once, and recursion leads back to it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import combinations, islice
from operator import itemgetter
from typing import Any, NamedTuple

from constrained.grammar.json_schema.complement import Complement
from constrained.grammar.json_schema.decide import Disjoint, Fits, Known
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.options import Options
from constrained.grammar.json_schema.presence import presence, presence_of
from constrained.grammar.json_schema.shape import (
    ANYTHING,
    NOTHING,
    Condition,
    Join,
    MemberGroup,
    Members,
    Row,
    Schema,
    Schemas,
    Shape,
    Unevaluated,
    names_in,
)
from constrained.grammar.json_schema.values import EVERY, Listed

_TOO_MANY = "anyOf, oneOf and what else leaves a choice have too many combinations"
_SHARE = "put what the branches share beside them, once"
_OBJECT = frozenset(("object",))
_NO_OWNERS: frozenset[Schema] = frozenset()
_FREE_DEPTH = 8
"""References in one another of which types are found."""

Order = tuple[int, ...]
"""Where a schema stands among those that hold together, in the order in which they are written."""


class Placed(NamedTuple):
    """A schema at a join of another one: which join, which schema there, and whether what it evaluates counts there."""

    at: int
    number: int
    counts: bool
    schema: Schema


class Way(NamedTuple):
    """How a schema comes to hold: the one it is joined to, and those whose unevaluated… counts what it evaluates."""

    schema: Schema | None
    before: Way | None
    owners: frozenset[Schema]


Choice = list[list[Placed]]
"""Of these lists of schemas, one holds."""
_START = Way(None, None, _NO_OWNERS)


class Alternatives:
    """The alternatives of the schemas of one document.

    They may be asked for roughly: then each branch of a oneOf is taken without the complement of the others, which is
    enough to tell schemas apart.
    """

    def __init__(self, document: Document, options: Options):
        self.document, self.options, self.limits = document, options, options.limits
        self.fits = Fits(self.of, self.limits)
        self.fits_widely = Fits(self.of, self.limits, widely=True)
        self.disjoint = Disjoint(self.of, document)
        self.complement = Complement(document, self.negated)
        self._steps = 0
        self._found: dict[tuple[Schemas, bool], list[Shape]] = {}
        self._shapes: dict[tuple, Shape] = {}
        self._expansions: dict[tuple, tuple[list[Placed], list[Choice]]] = {}
        self._ones: dict[tuple[Schema, int], list[Schemas]] = {}
        self._negated: dict[Schema, Schema] = {ANYTHING: NOTHING, NOTHING: ANYTHING}

    def of(self, parts: Iterable[Schema], rough: bool = False) -> list[Shape]:
        """What each alternative of schemas that hold together says, each once."""
        key = tuple(parts), rough
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._resolved(key[0], rough)
        return found

    def _resolved(self, parts: Schemas, rough: bool) -> list[Shape]:
        if len(parts) == 1:  # most
            (part,) = parts
            shape = part.shape
            if not shape.types:
                return []
            if not shape.joins and not says_unevaluated(shape):
                return [shape if shape.own else ANYTHING.shape]
        self._steps = 0
        work: list[tuple[Order, Schema, Way]] = [((i,), part, _START) for i, part in enumerate(parts)]
        return list(dict.fromkeys(self._follow(work, {}, [], EVERY, None, rough)))

    def _follow(
        self,
        work: list[tuple[Order, Schema, Way]],
        flat: dict[Schema, tuple[Order | None, Schema, frozenset[Schema]]],
        choices: list[tuple[Order, Way, Choice]],
        types: frozenset[str],
        before: Known | None,
        rough: bool,
    ) -> list[Shape]:
        # `flat` is what holds in every alternative below here; `work`, what holds and is still to be looked into;
        # `choices`, of each of which one branch is still to be taken; `before`, what is known of the former. A schema
        # of `flat` has an order if it says something of the value itself.
        flat, choices = dict(flat), list(choices)
        while work:
            first_new = len(flat)
            found = self._flatten(work, flat, choices, types, rough)
            if found is None:
                return []
            types = found
            self._steps += 1 + len(flat) // 8  # most of what a combination costs does not depend on its size
            if self._steps > self.limits.schema:
                self.limits.check("schema", self._steps, _TOO_MANY, _SHARE)
            if choices and types == _OBJECT:
                new = islice(flat.values(), first_new if before else 0, None)
                known = Known([part for _, part, _ in new], self.document, before)
                if known.contradict():
                    return []
                before = known
                kept = [(order, way, self._left(known, flat, choice)) for order, way, choice in choices]
                choices = [(order, way, choice) for order, way, choice in kept if choice is not None]
            # where one branch is left, it holds
            work = [one for order, way, choice in choices if len(choice) == 1 for one in _placed(order, way, choice[0])]
            choices = [one for one in choices if len(one[2]) != 1]
        if not choices:
            saying = [one for one in flat.values() if one[0] is not None]
            if len(saying) > 1:
                saying.sort(key=itemgetter(0))
            return [self._shape([(part, owners) for _, part, owners in saying])]
        # few branches first: contradictions show sooner
        (order, way, first), *others = sorted(choices, key=lambda choice: len(choice[2]))
        out: list[Shape] = []
        for branch in first:
            out += self._follow(_placed(order, way, branch), flat, others, types, before, rough)
        return out

    def _flatten(
        self,
        work: list[tuple[Order, Schema, Way]],
        flat: dict[Schema, tuple[Order | None, Schema, frozenset[Schema]]],
        choices: list[tuple[Order, Way, Choice]],
        types: frozenset[str],
        rough: bool,
    ) -> frozenset[str] | None:
        """Add what holds to `flat`, and what it leaves a choice of to `choices`; return the types left, if any."""
        for order, part, way in work:  # which grows meanwhile
            if part in flat:
                _check_circle(part, way)
                continue
            if part is ANYTHING:
                continue
            shape = part.shape
            types = types & shape.types
            if not types:
                return None
            flat[part] = (*order, shape.order) if shape.own else None, part, way.owners
            if shape.joins:
                owners = way.owners | {part} if says_unevaluated(shape) else way.owners
                beside, chosen = self._expanded(part, bool(owners), rough)
                inner = Way(part, way, owners)
                work += _placed(order, inner, beside)
                choices += [(order, inner, choice) for choice in chosen]
        return types

    def _left(self, known: Known, holding: Container[Schema], choice: Choice) -> Choice | None:
        """The branches of a choice that may hold, beside what is `holding`; None where one surely does."""
        out = []
        for branch in choice:
            sure: bool | None = True
            if branch:
                denied = known.denied(branch[0].schema)
                sure = False if denied is not None and denied in holding else known.decides(branch[0].schema)
            if sure and len(branch) < 2:
                return None
            if sure is not False:
                out.append(branch)
        return out

    def _shape(self, saying: list[tuple[Schema, frozenset[Schema]]]) -> Shape:
        """What schemas say together, apart from their joins, made once."""
        if not saying:
            return ANYTHING.shape
        key = tuple([part for part, _ in saying]), tuple([owners for _, owners in saying if owners])
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = meet(saying)
            if found.items.unevaluated:
                found = self._shapes[key] = self._without_contains(found)
        return found

    def _without_contains(self, shape: Shape) -> Shape:
        kept = []
        for one in shape.items.unevaluated:
            if any(row.by_contains for row in one.seen):
                what, hint = "unevaluatedItems is not supported beside contains", "say with items what there may be"
                self.options.refuse(one.owner, "unevaluatedItems", what, hint)
            else:
                kept.append(one)
        items = type(shape.items)(**{**shape.items.said, "unevaluated": tuple(kept)})
        return Shape(**{**shape.said, "items": items})

    def _expanded(self, part: Schema, evaluated: bool, rough: bool) -> tuple[list[Placed], list[Choice]]:
        """What holds wherever a schema does, and the choices that it leaves.

        `evaluated`: whether it matters which schemas hold, as an unevaluated… counts what they evaluate.
        """
        key = part, evaluated, rough
        if key not in self._expansions:
            beside: list[Placed] = []
            choices: list[Choice] = []
            for join in part.shape.joins:
                if join.how in ("ref", "all"):
                    every = [self.document.target(part, join)] if join.how == "ref" else join.schemas
                    beside += [Placed(join.at, i, not one.made, one) for i, one in enumerate(every)]
                elif (present := None if evaluated else self.present(part, join)) is not None:
                    beside.append(Placed(join.at, 0, False, present))
                else:
                    counts = join.how != "not"  # nothing in it counts as evaluated
                    choices += [
                        [
                            [Placed(join.at, i, counts and not one.made, one) for i, one in enumerate(branch)]
                            for branch in choice
                        ]
                        for choice in self._choices(part, join, evaluated, rough)
                    ]
            self._expansions[key] = beside, choices
        return self._expansions[key]

    def present(self, part: Schema, join: Join) -> Schema | None:
        """A join as a condition on the names of an object, if it is one."""
        if not self.options.any_order:
            return None
        found = presence(join)
        if found is None or not names_in(found.condition):
            return None
        return self._meeting(part, found.condition, found.of_others)

    def _meeting(self, part: Schema, condition: Condition, of_others: bool) -> Schema:
        """Objects that meet a condition, and other values or none."""
        members = Members(present=(condition,), limits=self.limits)
        return part.making(members=members, **({} if of_others else {"types": _OBJECT}))

    def _choices(self, part: Schema, join: Join, evaluated: bool, rough: bool) -> list[list[Schemas]]:
        """Lists of alternatives; of each list, one holds."""
        match join.how:
            case "any" if evaluated:  # what each branch that holds has evaluated counts
                branches = join.schemas
                self.limits.check("schema", 1 << len(branches), _TOO_MANY, "leave unevaluated… out")
                return [[chosen for size in range(len(branches)) for chosen in combinations(branches, size + 1)]]
            case "any":
                return [
                    [(branch,) for branch in self._with_one_condition(part, self._with_one_list(part, join.schemas))]
                ]
            case "one":
                return [[(branch,) for branch in join.schemas] if rough else self.one_of(part, join)]
            case "not":
                return [self.complement(join.schemas[0])]
            case "if":
                test, then, other = join.schemas
                if then is ANYTHING and other is ANYTHING and not evaluated:
                    return []
                return [[_without_anything(test, then), _without_anything(self.negated(test), other)]]
            case "depends":
                without = part.making(members=Members(groups=(MemberGroup({join.to: NOTHING}),), limits=self.limits))
                required = Members(required=(join.to, *join.names), limits=self.limits)
                return [[(without,), (part.making(types=_OBJECT, members=required), *join.schemas)]]
        raise AssertionError(join.how)

    def negated(self, schema: Schema) -> Schema:
        """The schema of what doesn't fit another one, made once."""
        if schema not in self._negated:
            inner = schema.shape.joins[0] if schema.made and len(schema.shape.joins) == 1 else None
            if inner is not None and inner.how == "not" and not schema.shape.own:
                self._negated[schema] = inner.schemas[0]
            else:
                self._negated[schema] = schema.making(joins=(Join("not", 0, (schema,), "not"),))
        return self._negated[schema]

    def _with_one_list(self, part: Schema, branches: Schemas) -> Schemas:
        """The branches of an anyOf, those that only list values as one: a choice of many is costly."""
        lists = [one for one in branches if one.shape.only_lists and one.shape.listed and not one.shape.denied]
        if len(lists) < 2:
            return branches
        every: dict[Any, Any] = {}
        for branch in lists:
            every |= branch.shape.allowed or {}
        return (part.making(listed=(Listed(list(every.values())),)), *(one for one in branches if one not in lists))

    def _with_one_condition(self, part: Schema, branches: Schemas) -> Schemas:
        """The branches of an anyOf, those that are conditions on which names there are as one."""
        if not self.options.any_order:
            return branches
        each = {branch: presence_of(branch) for branch in branches}
        found = {branch: one for branch, one in each.items() if one is not None and names_in(one.condition)}
        if len(found) < 2:
            return branches
        condition = ("or", *(one.condition for one in found.values()))
        together = self._meeting(part, condition, any(one.of_others for one in found.values()))
        return (*(branch for branch in branches if branch not in found), together)

    def are_disjoint(self, part: Schema, join: Join) -> bool:
        """Whether no value fits two branches of a oneOf, so that it says what anyOf would."""
        found = self.one_of(part, join)
        return bool(found) and all(len(branch) == 1 for branch in found)

    def one_of(self, part: Schema, join: Join) -> list[Schemas]:
        """The branches of a oneOf, each with what leaves out the values of the others."""
        key = part, join.at
        if key not in self._ones:
            self._ones[key] = self._branches_alone(part, join)
        return self._ones[key]

    def _branches_alone(self, part: Schema, join: Join) -> list[Schemas]:
        # Types of which all values are valid under two branches are left out of all. Then each branch is taken with the
        # complements of those branches alone that it may share a value with: most share none.
        branches, own = join.schemas, part.shape
        once: set[str] = set()
        twice: set[str] = set()
        for branch in branches:
            free = self._free_types(branch)
            twice |= once & free
            once |= free
        left = own.types - twice if twice - {"integer"} else own.types
        if not left:
            return []
        said = {name: value for name, value in own.said.items() if name not in _OF_JOINS}
        shared = (part.making(**{**said, "types": left}),) if said or left is not EVERY else ()
        typed = (part.making(types=left),) if left is not own.types else ()
        overlaps = self.disjoint.overlaps([(*shared, branch) for branch in branches])
        tag = self.disjoint.tag([(*shared, branch) for branch in branches], overlaps) if any(overlaps) else None
        if tag is None:
            return self._alone(part, branches, overlaps, typed)
        # Where such a member is there, it tells most branches apart; else they are told apart by the others.
        out = []
        limits = self.limits
        there = part.making(types=_OBJECT, members=Members(required=(tag,), limits=limits))
        absent = part.making(members=Members(groups=(MemberGroup({tag: NOTHING}),), limits=limits))
        for one in (there, absent):
            overlaps = self.disjoint.overlaps([(*shared, one, branch) for branch in branches])
            out += self._alone(part, branches, overlaps, (*typed, one))
        return out

    def _alone(self, part: Schema, branches: Schemas, overlaps: list[list[int]], beside: Schemas) -> list[Schemas]:
        """Each branch without the values of those that it may share some with."""
        out: list[Schemas] = []
        for branch, others in zip(branches, overlaps):
            beyond = [branches[j] for j in others]
            found = self.of((branch,)) if beyond else []
            if found and all(one.listed for one in found):  # the values that no other branch has are listed, too
                every = [v for one in found if one.shortest for v in one.shortest.values if self.fits(v, one)]
                left = [v for v in every if not any(self.fits_widely.admits(v, (other,)) for other in beyond)]
                out.append((*beside, branch, part.making(listed=(Listed(left),))))
            else:
                out.append((*beside, branch, *map(self.negated, beyond)))
        return out

    def _free_types(self, schema: Schema, depth: int = _FREE_DEPTH) -> frozenset[str]:
        """Types of which every value is valid, as far as the keywords show it."""
        shape = schema.shape
        if not depth or shape.listed or shape.denied:
            return frozenset()
        types = shape.types
        for field, about in _ABOUT.items():
            if shape.says(field):
                types = types - about
        for join in shape.joins:
            if join.how == "ref":
                types = types & self._free_types(self.document.target(schema, join), depth - 1)
            elif join.how in ("all", "any"):
                inner = [self._free_types(one, depth - 1) for one in join.schemas]
                types = types & (frozenset.intersection(*inner) if join.how == "all" else frozenset.union(*inner))
            else:
                types = types - _OBJECT if join.how == "depends" else frozenset()
        return types


_OF_JOINS = frozenset(("joins", "keywords", "parts", "order"))
_ABOUT = {
    "numbers": frozenset(("number", "integer")),
    "strings": frozenset(("string",)),
    "items": frozenset(("array",)),
    "members": frozenset(("object",)),
}
"""Field of a shape -> the types whose values it restricts."""


def _placed(order: Order, way: Way, branch: list[Placed]) -> list[tuple[Order, Schema, Way]]:
    """The schemas of one branch of a choice, where they stand, and how they come to hold."""
    uncounted = Way(way.schema, way.before, _NO_OWNERS)
    return [((*order, p.at, p.number), p.schema, way if p.counts else uncounted) for p in branch]


def _without_anything(*schemas: Schema) -> Schemas:
    return tuple([one for one in schemas if one is not ANYTHING])


def _check_circle(part: Schema, way: Way) -> None:
    """Raise GrammarError where a schema that holds already is one of those that lead to it."""
    at: Way | None = way
    while at is not None:
        if at.schema is part:
            raise part.error("", "the schema refers to itself for the same value", "let it describe something first")
        at = at.before


def meet(parts: Iterable[tuple[Schema, frozenset[Schema]]]) -> Shape:
    """What schemas that hold together say, apart from their joins.

    With each schema come those whose unevaluated… counts what it evaluates.
    """
    parts = list(parts)
    if len(parts) == 1:
        (one, _), shape = parts[0], parts[0][0].shape
        if shape.parts == (one,) and not shape.joins and not says_unevaluated(shape):
            return shape
    said: dict[str, Any] = {"parts": tuple([part for part, _ in parts])}
    types = EVERY
    for part, _ in parts:
        shape = part.shape
        types = types & shape.types
        for field in _RECORDS:
            own = shape.__dict__.get(field)
            if own is not None:
                said[field] = said[field].meet(own) if field in said else own
        for field in ("listed", "denied"):
            if field in shape.__dict__:
                said[field] = said.get(field, ()) + shape.__dict__[field]
    if types is not EVERY:
        said["types"] = types
    if any(says_unevaluated(part.shape) for part, _ in parts):
        said |= _with_unevaluated(parts, said)
    return Shape(**said)


_RECORDS = ("numbers", "strings", "items", "members")


def says_unevaluated(shape: Shape) -> bool:
    """Whether an unevaluated… counts what others evaluate."""
    groups: tuple[Row | MemberGroup, ...] = (*shape.items.rows, *shape.members.groups)
    return any(group.unevaluated is not None for group in groups)


def _with_unevaluated(parts: list[tuple[Schema, frozenset[Schema]]], said: dict[str, Any]) -> dict[str, Any]:
    """The items and members of schemas that hold together, with what an unevaluated… of theirs leaves."""
    out = {}
    for field, rows_of in (("items", lambda items: items.rows), ("members", lambda members: members.groups)):
        each = [
            (part, within, rows_of(part.shape.__dict__[field]))
            for part, within in parts
            if field in part.shape.__dict__
        ]
        found = []
        for owner, _, rows in each:
            for schema in (row.unevaluated for row in rows if row.unevaluated is not None):
                seen = [row for part, within, own in each if part is owner or owner in within for row in own]
                found.append(Unevaluated(owner, schema, tuple(seen)))
        if found:
            record = said[field]
            out[field] = type(record)(**{**record.said, "unevaluated": tuple(found)})
    return out
