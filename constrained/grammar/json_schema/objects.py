"""Objects.

Properties come in any order (`members.py`), or in the schema's: named ones, optional ones left out at will, then
others. Then the rules are linear in the properties: of those already written only their number matters, up to the
count that no bound asks for any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.arrays import DISTINCT, ValueWriter, opened
from constrained.grammar.json_schema.options import Layout
from constrained.grammar.json_schema.presence import formula, ways
from constrained.grammar.json_schema.shape import NOTHING, MemberGroup, Members, Schema, Schemas, Shape, Witness
from constrained.grammar.members import Names
from constrained.grammar.nodes import EMPTY, NEVER, Distinct, Node, alt, choices, literal, repeat, seq
from constrained.grammar.patterns.character_automata import Texts
from constrained.grammar.patterns.ecma import end_differently
from constrained.grammar.patterns.finite_automata import few_texts

PATTERNS = 5
"""Patterns of patternProperties that one name may match: each doubles the kinds of names."""


def properties(shape: Shape, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """The objects that a shape admits."""
    members = shape.members
    low, high = members.low, members.high
    if low > 1 and members.present:  # names are counted, of which only a condition says that they must be there
        each = enumerate(_without_conditions(shape, writer))
        return alt([properties(one, writer, f"{name} {i}", layout) for i, one in each])
    keys = writer.of(members.names) if members.names else []
    admitted = cache(lambda name: not members.names or any(writer.fits(name, one) for one in keys))
    asked_for = frozenset(members.required)
    if not all(map(admitted, asked_for)):
        return NEVER
    names = list(filter(admitted, members.named))
    # The names that are known, each with its values; names of which no value is left aren't there.
    witnesses = [*members.some]
    told_apart = low > len(asked_for) + 1 or len(witnesses) > 1
    listed = _few_names(shape, told_apart, writer)
    if listed is not None:  # each is a property of its own
        names += [k for k in listed if k not in names]
    if writer.options.any_order:  # what is asked for besides is none of those that its own schema lists
        listed_there = (k for w in witnesses if w.kind == "other" for k in w.group.named)
        names += [k for k in dict.fromkeys(listed_there) if k not in names and admitted(k)]
    # Names that are free can repeat, and what repeats counts once: so where names are counted, those that are written
    # are remembered, and where several of them are asked for, that is refused.
    others = _Others(shape, names, writer, name, layout, listed is None)
    free = others.node(())
    conditions = list(members.present)
    if free is NEVER and writer.options.any_order:  # that one of the names is there is a condition on these
        conditions += [("or", *(k for k in names if _may_be(w, k, writer))) for w in witnesses if w.value is None]
        witnesses = [w for w in witnesses if w.value is not None]
    elif len(witnesses) > 1 and free is not NEVER and high != 1:
        writer.options.refuse(
            shape.parts[0], "not", "several properties of free names can't be asked for",
            "list the names in properties, or use required",
        )  # fmt: skip
        witnesses = witnesses[:1]
    if witnesses:  # each doubles the ways to write a property
        what = "an object of which too many properties are asked for"
        writer.limits.check("schema", len(names) << len(witnesses), what)
    variants = {}
    for k in dict.fromkeys([*members.required, *names]):
        variants[k] = _variants(shape, k, witnesses, writer, layout)
        if not variants[k] and k in asked_for:
            return NEVER
    there = [k for k in names if variants[k]]
    pairs = [(strings.texts(k, writer.options.closing), variants[k], k in asked_for) for k in there]
    number = {k: i for i, k in enumerate(there)}
    formulas = Formulas(Steps(writer.limits))
    condition = formula(("and", *conditions), number, formulas)
    if condition == FALSE:
        return NEVER
    must = sum(required for _, _, required in pairs)
    low = low if low > must else 0
    if high is not None and (high < max(must, low) or free is NEVER and low > len(pairs)):
        return NEVER
    apart = None
    if free is not NEVER and low > must + 1:
        apart = _names_apart(members, low, names, bool(members.names), bool(witnesses), writer)
        if apart is None:
            writer.options.refuse(
                shape.place("minProperties"), "minProperties",
                f"minProperties {low} is not supported where names are free: the same one may be written twice",
                "list the names in properties, or as an enum in propertyNames",
            )  # fmt: skip
            low = 0
    if high is not None and free is NEVER and high >= len(pairs):
        high = None
    last = others.node(tuple(witnesses)) if witnesses else NEVER
    rows = formulas.rows(condition) if condition != TRUE else ()
    # Where a value is asked for, the name must not come again with another one: names are remembered, if there are
    # always more, for this property too; else it comes last.
    anywhere = all(witness.value is None for witness in witnesses)
    restricted = bool(members.names or members.patterns)
    restricted |= any(w.kind != "other" or w.group.patterns for w in witnesses)
    if not anywhere and free is not NEVER and writer.options.any_order:
        apart = _names_apart(members, 1, names, restricted, False, writer)
        anywhere = apart is not None
    met = (1 << len(witnesses)) - 1
    written = _Object(pairs, free, last, met, anywhere, low, high, rows, writer, name, layout, apart)
    return written.any_order() if writer.options.any_order else written.in_order()


def _names_apart(
    members: Members, low: int, names: list[str], restricted: bool, shown: bool, writer: ValueWriter
) -> Distinct | None:
    """How names are told apart by remembering them; None where it isn't plain that there are enough of them."""
    trees = [both for both, _ in members.trees.values()]
    if writer.options.distinct is None or restricted or shown or low > writer.limits.distinct or len(trees) > 1:
        return None
    enough = low + len(names)
    if trees and Texts(trees, [], 0, None, writer.limits).at_least(enough) < enough:
        return None
    return Distinct(True, not trees)


