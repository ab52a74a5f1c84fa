"""What is left to read of a regular expression: a piece of it, then what comes after that piece.

Continuations are numbered, so that equal ones are one number: the variables of the formulas in `obligations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from constrained.grammar import nodes
from constrained.grammar.assertions import Atomic, Look
from constrained.grammar.nodes import Node

YES, END = 0, 1
"""Nothing is left to ask; the expression's own text is at its end."""

FIRST = ("first", None)
"""In place of a piece: the end of an atomic group. What comes after it is a pair, see `Continuations.first`."""


@dataclass(frozen=True)
class Left:
    """One continuation.

    Attributes
    ----------
    piece : tuple
        ("node", node), ("items", sequence, from), ("times", repeat, low, high) or ("texts", texts), or `FIRST`.
    then : int or (int, int)
        The continuation after it.
    plain : bool
        Nothing in it looks around, and the expression ends with it.
    looks_back : bool
    asked : bool
        It belongs to an assertion, not to what is read.
    in_order : bool
        It is in an atomic group, where only the first way counts.
    """

    piece: tuple
    then: int | tuple[int, int]
    plain: bool
    looks_back: bool
    asked: bool
    in_order: bool


class Continuations:
    """The continuations of one expression, by number; `count` is told of each new one."""

    def __init__(self, count: Callable[[int], None]):
        self.count = count
        self.left = [
            Left((), 0, plain=False, looks_back=False, asked=True, in_order=False),
            Left((), 0, plain=True, looks_back=False, asked=False, in_order=False),
        ]
        self._numbers: dict[tuple, int] = {}
        self._looks: dict[Node, tuple[bool, bool]] = {}

    def number(self, piece: tuple, then: int) -> int:
        """Of: read `piece`, then go on with continuation `then`."""
        found = self._numbers.get((piece, then))
        if found is None:
            kind, node, *rest = piece
            inside = () if kind == "texts" else node.items[rest[0] :] if kind == "items" else (node,)
            looks = [self._looks_in(n) for n in inside]
            after = self.left[then]
            found = self._new(
                Left(
                    piece,
                    then,
                    plain=after.plain and not any(some for some, _ in looks),
                    looks_back=after.looks_back or any(back for _, back in looks),
                    asked=after.asked,
                    in_order=after.in_order,
                )
            )
        return found

    def first(self, some: int, good: int) -> int:
        """The end of an atomic group: `some` for that it is come to, `good` for what must hold after the first way to it."""
        found = self._numbers.get((FIRST, (some, good)))
        if found is None:
            back = self.left[some].looks_back or self.left[good].looks_back
            found = self._new(Left(FIRST, (some, good), False, back, self.left[good].asked, in_order=True))
        return found

    def any_way(self, number: int) -> int:
        """Continuation `number`, in an atomic group, as far as the group's end, by whatever way."""
        left = self.left[number]
        return left.then[0] if left.piece == FIRST else self.number(left.piece, self.any_way(left.then))

    def node(self, number: int) -> Node:
        """A plain continuation as one node."""
        items: list[Node] = []
        while number != END:
            (kind, node, *rest), number = self.left[number].piece, self.left[number].then
            if kind == "texts":
                items.append(nodes.choices(t.encode() for t in node))
            elif kind == "items":
                items += node.items[rest[0] :]
            elif kind == "times":
                items.append(nodes.repeat(node.item, *rest))
            else:
                items.append(node)
        return nodes.seq(items)

    def _new(self, left: Left) -> int:
        self.count(1)
        number = self._numbers[left.piece, left.then] = len(self.left)
        self.left.append(left)
        return number

    def _looks_in(self, node: Node) -> tuple[bool, bool]:
        """Whether anything in `node` looks around, and whether anything looks back."""
        found = self._looks.get(node)
        if found is None:
            asks = isinstance(node, (Look, Atomic))
            inner = [self._looks_in(n) for n in ((node.node,) if asks else nodes.children(node))]
            some = asks or any(s for s, _ in inner)
            back = (isinstance(node, Look) and node.behind is not None) or any(b for _, b in inner)
            found = self._looks[node] = some, back
        return found
