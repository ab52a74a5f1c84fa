"""Arrays and objects.

Properties come in any order (`members.py`), or in the schema's: named ones, optional ones left out at will, then
others. Then the rules are linear in the properties: of those already written only their number matters, up to the
count that no bound asks for any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from constrained.errors import GrammarError
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.constraints import Constraints, Witness
from constrained.grammar.json_schema.document import Subschema, error
from constrained.grammar.json_schema.keywords import Options
from constrained.grammar.json_schema.patterns import end_differently, few_texts, has_texts
from constrained.grammar.json_schema.presence import formula
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.members import Names
from constrained.grammar.nodes import EMPTY, NEVER, Distinct, Node, alt, choices, literal, repeat, seq
from constrained.limits import Limits

DISTINCT = 1_000
"""Values that the items of an array with uniqueItems may have, and names that are told apart by patterns."""


class ValueWriter(Protocol):
    """What writes the values inside an array or object: `writer.Writer`."""

    options: Options
    limits: Limits
    settled: bool

    def later(self, name: str, write: Callable[[], Node]) -> Node: ...
    def wait(self, name: str, write: Callable[[], Node]) -> Node: ...
    def node(self, parts: list[Subschema]) -> Node: ...
    def spellings(self, value: Any) -> set[bytes]: ...
    def values(self, parts: list[Subschema]) -> list[Any] | None: ...
    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]: ...
    @property
    def admits(self) -> Callable[[Any, list[Subschema]], bool]: ...


def array(constraints: Constraints, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """The arrays that `constraints` admit."""
    low, high = constraints.counts("Items")
    writer.limits.check("repeat", max(low, high or 0), f"an array of {max(low, high or 0)} items")
    if high is not None and high < low:
        return NEVER
    if (high is None or high > 1) and any(unique for _, unique in constraints.all("uniqueItems")):
        node = _distinct(constraints, low, high, writer, name, layout)
        if node is not None:
            return node
    if constraints.wanted():
        return _Counting(constraints, low, high, writer, name, layout).node()
    own = constraints.prefix() if high is None else min(constraints.prefix(), high)
    items = [writer.node(constraints.item(i)) for i in range(own)]
    return _items(items, writer.node(constraints.item(constraints.prefix())), low, high, layout)


def _items(own: list[Node], rest: Node, low: int, high: int | None, layout: Layout) -> Node:
    """The items in `own` in order, then any number of `rest`, `low` to `high` items in all, in brackets."""
    full = layout.around("[", _in_a_row(own, rest, low, high, layout), "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


def _in_a_row(own: list[Node], rest: Node, low: int, high: int | None, layout: Layout) -> Node:
    """The same without brackets, one at least."""
    first, *following = own or [rest]
    beyond = max(len(own), 1)
    tail = repeat(seq([layout.comma, rest]), max(low - beyond, 0), None if high is None else max(high - beyond, 0))
    for index in range(len(following), 0, -1):
        tail = seq([layout.comma, following[index - 1], tail])
        tail = tail if index < low else alt([EMPTY, tail])
    return seq([first, tail])


class _Counting:
    """Arrays of which some items fit further schemas: a rule for each (index, how many were counted for each schema).

    Indices and counts are told apart as far as they matter.
    """

    def __init__(
        self, constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
    ):
        self.constraints, self.low, self.high = constraints, low, high
        self.writer, self.name, self.layout = writer, name, layout
        self.wanted = constraints.wanted()
        self.last = max(1, constraints.prefix(), low, *(w.first for w in self.wanted)) if high is None else high

    def node(self) -> Node:
        start = 0, (0,) * len(self.wanted)
        full = self.layout.around("[", self._from(*start), "]")
        return alt([literal("[]"), full]) if self._may_end(*start) else full

    def _from(self, at: int, counts: tuple[int, ...]) -> Node:
        """What can follow `at` items, of which `counts` fitted each of the wanted schemas."""
        key = f"{self.name}:{at},{','.join(map(str, counts))}"
        return self.writer.later(key, partial(self._written, at, counts))

    def _written(self, at: int, counts: tuple[int, ...]) -> Node:
        out: list[Node] = [EMPTY] if at and self._may_end(at, counts) else []
        for chosen, after in self._items(at, counts):
            node = self.writer.node([*self.constraints.item(at), *chosen])
            if node is not NEVER:
                then = self._from(min(at + 1, self.last), after)
                out.append(seq([self.layout.comma if at else EMPTY, node, then]))
        return alt(out)

    def _may_end(self, at: int, counts: tuple[int, ...]) -> bool:
        return at >= self.low and all(c >= w.low for c, w in zip(counts, self.wanted))

    def _items(self, at: int, counts: tuple[int, ...]) -> list[tuple[list[Subschema], tuple[int, ...]]]:
        """The ways to count the item at that index: the schemas that it must fit, and the counts after it."""
        if at == self.high:
            return []
        out: list[tuple[list[Subschema], tuple[int, ...]]] = [([], ())]
        for wanted, count in zip(self.wanted, counts):
            fits, counted = wanted.schema, (count + 1,)
            ways: list[tuple[list[Subschema], tuple[int, ...]]]
            if at < wanted.first or wanted.high is None and count >= wanted.low:
                ways = [([], (count,))]
            elif wanted.high is None:
                ways = [([], (count,)), ([fits], counted)]
            else:
                ways = [([fits.made({"not": fits}, "no item")], (count,))]
                ways += [([fits], counted)] if count < wanted.high else []
            out = [(chosen + more, after + then) for chosen, after in out for more, then in ways]
        return out


def _distinct(
    constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
) -> Node | None:
    """Items that all differ."""
    fixed = constraints.prefix() or constraints.wanted()
    values = None if fixed else writer.values(constraints.item(0))
    if values is None or len(values) > DISTINCT:
        return _remembered(constraints, low, high, writer, name, layout)
    # Each is a text that may be written once, as a name in an object is.
    texts = {text: i for i, value in enumerate(values) for text in writer.spellings(value)}
    each = ((EMPTY, 0),)
    items = Names(texts, (each,) * len(values), 0, NEVER, NEVER, 0, layout.comma, max(low, 1), high).start()
    full = layout.around("[", items, "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


def _remembered(
    constraints: Constraints, low: int, high: int | None, writer: ValueWriter, name: str, layout: Layout
) -> Node | None:
    """Items that all differ, told by remembering those that are written; None if that is left out."""
    own = constraints.prefix() if high is None else min(constraints.prefix(), high)
    parts = [constraints.item(i) for i in range(own + (own != high))]
    kinds = [one for each in parts for one in writer.constraints_of(each)]
    closed = [one for one in kinds if not _goes_on(one, writer)]
    varied = _varied(closed, writer) if closed else None
    hint = "leave uniqueItems out and look for repeats afterwards"
    if writer.options.distinct is None:
        what = f"uniqueItems takes items of which there are at most {DISTINCT:,} values"
    elif constraints.wanted():
        what = "uniqueItems of such items is not supported beside contains"
    elif closed and not varied:
        what = (
            "uniqueItems takes no arrays or objects as items of which it isn't plain that there is always another one"
        )
        hint = "let them have further items or properties, or a property that may be any text, or leave uniqueItems out"
    elif low > 1 and not all(any(_has_many(one, low, writer) for one in writer.constraints_of(each)) for each in parts):
        what = f"it isn't plain that there are {low} items that differ"
    elif low > writer.limits.distinct:
        what = f"no more than {writer.limits.distinct:,} items are remembered (the limit `distinct`)"
    else:
        free = all(any(map(_is_free, writer.constraints_of(each))) for each in parts)
        named = [set(one.names) for one in kinds if one.listed is None and "object" in one.types]
        once = tuple(sorted(set.intersection(*named))) if named else ()
        items = [writer.node(each) for each in parts]
        rest = items.pop() if own != high else NEVER
        end = seq([layout.edge, literal("]")])
        inside = [literal("]")] * (not low)
        if high != 0:
            inside.append(seq([layout.edge, _in_a_row(items, rest, low, high, layout), end]))
        return _opened("[", f"{name} items", partial(alt, inside), Distinct(False, free, once, varied), writer)
    writer.options.refuse(constraints.all("uniqueItems")[0][0], "uniqueItems", what, hint)
    return None


def _opened(bracket: str, rule: str, inside: Callable[[], Node], distinct: Distinct, writer: ValueWriter) -> Node:
    """A bracket and what follows it, as a rule in which something differs."""
    assert writer.options.distinct is not None, "asked before"
    if writer.settled and not writer.options.distinct:  # the grammar may be in use as one that remembers nothing
        raise GrammarError(f"JSON Schema: {rule} was not known when it was loaded", hint="please report this")
    writer.options.distinct[rule] = distinct
    return seq([literal(bracket), writer.later(rule, inside)])


def _goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    """Whether arrays and objects of these can always have another item or property: so there is one that differs."""
    if constraints.listed is not None:
        return not any(isinstance(value, (list, dict)) for value in constraints.listed[1])
    if "array" in constraints.types and not _array_goes_on(constraints, writer):
        return False
    if "object" not in constraints.types:
        return True
    named = constraints.key_patterns or constraints.all("propertyNames") or constraints.witnesses()
    low, high = constraints.counts("Properties")
    return low <= 1 and high is None and not named and _takes_some(constraints.key(None, frozenset()), writer)


def _array_goes_on(constraints: Constraints, writer: ValueWriter) -> bool:
    if constraints.counts("Items")[1] is not None or constraints.wanted() or constraints.all("uniqueItems"):
        return False
    return _takes_some(constraints.item(constraints.prefix()), writer)


def _takes_some(parts: list[Subschema], writer: ValueWriter) -> bool:
    return any(writer.admits(value, parts) for value in _SIMPLE)


def _varied(every: list[Constraints], writer: ValueWriter) -> tuple[str, ...]:
    """Names that all of some objects may have in any order, each with more values than are remembered."""
    found: list[set[str]] = []
    for one in every:
        named = one.key_patterns or one.all("propertyNames") or one.witnesses()
        is_array = "array" in one.types and not _array_goes_on(one, writer)
        if one.listed is not None or named or is_array or not writer.options.any_order:
            return ()
        if writer.node(one.key(None, frozenset())) is not NEVER:  # free names may be written twice
            return ()
        always = one.required if one.counts("Properties")[1] is not None or one.present else one.names
        most = writer.limits.distinct
        many = (name for name in always if any(_has_many(v, most, writer) for v in _scalars_of(one, name, writer)))
        found.append(set(many))
    return tuple(sorted(set.intersection(*found)))


def _scalars_of(constraints: Constraints, name: str, writer: ValueWriter) -> list[Constraints]:
    every = writer.constraints_of(constraints.property(name))
    return [one for one in every if one.types.isdisjoint(("array", "object"))]


_SIMPLE: list[Any] = [None, True, 0, 1, "", "a", [], {}]


def _has_many(constraints: Constraints, count: int, writer: ValueWriter) -> bool:
    """Whether there surely are so many values."""
    if constraints.listed is not None:
        return False
    if not constraints.types.isdisjoint(("array", "object")):  # `_goes_on`
        return True
    if "string" in constraints.types and not constraints.denied and not strings.unmatched(constraints):
        trees, (low, high) = strings.trees(constraints), constraints.counts("Length")
        if not trees and (high is None or high >= max(low, 1)):
            return True
        if len(trees) == 1 and not low and high is None and has_texts(trees[0], count, writer.limits):
            return True
    if constraints.types.isdisjoint(("integer", "number")) or constraints.denied:
        return False
    if constraints.multiple() is not None or constraints.no_multiples():
        return False
    for low_end, high_end in constraints.intervals():
        if low_end is None or high_end is None or high_end[0] - low_end[0] > count + 1:
            return True
    return False


def _is_free(constraints: Constraints) -> bool:
    """Whether the strings are all those of some length at least."""
    if constraints.listed is not None or "string" not in constraints.types:
        return False
    said = (strings.trees(constraints), strings.unmatched(constraints), constraints.denied)
    return not any(said) and constraints.counts("Length")[1] is None


PATTERNS = 5
"""Patterns of patternProperties that one name may match: each doubles the kinds of names."""


def properties(constraints: Constraints, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """The objects that `constraints` admit."""
    low, high = constraints.counts("Properties")
    key_parts = [part.below("propertyNames") for part, _ in constraints.all("propertyNames")]
    names = [k for k in constraints.names if not key_parts or writer.admits(k, key_parts)]
    if any(k not in names for k in constraints.required):
        return NEVER
    # The names that are known, each with its values; names of which no value is left aren't there.
    witnesses = constraints.witnesses()
    told_apart = low > len(constraints.required) + 1 or len(witnesses) > 1
    listed = _few_names(constraints, key_parts, told_apart, writer)
    if listed is not None:  # each is a property of its own
        names += [k for k in listed if k not in names]
    pairs: list[tuple[set[bytes], list[Variant], bool]] = []
    number: dict[str, int] = {}
    for k in names:
        variants = _variants(constraints, k, witnesses, writer, layout)
        required = k in constraints.required
        if variants:
            number[k] = len(pairs)
            pairs.append((strings.texts(k), variants, required))
        elif required:
            return NEVER
    formulas = Formulas(Steps(writer.limits))
    condition = formula(("and", *constraints.present), number, formulas)
    if condition == FALSE:
        return NEVER
    # Names that are free can repeat, and what repeats counts once: so where names are counted, those that are written
    # are remembered, and where several of them are asked for, that is refused.
    others = _Others(constraints, key_parts, names, writer, name, layout, listed is None)
    free = others.node(())
    must = sum(required for _, _, required in pairs)
    low = low if low > must else 0
    if high is not None and (high < max(must, low) or free is NEVER and low > len(pairs)):
        return NEVER
    apart = None
    if free is not NEVER and low > must + 1:
        apart = _names_apart(constraints, low, names, bool(key_parts), bool(witnesses), writer)
        if apart is None:
            writer.options.refuse(
                constraints.all("minProperties")[-1][0], "minProperties",
                f"minProperties {low} is not supported where names are free: the same one may be written twice",
                "list the names in properties, or as an enum in propertyNames",
            )  # fmt: skip
            low = 0
    if len(witnesses) > 1 and free is not NEVER and high != 1:
        writer.options.refuse(
            constraints.parts[0], "not", "several properties of free names can't be asked for",
            "list the names in properties, or use required",
        )  # fmt: skip
        witnesses = witnesses[:1]
    if high is not None and free is NEVER and high >= len(pairs):
        high = None
    last = others.node(tuple(witnesses)) if witnesses else NEVER
    rows = formulas.rows(condition) if condition != TRUE else ()
    written = _Object(pairs, free, last, (1 << len(witnesses)) - 1, low, high, rows, writer, name, layout, apart)
    return written.any_order() if writer.options.any_order else written.in_order()


def _names_apart(
    constraints: Constraints, low: int, names: list[str], restricted: bool, shown: bool, writer: ValueWriter
) -> Distinct | None:
    """How names are told apart by remembering them; None where it isn't plain that there are enough of them."""
    trees = [both for both, _ in constraints.key_trees.values()]
    if writer.options.distinct is None or restricted or shown or low > writer.limits.distinct or len(trees) > 1:
        return None
    if trees and not has_texts(trees[0], low + len(names), writer.limits):
        return None
    return Distinct(True, not trees)