def _without_conditions(shape: Shape, writer: ValueWriter) -> list[Shape]:
    """What objects of a shape are, by which of the names that its conditions are about they have."""
    members, out = shape.members, []
    said = {field: value for field, value in members.said.items() if field != "present"}
    for there, absent in ways(("and", *members.present), writer.limits):
        group = MemberGroup(dict.fromkeys(absent, NOTHING))
        more = {"required": members.required + there, "groups": (*members.groups, group)}
        out.append(Shape(**{**shape.said, "members": type(members)(**{**said, **more})}))
        writer.limits.check("schema", len(out), "an object of too many conditions on its names")
    return out


def _few_names(shape: Shape, told_apart: bool, writer: ValueWriter) -> list[str] | None:
    """All names, where propertyNames lists them, or where they must be `told_apart` and are few; else None."""
    members = shape.members
    if members.names and (told_apart or all(one.listed for one in writer.of(members.names))):
        found = writer.values((*members.names, _NAME))
        if found is not None:
            return found
    if not told_apart or writer.node(members.matching(None, frozenset())) is not NEVER:
        return None
    each = [few_texts(either, DISTINCT, writer.limits) for _, either in members.trees.values()]
    found = sorted({name for names in each for name in names or ()})
    return None if None in each else [k for k in found if not members.names or writer.fits.admits(k, members.names)]


_NAME = Schema(Shape(types=frozenset(("string",))))


Variant = tuple[Node, int]
"""What follows a property's name, and which of the properties that there must be it can stand for, as bits."""


def _variants(shape: Shape, name: str, witnesses: list[Witness], writer: ValueWriter, layout: Layout) -> list[Variant]:
    """The ways to write a property: with its own value, or with one that also is some of `witnesses`."""
    parts = shape.members.member(name)
    if not witnesses:
        node = writer.node(parts)
        return [] if node is NEVER else [(seq([layout.colon, node]), 0)]
    found: list[tuple[Schemas, int]] = [(parts, 0)]
    for i, witness in enumerate(witnesses):
        if _may_be(witness, name, writer):
            value = () if witness.value is None else (witness.value,)
            found += [(inner + value, bits | 1 << i) for inner, bits in found]
    nodes = ((writer.node(inner), bits) for inner, bits in found)
    return [(seq([layout.colon, node]), bits) for node, bits in nodes if node is not NEVER]


def _may_be(witness: Witness, name: str, writer: ValueWriter) -> bool:
    """Whether the property of that name can be one that there must be."""
    admitted = witness.schema is None or writer.fits.admits(name, (witness.schema,))
    return admitted and witness.may_be(name, writer.limits)


