"""The assertions of regular expressions, as nodes: lookahead, lookbehind, anchors, word boundaries, atomic groups.

`Look` and `Atomic` occur only in what :func:`constrained.grammar.regex.regex_node` returns, until
`lookaround` has turned it into nodes that read characters and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from constrained.grammar import nodes
from constrained.grammar.charset import CharSet, charset, first_characters, matching
from constrained.grammar.nodes import Chars, Choices, LiteralText, Node, Repeat
from constrained.grammar.traverse import rebuild

ANY = charset([]).complement()
NEWLINE = charset([(10, 10)])
_NOT_IN_EMPTY_TEXT = re.fullmatch(r"\B", "") is None  # before Python 3.14


@dataclass(eq=False, slots=True)
class Look(Node):
    """A lookahead, or, with the width `behind` in characters, a lookbehind; negative unless `holds`."""

    node: Node
    holds: bool
    behind: int | None = None


@dataclass(eq=False, slots=True)
class Atomic(Node):
    """An atomic group: only the first way to read `node` that `re` finds, which can depend on what follows.

    Its alternatives are in the order written, and its lazy repeats are `LazyRepeat`.
    """

    node: Node


@dataclass(eq=False, slots=True)
class LazyRepeat(Repeat):
    """A lazy repeat, which `re` ends as early as it can; this matters in atomic groups and in terminals."""


def end_early(node: Node) -> Node:
    """The texts that `re.match` reads with a terminal: a lazy repeat ends as soon as the rest can be read.

    ``X*?R`` becomes ``(?:(?!R)X)*R``. A lazy repeat stays greedy inside a group that is repeated or that is not last.
    """
    if not any(isinstance(part, LazyRepeat) for part in nodes.walk(node)):
        return node
    if isinstance(node, nodes.Alt):
        return nodes.alt(map(end_early, node.items))
    rest: Node = nodes.EMPTY
    for item in reversed(node.items if isinstance(node, nodes.Seq) else (node,)):
        if isinstance(item, LazyRepeat):
            once, more = greedy(item.item), None if item.high is None else item.high - item.low
            guarded = nodes.seq(narrowed([ahead(rest, holds=False), once]))
            item = nodes.seq([nodes.repeat(once, item.low, item.low), nodes.repeat(guarded, 0, more)])
        elif rest is nodes.EMPTY and isinstance(item, nodes.Alt):
            item = end_early(item)
        rest = nodes.seq([greedy(item), rest])
    return rest


def longest_is_certain(node: Node) -> bool:
    """Whether an ignored terminal must be read as the longest text it has, and it is certain which one that is.

    It need not be where the rest of the longest text would be read as the next repetition anyway. It is uncertain
    where `re` may choose another one: between alternatives that begin with the same character.
    """
    rest = isinstance(node, Repeat) and node.low <= 1 and node.high is None and not nodes.find(node.item, Repeat)
    if rest or isinstance(node, (LiteralText, Chars)):
        return False
    return all(_one_way(part) for part in nodes.walk(node))


def _one_way(node: Node) -> bool:
    """Whether at most one alternative of `node` itself can be read at a place."""
    if isinstance(node, Choices):  # sorted: what begins with a text comes after it
        return not any(after.startswith(text) for text, after in pairwise(node.values))
    if isinstance(node, nodes.Alt):
        return _begin_apart(node)
    return isinstance(node, (LiteralText, Chars, Look, nodes.Seq, Repeat))


def _begin_apart(node: nodes.Alt) -> bool:
    seen = charset([])
    for item in node.items:
        while isinstance(item, nodes.Seq) and item.items:
            item = item.items[0]
        if isinstance(item, Chars):
            first = item.chars
        elif isinstance(item, (LiteralText, Choices)):
            first = first_characters([item.data] if isinstance(item, LiteralText) else item.values)
        else:  # it may be empty
            return False
        if first.meets(seen):
            return False
        seen |= first
    return True


def greedy(node: Node) -> Node:
    """`node` with its lazy repeats as greedy ones, which read the same texts."""
    return rebuild(node, lambda leaf: leaf)


def looks(node: Node) -> bool:
    """Whether anything in `node` is lookaround or an atomic group."""
    return any(isinstance(part, (Look, Atomic)) for part in nodes.walk(node))


def walk_inside(node: Node) -> Iterator[Node]:
    """Iterate over `node` and every node in it, including those in assertions."""
    for part in nodes.walk(node):
        yield part
        if isinstance(part, (Look, Atomic)):
            yield from walk_inside(part.node)


def ahead(node: Node, holds: bool = True) -> Node:
    return Look(node, holds)


def behind(node: Node, width: int = 1, holds: bool = True) -> Node:
    return Look(node, holds, width)


def text_start() -> Node:
    return behind(Chars(ANY), holds=False)


def line_start() -> Node:
    return behind(Chars(NEWLINE.complement()), holds=False)


def text_end() -> Node:
    return ahead(Chars(ANY), holds=False)


def line_end() -> Node:
    return ahead(Chars(NEWLINE.complement()), holds=False)


def last_line_end() -> Node:
    """``$``: at the end, or before a newline that ends the text."""
    return ahead(nodes.seq([nodes.repeat(nodes.literal("\n"), 0, 1), text_end()]))


def boundary(flags: int, holds: bool) -> Node:
    r"""``\b``, or ``\B`` if not `holds`."""
    word = Chars(matching(r"\w", flags & re.ASCII))
    sides = [nodes.seq([behind(word, holds=left), ahead(word, holds=left != holds)]) for left in (True, False)]
    here = nodes.alt(sides)
    if holds or not _NOT_IN_EMPTY_TEXT:
        return here
    return nodes.seq([nodes.alt([behind(Chars(ANY)), ahead(Chars(ANY))]), here])


def narrowed(items: list[Node]) -> list[Node]:
    """Replace a lookaround of one character, next to a node that reads one character, by a smaller set."""
    if not any(isinstance(item, Look) for item in items):
        return items
    out: list[Node] = []
    for item in items:
        chars = one_char(item)
        while chars is not None and out and isinstance(look := out[-1], Look) and look.behind is None:
            seen = one_char(look.node)
            if seen is None:
                break
            out.pop()
            chars = _common(chars, seen, look.holds)
            item = Chars(chars) if chars else nodes.NEVER
        if isinstance(item, Look) and item.behind == 1 and out:
            chars, seen = one_char(out[-1]), one_char(item.node)
            if chars is not None and seen is not None:
                out.pop()
                chars = _common(chars, seen, item.holds)
                item = Chars(chars) if chars else nodes.NEVER
        out.append(item)
    return out


def one_char(node: Node) -> CharSet | None:
    """The character set of a node that reads exactly one character; None for other nodes."""
    if isinstance(node, Chars):
        return node.chars
    if isinstance(node, LiteralText):
        text = node.data.decode()
        return charset([(ord(text), ord(text))]) if len(text) == 1 else None
    return None


def _common(chars: CharSet, seen: CharSet, holds: bool) -> CharSet:
    return chars & (seen if holds else seen.complement())
