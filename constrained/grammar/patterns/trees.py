"""What a tree of characters plainly shows of its texts: their lengths, what they begin with, and examples."""

from __future__ import annotations

from functools import lru_cache

from constrained.grammar import nodes
from constrained.grammar.assertions import looks


def lengths(node: nodes.Node) -> tuple[int, int | None]:
    """The fewest and the most characters (None: no bound) of a text of `node`."""
    match node:
        case nodes.LiteralText():
            return (length := len(node.data.decode())), length
        case nodes.Chars():
            return 1, 1
        case nodes.Choices():
            found = [len(value.decode()) for value in node.values]
            return min(found), max(found)
        case nodes.Repeat():
            low, high = lengths(node.item)
            if high == 0 or node.high == 0:
                return low * node.low, 0
            return low * node.low, None if high is None or node.high is None else high * node.high
    assert isinstance(node, (nodes.Seq, nodes.Alt))
    lows, highs = zip(*map(lengths, node.items)) if node.items else ((), ())
    if isinstance(node, nodes.Seq):
        return sum(lows), None if None in highs else sum(highs)
    return min(lows, default=0), None if None in highs else max(highs, default=0)


def example(node: nodes.Node) -> str | None:
    """One text of `node`, with a or 0 where any will do, as most patterns have these; None if it looks around."""
    match node:
        case nodes.LiteralText():
            return node.data.decode()
        case nodes.Chars():
            return next((c for c in "a0" if ord(c) in node.chars), chr(node.chars.ranges[-1][0]))
        case nodes.Choices():
            return node.values[-1].decode()
        case nodes.Repeat():
            text = example(node.item) if node.low else ""
            return None if text is None else text * node.low
        case nodes.Alt():
            return example(node.items[0]) if node.items else None
        case nodes.Seq():
            found = [example(item) for item in node.items]
            return None if None in found else "".join(text for text in found if text)
    return None


@lru_cache(maxsize=1024)
def prefix(node: nodes.Node) -> str:
    """Characters that all texts of `node` begin with."""
    match node:
        case nodes.LiteralText():
            return node.data.decode()
        case nodes.Chars(chars) if chars.ranges and chars.ranges[0][0] == chars.ranges[-1][1]:
            return chr(chars.ranges[0][0])
        case nodes.Choices():
            return _shared_beginning([value.decode() for value in (node.values[0], node.values[-1])])  # they are sorted
        case nodes.Repeat():
            return prefix(node.item) if node.low else ""
        case nodes.Alt():
            return _shared_beginning([prefix(item) for item in node.items])
        case nodes.Seq():
            out = ""
            for item in node.items:
                out += prefix(item)
                if not isinstance(item, nodes.LiteralText):
                    break
            return out
    return ""


def _shared_beginning(texts: list[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")
    same = (i for i, (a, b) in enumerate(zip(first, last)) if a != b)
    return first[: next(same, len(first))]


def without_counts(node: nodes.Node) -> tuple[nodes.Node, int | None]:
    """A tree, and a number of characters (None: any) that its texts have at most, which together mean what `node` does.

    Where only one part of it varies in length, and repeats one set of characters, its upper bound is a bound on the
    whole text.
    """
    items = node.items if isinstance(node, nodes.Seq) else (node,)
    counted = [item for item in items if isinstance(item, nodes.Repeat) and item.low != item.high]
    if len(counted) != 1 or counted[0].high is None or not isinstance(counted[0].item, nodes.Chars) or looks(node):
        return node, None
    sizes = [lengths(item) for item in items if item is not counted[0]]
    if any(low != high for low, high in sizes):
        return node, None
    opened = [nodes.repeat(i.item, i.low, None) if i is counted[0] else i for i in items]
    return nodes.seq(opened), counted[0].high + sum(low for low, _ in sizes)


def within(node: nodes.Node, low: int, high: int | None) -> nodes.Node | None:
    """The texts of `node` with `low` to `high` characters, if only one repeat count changes; else None."""
    shortest, longest = lengths(node)
    if shortest >= low and (high is None or longest is not None and longest <= high):
        return node
    items = node.items if isinstance(node, nodes.Seq) else (node,)
    varied = [i for i, item in enumerate(items) if len(set(lengths(item))) > 1]
    if len(varied) != 1:
        return None
    item = items[varied[0]]
    if not isinstance(item, nodes.Repeat) or not isinstance(item.item, nodes.Chars):
        return None
    others = sum(lengths(i)[0] for i in items if i is not item)
    least = max(item.low, low - others)
    most = item.high if high is None else high - others if item.high is None else min(item.high, high - others)
    if most is not None and most < least:
        return nodes.NEVER
    return nodes.seq([nodes.repeat(i.item, least, most) if i is item else i for i in items])
