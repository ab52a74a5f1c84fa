"""Arrays; where some items fit further schemas (`contains`, `minContains`, `maxContains`), these are counted."""

from __future__ import annotations

from functools import partial

from constrained.grammar.json_schema.shape import Items, Schemas, Shape
from constrained.grammar.json_schema.unique import ValueWriter, unique_items
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.nodes import EMPTY, NEVER, Node, alt, literal, seq


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
