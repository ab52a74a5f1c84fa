"""Arrays."""

from __future__ import annotations

from constrained.grammar.json_schema.contains import Counting
from constrained.grammar.json_schema.shape import Shape
from constrained.grammar.json_schema.unique import ValueWriter, unique_items
from constrained.grammar.json_schema.whitespace import Layout
from constrained.grammar.nodes import NEVER, Node, alt, literal


def array(shape: Shape, writer: ValueWriter, name: str, layout: Layout) -> Node:
    """The arrays that a shape admits."""
    said = shape.elements
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
    rest = writer.node(said.item(said.first))
    full = layout.around("[", layout.in_a_row(items, rest, low, high), "]") if high != 0 else NEVER
    return full if low else alt([literal("[]"), full])