def _few_names(
    constraints: Constraints, key_parts: list[Subschema], told_apart: bool, writer: ValueWriter
) -> list[str] | None:
    """All names, where propertyNames lists them, or where they must be `told_apart` and are few; else None."""
    if key_parts and (told_apart or all(one.listed for one in writer.constraints_of(key_parts))):
        found = writer.values([*key_parts, _NAME])
        if found is not None:
            return found
    if not told_apart or writer.node(constraints.key(None, frozenset())) is not NEVER:
        return None
    each = [few_texts(either, DISTINCT, writer.limits) for _, either in constraints.key_trees.values()]
    found = sorted({name for names in each for name in names or ()})
    return None if None in each else [name for name in found if not key_parts or writer.admits(name, key_parts)]


_NAME = Subschema({"type": "string"}, "#\0name")


Variant = tuple[Node, int]
"""What follows a property's name, and which of the properties that there must be it can stand for, as bits."""


def _variants(
    constraints: Constraints, name: str, witnesses: list[Witness], writer: ValueWriter, layout: Layout
) -> list[Variant]:
    """The ways to write a property: with its own value, or with one that also is some of `witnesses`."""
    parts = constraints.property(name)
    found: list[tuple[list[Subschema], int]] = [(parts, 0)]
    for i, witness in enumerate(witnesses):
        if witness.may_be(name, writer.limits) and (witness.kind != "name" or writer.admits(name, [witness.schema])):
            value = [] if witness.value is None else [witness.value]
            found += [(inner + value, bits | 1 << i) for inner, bits in found]
    nodes = ((writer.node(inner), bits) for inner, bits in found)
    return [(seq([layout.colon, node]), bits) for node, bits in nodes if node is not NEVER]


