"""Arrays: items by their index, items that are counted (`contains`), and items that all differ (`uniqueItems`).

Of items that differ, few values are told apart as the properties of an object are: each may be written once. Of more,
those that a text has written are remembered (`automaton.distinct`); it must be plain that there always is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from constrained.errors import GrammarError
from constrained.grammar.json_schema import strings
from constrained.grammar.json_schema.decide import Fits
from constrained.grammar.json_schema.numbers import whole
from constrained.grammar.json_schema.options import Layout, Options
from constrained.grammar.json_schema.shape import Items, Schema, Schemas, Shape
from constrained.grammar.json_schema.values import identity
from constrained.grammar.members import Names
from constrained.grammar.nodes import EMPTY, NEVER, Distinct, Node, alt, literal, seq
from constrained.grammar.patterns.character_automata import Texts
from constrained.limits import Limits

DEPTH = 4
"""Objects in one another whose values are counted."""

DISTINCT = 1_000
"""Values that the items of an array with uniqueItems may have, and names that are told apart by patterns."""


class ValueWriter(Protocol):
    """What writes the values inside an array or object: `writer.Writer`."""

    options: Options
    limits: Limits
    settled: bool

    def later(self, name: str, write: Callable[[], Node]) -> Node: ...
    def defer(self, name: str, write: Callable[[], Node]) -> Node: ...
    def node(self, parts: Iterable[Schema]) -> Node: ...
    def spellings(self, value: Any) -> set[bytes]: ...
    def values(self, parts: Schemas) -> list[Any] | None: ...
    def negated(self, schema: Schema) -> Schema: ...
    @property
    def of(self) -> Callable[[Iterable[Schema]], list[Shape]]: ...
    @property
    def fits(self) -> Fits: ...


def array(shape: Shape, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """The arrays that a shape admits."""
    said = shape.items
    low, high = said.low, said.high
    writer.limits.check("repeat", max(low, high or 0), f"an array of {max(low, high or 0)} items")
    if high is not None and high < low:
        return NEVER
    if said.unique and (high is None or high > 1):
        node = unique_items(shape, writer, name, layout)
        if node is not None:
            return node
    if said.wanted:
        return Counting(said, writer, name, layout).node()
    own = said.first if high is None else min(said.first, high)
    items = [writer.node(said.item(i)) for i in range(own)]
    rest = writer.node(said.item(said.first)) if own != high else NEVER  # what no text reaches may be refused
    full = layout.around("[", layout.in_a_row(items, rest, low, high), "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


class Counting:
    """Arrays of which some items fit further schemas: a rule for each (index, how many were counted for each schema).

    Indices and counts are told apart as far as they matter.
    """

    def __init__(self, items: Items, writer: ValueWriter, name: str, layout: Layout):
        self.items, self.wanted, self.low, self.high = items, items.wanted, items.low, items.high
        self.writer, self.name, self.layout = writer, name, layout
        last = max(1, items.first, items.low, *(w.first for w in self.wanted))
        self.last = last if items.high is None else items.high

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
        item = self.items.item(at)
        for chosen, after in self._ways(at, counts):
            node = self.writer.node((*item, *chosen))
            if node is not NEVER:
                then = self._from(min(at + 1, self.last), after)
                out.append(seq([self.layout.comma if at else EMPTY, node, then]))
        return alt(out)

    def _may_end(self, at: int, counts: tuple[int, ...]) -> bool:
        return at >= self.low and all(c >= w.low for c, w in zip(counts, self.wanted))

    def _ways(self, at: int, counts: tuple[int, ...]) -> list[tuple[Schemas, tuple[int, ...]]]:
        """The ways to count the item at that index: the schemas that it must fit, and the counts after it."""
        if at == self.high:
            return []
        out: list[tuple[Schemas, tuple[int, ...]]] = [((), ())]
        for wanted, count in zip(self.wanted, counts):
            fits, counted = (wanted.schema,), (count + 1,)
            ways: list[tuple[Schemas, tuple[int, ...]]]
            if at < wanted.first or wanted.high is None and count >= wanted.low:
                ways = [((), (count,))]
            elif wanted.high is None:
                ways = [((), (count,)), (fits, counted)]
            else:
                ways = [((self.writer.negated(wanted.schema),), (count,))]
                ways += [(fits, counted)] if count < wanted.high else []
            out = [(chosen + more, after + then) for chosen, after in out for more, then in ways]
        return out


def unique_items(shape: Shape, writer: ValueWriter, name: str, layout: Layout) -> Node | None:
    """Items that all differ."""
    said = shape.items
    low, high = said.low, said.high
    values = None if said.first or said.wanted else writer.values(said.item(0))
    if values is None or len(values) > DISTINCT:
        return _remembered(shape, writer, name, layout)
    # Each is a text that may be written once, as a name in an object is.
    texts = {text: i for i, value in enumerate(values) for text in writer.spellings(value)}
    each = ((EMPTY, 0),)
    items = Names(texts, (each,) * len(values), 0, NEVER, NEVER, 0, layout.comma, max(low, 1), high).start()
    full = layout.around("[", items, "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])


def _remembered(shape: Shape, writer: ValueWriter, name: str, layout: Layout) -> Node | None:
    """Items that all differ, told by remembering those that are written; None if that is left out."""
    said = shape.items
    low, high = said.low, said.high
    own = said.first if high is None else min(said.first, high)
    parts = [said.item(i) for i in range(own + (own != high))]
    kinds = [one for each in parts for one in writer.of(each)]
    closed = [one for one in kinds if not _goes_on(one, writer)]
    hint = "leave uniqueItems out and look for repeats afterwards"
    if writer.options.distinct is None:
        what = f"uniqueItems takes items of which there are at most {DISTINCT:,} values"
    elif said.wanted:
        what = "uniqueItems of such items is not supported beside contains"
    elif low > 1 and not all(_at_least(each, low, writer) >= low for each in parts):
        what = f"it isn't plain that there are {low} items that differ"
    elif low > writer.limits.distinct:
        what = f"no more than {writer.limits.distinct:,} items are remembered (the limit `distinct`)"
    else:
        free = all(any(map(_is_free, writer.of(each))) for each in parts)
        varied = tuple({_varied(one, writer): None for one in closed}) if closed else None
        distinct = Distinct(False, free, _once(kinds, writer), varied)
        items = [writer.node(each) for each in parts]
        rest = items.pop() if own != high else NEVER
        end = seq([layout.edge, literal("]")])
        inside = [literal("]")] * (not low)
        if high != 0:
            inside.append(seq([layout.edge, layout.in_a_row(items, rest, low, high), end]))
        return opened("[", f"{name} items", partial(alt, inside), distinct, writer)
    writer.options.refuse(shape.place("uniqueItems"), "uniqueItems", what, hint)
    return None


def opened(bracket: str, rule: str, inside: Callable[[], Node], distinct: Distinct, writer: ValueWriter) -> Node:
    """A bracket and what follows it, as a rule in which something differs."""
    assert writer.options.distinct is not None, "asked before"
    if writer.settled and not writer.options.distinct:  # the grammar may be in use as one that remembers nothing
        raise GrammarError(f"JSON Schema: {rule} was not known when it was loaded", hint="please report this")
    writer.options.distinct[rule] = distinct
    return seq([literal(bracket), writer.later(rule, inside)])


def _goes_on(shape: Shape, writer: ValueWriter) -> bool:
    """Whether arrays and objects of these can always have another item or property: so there is one that differs."""
    if shape.shortest is not None:
        return not any(isinstance(value, (list, dict)) for value in shape.shortest.values)
    if "array" in shape.types and not _array_goes_on(shape, writer, DEPTH):
        return False
    return "object" not in shape.types or _object_goes_on(shape, writer)


def _array_goes_on(shape: Shape, writer: ValueWriter, depth: int) -> bool:
    items = shape.items
    if items.high is not None or items.wanted or items.unique:
        return False
    own = map(items.item, range(items.first))
    return _takes_some(items.item(items.first), writer) and all(_at_least(one, 1, writer, depth) for one in own)


def _object_goes_on(shape: Shape, writer: ValueWriter) -> bool:
    members = shape.members
    if members.low > 1 or members.high is not None or members.names or members.some:
        return False
    trees, most = members.trees, writer.limits.distinct + len(members.named)
    for matched in ([], *([pattern] for pattern in trees)):
        fitting = [trees[pattern][0] for pattern in matched]
        without = [either for pattern, (_, either) in trees.items() if pattern not in matched]
        some = _takes_some(members.matching(None, frozenset(matched)), writer)
        if some and Texts(fitting, without, 0, None, writer.limits).at_least(most) == most:
            return True
    return False


def _takes_some(parts: Schemas, writer: ValueWriter) -> bool:
    return any(writer.fits.admits(value, parts) for value in _SIMPLE)


_SIMPLE: list[Any] = [None, True, 0, 1, "", "a", [], {}]


def _once(kinds: list[Shape], writer: ValueWriter) -> tuple[str, ...]:
    """Names that no object of these can have twice: they are named wherever there may be others."""
    objects = [one.members for one in kinds if not one.listed and "object" in one.types]
    found = {name for one in objects for name in one.named}
    for one in objects:
        if one.patterns or writer.node(one.matching(None, frozenset())) is not NEVER:
            found &= set(one.named)
    return tuple(sorted(found))


def _varied(shape: Shape, writer: ValueWriter) -> tuple[tuple[str, int], ...]:
    """See `nodes.Distinct.varied`; no number is above the limit `distinct`."""
    members = shape.members
    if shape.listed or "object" not in shape.types or members.some or shape.denied:
        return ()
    most, found = writer.limits.distinct, []
    any_name = writer.options.any_order and not _is_bounded(shape)
    for name in members.named if any_name else dict.fromkeys(members.required):
        ways = _at_least(members.member(name), most, writer) + (name not in members.required)
        found.append((name, min(ways, most)))
    return tuple(sorted(one for one in found if one[1] > 1))


def _is_bounded(shape: Shape) -> bool:
    """Whether it is more than the values of its properties that decides whether an object fits."""
    members = shape.members
    counted = members.low or members.high is not None or members.names
    return bool(counted or members.present or members.some)


def _at_least(parts: Schemas, most: int, writer: ValueWriter, depth: int = DEPTH) -> int:
    """A number of values that there surely are, no more than `most`."""
    return max((_values(one, most, writer, depth - 1) for one in writer.of(parts)), default=0)


def _values(shape: Shape, most: int, writer: ValueWriter, depth: int) -> int:
    """The same of one alternative."""
    if shape.shortest is not None:
        fitting = (value for value in shape.shortest.values if writer.fits(value, shape))
        return min(len(set(map(identity, fitting))), most)
    found = _strings(shape, most, writer.limits) if "string" in shape.types else 0
    if found >= most or shape.denied:
        return found
    if depth and "array" in shape.types and _array_goes_on(shape, writer, depth):
        found += most
    if depth and "object" in shape.types and not _is_bounded(shape):
        found += _objects(shape, most, writer, depth)
    found += ("null" in shape.types) + 2 * ("boolean" in shape.types) + _numbers(shape, most)
    return min(found, most)


def _objects(shape: Shape, most: int, writer: ValueWriter, depth: int) -> int:
    found, members = 1, shape.members
    for name in dict.fromkeys(members.required):
        found *= _at_least(members.member(name), most, writer, depth)
    if found and _object_goes_on(shape, writer):
        return most
    for name in members.named if writer.options.any_order and found else ():
        if found < most and name not in members.required:
            found *= 1 + _at_least(members.member(name), most, writer, depth)
    return min(found, most)


def _strings(shape: Shape, most: int, limits: Limits) -> int:
    """The same of strings; `_objects` and `_numbers`, too."""
    trees, without, said = strings.trees(shape, limits), strings.unmatched(shape, limits), shape.strings
    if not trees and not without and said.high is None:  # most
        return most
    return Texts(trees, without, said.low, said.high, limits).at_least(most)


def _numbers(shape: Shape, most: int) -> int:
    said = shape.numbers
    low, high = said.low, said.high
    if said.multiples or said.no_multiples:
        return 0
    if "number" in shape.types:
        return most if low is None or high is None or low[0] < high[0] else 0
    if "integer" not in shape.types:
        return 0
    first, last = whole(low, high)
    return most if first is None or last is None else max(last - first + 1, 0)


def _is_free(shape: Shape) -> bool:
    """Whether the strings are all those of some length at least."""
    said = shape.strings
    if shape.listed or "string" not in shape.types or shape.denied or said.high is not None:
        return False
    return not (said.patterns or said.formats or said.unmatched or said.no_formats)
