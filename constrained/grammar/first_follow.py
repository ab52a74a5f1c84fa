"""First and follow sets: what a piece of a grammar can begin with, and what can follow it.

Subclasses choose the members of the sets: classes of characters here, actions in `constrained.knowledge`.
(Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from constrained.grammar import nodes
from constrained.grammar.charset import CharSet, first_characters
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.traverse import Pieces, Unit, fold, least_fixpoint, units

S = TypeVar("S")


class FollowSets(ABC, Generic[S]):
    """The first and follow sets of every part of a grammar that a text of `start` can reach.

    Parameters
    ----------
    pieces : mapping
        See :func:`~constrained.grammar.traverse.units`.
    start : Node
    nothing : set
        The empty set.
    end : set
        The set whose only member is the end of the text. In a first set, that member stands for the empty text.
    known : collection
        Units whose first sets `leaf` returns for calls of them.

    Attributes
    ----------
    firsts : mapping
        Rule or (rule, parameter) -> its first set.
    of : dict
        Rule, (rule, parameter), or node of another kind -> its follow set.
    """

    def __init__(self, pieces: Mapping[Unit, Pieces], start: Node, nothing: S, end: S, known: Container[Unit] = ()):
        self.pieces, self.nothing, self.end = pieces, nothing, end
        self.firsts: Mapping[Unit, S] = {}
        open_pieces = {unit: found for unit, found in pieces.items() if unit not in known}
        self.firsts = least_fixpoint(open_pieces, self._first_of_unit, nothing)
        self.of: dict[Unit | Node, S] = {}
        self._work: list[Unit] = []  # units whose follow sets have grown
        self._visit(start, "", end)
        for unit in self._work:  # the list grows during the loop
            for rule, node in pieces[unit]:
                self._visit(node, rule, self.of[unit])

    def _first_of_unit(self, unit: Unit, found: Mapping[Unit, S]) -> S:
        return self.union(self.first(node, rule, found) for rule, node in self.pieces[unit])

    @abstractmethod
    def leaf(self, node: Node) -> S | None:
        """The first set of a node that is not a sequence, alternative or repeat; None for that of its unit."""

    @abstractmethod
    def union(self, sets: Iterable[S]) -> S:
        """The union of `sets`."""

    @abstractmethod
    def split(self, found: S) -> tuple[S, bool]:
        """A set without the end, and whether the end was in it."""

    def first(self, node: Node, rule: str, found: Mapping[Unit, S] | None = None) -> S:
        """The first set of `node`, a part of `rule`, given the first sets of units (default: the final ones)."""
        known = self.firsts if found is None else found

        def leaf(node: Node) -> S:
            own = self.leaf(node)
            return known.get(_unit(node, rule), self.nothing) if own is None else own  # type: ignore[arg-type]

        def seq(firsts: Iterable[S]) -> S:
            out = self.end
            for first in reversed(list(firsts)):
                out = self.then(first, out)
            return out

        def repeat(node: nodes.Repeat, item: S) -> S:
            return self.union((item, self.end)) if node.low == 0 else item

        return fold(node, leaf, seq, self.union, repeat)

    def then(self, first: S, rest: S) -> S:
        """The first set of a sequence: `first`, and also `rest` if `first` contains the end."""
        bare, ends = self.split(first)
        return self.union((bare, rest)) if ends else first

    def _visit(self, node: Node, rule: str, after: S) -> None:
        """Add to the follow sets of all nodes in `node`, a part of `rule` that `after` can follow."""
        match node:
            case nodes.Seq():
                for item in reversed(node.items):
                    self._visit(item, rule, after)
                    after = self.then(self.first(item, rule), after)
            case nodes.Alt():
                for item in node.items:
                    self._visit(item, rule, after)
            case nodes.Repeat():
                again = self.nothing if node.high == 1 else self.split(self.first(node.item, rule))[0]
                self._visit(node.item, rule, self.union((again, after)))
            case _:
                unit = _unit(node, rule)
                grown = self.union((self.of[unit], after)) if unit in self.of else after
                if unit not in self.of or grown != self.of[unit]:
                    self.of[unit] = grown
                    if not isinstance(unit, Node):
                        self._work.append(unit)


def _unit(node: Node, rule: str) -> Unit | Node:
    return node.rule if isinstance(node, nodes.RuleRef) else (rule, node.name) if isinstance(node, nodes.Var) else node


class CharacterFollowSets(FollowSets[int]):
    """First and follow sets of characters, as bits: one for each class, one for the end, and those used in `leaves`.

    Parameters
    ----------
    rules : mapping
    start : Node
    classes : sequence of CharSet
        Bit i of a set stands for ``classes[i]``; the bit after the last class stands for the end of the text.
    leaves : mapping
        Node of another kind -> its first set. Values of slots can begin with anything.
    """

    def __init__(self, rules: Mapping[str, Rule], start: Node, classes: Sequence[CharSet], leaves: Mapping[Node, int]):
        self.classes, self._leaves = classes, dict(leaves)
        super().__init__(units(rules), start, 0, 1 << len(classes))

    def leaf(self, node: Node) -> int | None:
        if isinstance(node, (nodes.RuleRef, nodes.Var)):
            return None
        if node not in self._leaves:
            self._leaves[node] = self._first_of_text(node)
        return self._leaves[node]

    def _first_of_text(self, node: Node) -> int:
        match node:
            case nodes.Chars():
                return bits(node.chars, self.classes)
            case nodes.LiteralText(data=data):
                return bits(first_characters([data]), self.classes)
            case nodes.Choices(values=values):
                return bits(first_characters(values), self.classes) | (self.end if b"" in values else 0)
        return -1

    def union(self, sets: Iterable[int]) -> int:
        out = 0
        for members in sets:
            out |= members
        return out

    def split(self, found: int) -> tuple[int, bool]:
        return found & ~self.end, bool(found & self.end)


def bits(chars: CharSet, classes: Sequence[CharSet]) -> int:
    """The set of those `classes` that have a character in `chars`."""
    return sum(1 << i for i, members in enumerate(classes) if members.meets(chars))
