"""Arrays: items with schemas of their own, then items of one schema, within counts."""

from __future__ import annotations

from constrained.grammar import nodes as n
from constrained.grammar.json_schema.document import Part
from constrained.grammar.json_schema.layout import Layout
from constrained.grammar.json_schema.shape import Shape
from constrained.grammar.nodes import EMPTY, Call, Node, Rule, literal, repeat, seq

DISTINCT = 8
"""Values that the items of an array with uniqueItems may have."""


def array(shape: Shape, writer, name: str, layout: Layout) -> Node:
    """The arrays that `shape` admits."""
    low, high = shape.counts("Items")
    writer.limits.check("repeat", max(low, high or 0), f"an array of {max(low, high or 0)} items")
    if high is not None and high < low:
        return n.NEVER
    for part, _ in shape.all("contains"):
        node = _containing(shape, part, low, high, writer, layout)
        if node is not None:
            return node
    if (high is None or high > 1) and any(unique for _, unique in shape.all("uniqueItems")):
        node = _distinct(shape, low, high, writer, name, layout)
        if node is not None:
            return node
    items = [writer.node(shape.item(i)) for i in range(_own(shape, high))]
    return _items(items, writer.node(shape.item(shape.prefix())), low, high, layout)


def _own(shape: Shape, high: int | None) -> int:
    return shape.prefix() if high is None else min(shape.prefix(), high)


def _items(own: list[Node], rest: Node, low: int, high: int | None, layout: Layout) -> Node:
    """`own` items in order, as far as there are so many, then `rest`."""
    first, *following = own or [rest]
    following = [(node, i < low) for i, node in enumerate(following, 1)]
    beyond = max(len(own), 1)
    tail = repeat(seq([layout.comma, rest]), max(low - beyond, 0), None if high is None else max(high - beyond, 0))
    for node, must in reversed(following):
        tail = seq([layout.comma, node, tail])
        tail = tail if must else n.alt([EMPTY, tail])
    full = layout.around("[", seq([first, tail]), "]") if high != 0 else n.NEVER
    return full if low else n.alt([literal("[]"), full])


def _containing(shape: Shape, part: Part, low: int, high: int | None, writer, layout: Layout) -> Node | None:
    """Items of which at least some fit another schema: these, with any others before, between and after."""
    at_least = int(part.schema.get("minContains", 1))
    others = len(shape.all("contains")) > 1 or any(unique for _, unique in shape.all("uniqueItems"))
    if others or shape.prefix() or high is not None or low > at_least:
        writer.options.refuse(
            part, "contains", "contains is not supported beside prefixItems, uniqueItems, counts or another contains",
            "say with prefixItems and items where the item stands",
        )  # fmt: skip
        return None
    any_item = writer.node(shape.item(0))
    if not at_least:
        return _items([], any_item, low, high, layout)
    meant = writer.node([*shape.item(0), part.below("contains")])
    before, after = repeat(seq([any_item, layout.comma]), 0, None), repeat(seq([layout.comma, any_item]), 0, None)
    again = repeat(seq([after, layout.comma, meant]), at_least - 1, at_least - 1)
    return layout.around("[", seq([before, meant, again, after]), "]")


def _distinct(shape: Shape, low: int, high: int | None, writer, name: str, layout: Layout) -> Node | None:
    """Items that all differ: which are left is a set, so there must be few."""
    values = None if shape.prefix() else writer.values(shape.item(0))
    if values is None or len(values) > DISTINCT:
        writer.options.refuse(
            shape.all("uniqueItems")[0][0], "uniqueItems", f"uniqueItems takes items of an enum of at most {DISTINCT}",
            "what was written can't be remembered exactly; leave uniqueItems out and look for repeats afterwards",
        )  # fmt: skip
        return None
    texts = [writer.value(value) for value in values]

    def after(left: frozenset[int]) -> Node:
        """What may follow once only the values `left` are unused."""
        key = f"{name}:{'-'.join(map(str, sorted(left)))}"
        if key not in writer.rules:
            used = len(values) - len(left)
            writer.add(Rule(key, EMPTY))
            more = [seq([layout.comma, texts[i], after(left - {i})]) for i in sorted(left)]
            may_end = used >= low
            writer.rules[key] = Rule(
                key, n.alt([*(more if high is None or used < high else []), *([EMPTY] if may_end else [])])
            )
        return Call(key)

    every = frozenset(range(len(values)))
    begun = n.alt([seq([texts[i], after(every - {i})]) for i in every])
    full = layout.around("[", begun, "]")
    return full if low else n.alt([literal("[]"), full])