@dataclass
class _Others:
    """Properties whose names are none of `names`, by which patterns their names match; none unless `free`."""

    constraints: Constraints
    key_parts: list[Subschema]
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
            value = self.writer.node([*self.constraints.key(None, frozenset(matched)), *values])
            if value is not NEVER:
                key = self._key(matched, witnesses, f"{self.name}:key{i}{'w' * len(witnesses)}")
                out.append(seq([strings.quoted(key), self.layout.colon, value]))
        return alt(out)

    def _matched(self) -> list[tuple[str, ...]]:
        """The sets of patterns that one name may match."""
        trees = self.constraints.key_trees
        sets: list[tuple[str, ...]] = [()]
        for pattern in trees:
            apart = {other for other in trees if end_differently(pattern, other)}
            more = [(*matched, pattern) for matched in sets if apart.isdisjoint(matched)]
            if len(trees) > PATTERNS:
                more = [one for one in more if len(one) == 1 or self._may_match_all(one)]
            sets += more
            if len(sets) > 1 << PATTERNS:
                at = self.constraints.all("patternProperties")[0][0]
                what = f"more than {PATTERNS} patterns that may match one name"
                raise error(at, "patternProperties", what, "join those with the same schema by |")
        return sets

    def _may_match_all(self, patterns: tuple[str, ...]) -> bool:
        trees = [self.constraints.key_trees[pattern][0] for pattern in patterns]
        return strings.has_text(trees, [], 0, None, self.writer.limits)

    def _key(self, matched: tuple[str, ...], witnesses: tuple[Witness, ...], name: str) -> Node:
        """The names that match those patterns and no others."""
        trees, writer = self.constraints.key_trees, self.writer
        if not trees and not self.key_parts and not witnesses:
            node = strings.others(self.names)
            if node is not None:
                return node
        # What a name matches is read as all validators read it, what it doesn't match as any of them does. What
        # propertyNames and the witnesses say of names may be alternatives: each is a language of its own.
        wanted = [both for p, (both, _) in trees.items() if p in matched]
        unwanted = [either for p, (_, either) in trees.items() if p not in matched] + strings.any_of(self.names)
        for witness in witnesses:
            fitting, without = witness.names(writer.limits)
            wanted, unwanted = wanted + fitting, unwanted + without
        own = [w.schema for w in witnesses if w.kind == "name"]
        out: list[Node] = []
        for i, one in enumerate(writer.constraints_of([*self.key_parts, *own])):
            fitting, without = wanted, unwanted
            counts: tuple[int, int | None] = 0, None
            if one.listed is not None:
                values = [v for v in one.listed[1] if isinstance(v, str) and writer.admits(v, list(one.parts))]
                if not values:
                    continue
                fitting = [*wanted, *strings.any_of(values)]
            elif "string" in one.types:
                fitting, without = [*wanted, *strings.trees(one)], [*unwanted, *strings.unmatched(one)]
                counts = one.counts("Length")
            else:
                continue
            out.append(strings.language(fitting, without, *counts, f"{name}.{i}", writer.wait, writer.limits))
        return alt(out)


@dataclass
class _Object:
    """Writes an object: (spellings of a name, variants, whether it is required), others, and how many there may be.

    `last`: one of the others that stands for what there must be, `all_met` as bits; as names that are not listed may be
    repeated, and the last one counts, it comes last. `condition`: see `members.Names`. `apart`: where no name is
    repeated, how that is remembered.
    """

    pairs: list[tuple[set[bytes], list[Variant], bool]]
    others: Node
    last: Node
    all_met: int
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
        return _opened("{", f"{self.name} members", inside, self.apart, self.writer)

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
        parts = self.others, self.last, self.all_met, comma
        every = Names(names, values, required, *parts, low, self.high, self.condition, self.apart is not None)
        if self.apart:
            return self._opened(lambda: seq([self.layout.edge, every.start(), self.closing]))
        empty = not (required or self.low or self.all_met) and (not self.condition or every.meets(0, finally_so=True))
        return alt([literal("{}") if empty else NEVER, self.layout.around("{", every.start(), "}")])