@dataclass
class _Others:
    """Properties whose names are none of `names`, by which patterns their names match; none unless `free`."""

    shape: Shape
    names: list[str]
    writer: ValueWriter
    name: str
    layout: Layout
    free: bool

    def node(self, witnesses: tuple[Witness, ...]) -> Node:
        """One other property; with `witnesses`, one that is all of them."""
        sets = self._matched() if self.free else []
        out: list[Node] = []
        for i, matched in enumerate(sets):
            values = [w.value for w in witnesses if w.value is not None]
            value = self.writer.node((*self.shape.members.matching(None, frozenset(matched)), *values))
            if value is not NEVER:
                key = self._key(matched, witnesses, f"{self.name}:key{i}{'w' * len(witnesses)}")
                out.append(seq([strings.quoted(key), self.layout.colon, value]))
        return alt(out)

    def _matched(self) -> list[tuple[str, ...]]:
        """The sets of patterns that one name may match."""
        trees = self.shape.members.trees
        sets: list[tuple[str, ...]] = [()]
        for pattern in trees:
            apart = {other for other in trees if end_differently(pattern, other)}
            more = [(*matched, pattern) for matched in sets if apart.isdisjoint(matched)]
            if len(trees) > PATTERNS:
                limits = self.writer.limits  # some have no name in common
                more = [one for one in more if strings.has_text([trees[p][0] for p in one], [], 0, None, limits)]
            sets += more
            if len(sets) > 1 << PATTERNS:
                what = f"more than {PATTERNS} patterns that may match one name"
                place = self.shape.place("patternProperties")
                raise place.error("patternProperties", what, "join those with the same schema by |")
        return sets

    def _key(self, matched: tuple[str, ...], witnesses: tuple[Witness, ...], name: str) -> Node:
        """The names that match those patterns and no others."""
        members, writer = self.shape.members, self.writer
        trees = members.trees
        if not trees and not members.names and not witnesses:
            node = None if writer.options.closing else strings.others(self.names)
            if node is not None:
                return node
        # What a name matches is read as all validators read it, what it doesn't match as any of them does. What
        # propertyNames and the witnesses say of names may be alternatives: each is a language of its own.
        wanted = [both for p, (both, _) in trees.items() if p in matched]
        unwanted = [either for p, (_, either) in trees.items() if p not in matched] + strings.any_of(self.names)
        for witness in witnesses:
            fitting, without = witness.names(writer.limits)
            wanted, unwanted = wanted + fitting, unwanted + without
        own, closing = [w.schema for w in witnesses if w.schema is not None], writer.options.closing
        out: list[Node] = []
        for i, one in enumerate(writer.of((*members.names, *own))):
            fitting, without = wanted, unwanted
            counts: tuple[int, int | None] = 0, None
            if one.shortest is not None:
                values = [v for v in one.shortest.values if isinstance(v, str) and writer.fits(v, one)]
                if not values:
                    continue
                fitting = [*wanted, *strings.any_of(values)]
            elif "string" in one.types:
                fitting = [*wanted, *strings.trees(one, writer.limits)]
                without = [*unwanted, *strings.unmatched(one, writer.limits)]
                counts = one.strings.low, one.strings.high
            else:
                continue
            out.append(strings.language(fitting, without, *counts, f"{name}.{i}", writer.limits, closing))
        return alt(out)


@dataclass
class _Object:
    """Writes an object: (spellings of a name, variants, whether it is required), others, and how many there may be.

    `last`: one of the others that stands for what there must be, `all_met` as bits. As names that are not listed may be
    repeated, and the last one counts, it comes after all others, unless it may stand `anywhere`. `condition`: see
    `members.Names`. `apart`: where no name is repeated, how that is remembered.
    """

    pairs: list[tuple[set[bytes], list[Variant], bool]]
    others: Node
    last: Node
    all_met: int
    anywhere: bool
    low: int
    high: int | None
    condition: tuple[tuple[int, int, int], ...]
    writer: ValueWriter
    name: str
    layout: Layout
    apart: Distinct | None

    @property
    def closing(self) -> Node:
        return seq([self.layout.edge, literal("}")])

    def before(self, count: int) -> Node:
        """What separates a property from those before it."""
        return self.layout.comma if count else self.layout.edge

    # in order: a rule for each (property to come, number of those written), the latter up to where it matters

    def in_order(self) -> Node:
        return self._opened(lambda: self._from(0, 0, 0))

    def _opened(self, inside: Callable[[], Node]) -> Node:
        if self.apart is None:
            return seq([literal("{"), inside()])
        return opened("{", f"{self.name} members", inside, self.apart, self.writer)

    def _from(self, at: int, count: int, met: int) -> Node:
        return self.writer.later(f"{self.name}:{at},{count},{met}", partial(self._written, at, count, met))

    def _written(self, at: int, count: int, met: int) -> Node:
        # Up to `top` it matters how many were written. With so many, and all demands met, no rules are needed any more.
        top = max(1, self.low) if self.high is None else self.high
        if at == len(self.pairs):
            return self._end(count, met)
        if self.high is None and (count, met) == (top, self.all_met):
            return self._all_from(at)
        texts, variants, required = self.pairs[at]
        out = [] if required else [self._from(at + 1, count, met)]
        if self.high is None or count < self.high:
            for value, bits in variants:
                out.append(
                    seq(
                        [self.before(count), choices(texts), value, self._from(at + 1, min(count + 1, top), met | bits)]
                    )
                )
        return alt(out)

    def _all_from(self, at: int) -> Node:
        """The properties from `at` on, where their number doesn't matter any more."""
        pairs = [
            (seq([self.layout.comma, choices(texts), variants[0][0]]), required)
            for texts, variants, required in self.pairs[at:]
        ]
        end = self._end(max(1, self.low), self.all_met)
        return seq([*(pair if required else repeat(pair, 0, 1) for pair, required in pairs), end])

    def _end(self, count: int, met: int) -> Node:
        """Other properties, as many as there may be, and the closing brace."""
        # Demands that no named property has met are met by `last`, which comes last. Else there are as many others as
        # are still needed (one counts, as they may all have one name), and as many more as may be.
        left = None if self.high is None else self.high - count
        another = seq([self.layout.comma, self.others])
        if met != self.all_met:
            if left == 0 or self.last is NEVER:
                return NEVER
            more = repeat(another, 0, None if left is None else max(left - 2, 0))
            before = [self.before(count), self.others, more, self.layout.comma] if left is None or left > 1 else [NEVER]
            return seq([alt([seq(before), self.before(count)]), self.last, self.closing])
        if self.apart and count < self.low:
            if left is not None and count + left < self.low:
                return NEVER
            more = repeat(another, self.low - count - 1, None if left is None else left - 1)
            return seq([self.before(count), self.others, more, self.closing])
        more = EMPTY if self.others is NEVER else repeat(another, 0, left)
        if count >= max(self.low, 1):
            return seq([more, self.closing])
        if left == 0:
            return NEVER if self.low else literal("}")
        after_one = more if left is None else repeat(another, 0, left - 1)
        one = seq([self.before(count), self.others, after_one, self.closing])
        return one if count or self.low else alt([literal("}"), one])

    def any_order(self) -> Node:
        """The object with its properties in any order: one node, and no rules."""
        names = {text: i for i, (texts, _, _) in enumerate(self.pairs) for text in texts}
        required = sum(1 << i for i, (_, _, required) in enumerate(self.pairs) if required)
        values = tuple(tuple(variants) for _, variants, _ in self.pairs)
        comma, low = self.layout.comma, max(self.low, 1)
        parts, how = (self.others, self.last, self.all_met, comma), (self.apart is not None, self.anywhere)
        every = Names(names, values, required, *parts, low, self.high, self.condition, *how)
        if self.apart:
            return self._opened(lambda: seq([self.layout.edge, every.start(), self.closing]))
        empty = not (required or self.low or self.all_met) and (not self.condition or every.meets(0, finally_so=True))
        return alt([literal("{}") if empty else NEVER, self.layout.around("{", every.start(), "}")])
