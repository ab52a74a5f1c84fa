"""What can stand behind a rule or a token: the first and follow sets of LL(1) parsing, over classes of characters.

A set is an integer with one bit for each class, one for the end of the text, and one for each token that looks around.
(Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from constrained.grammar import nodes
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.traverse import Unit, call_arguments, fold, least_fixpoint, units


class FollowSets:
    """The follow sets of everything that a text of `start` passes through.

    Parameters
    ----------
    rules : mapping
    start : Node
    classes : sequence of CharSet
        Bit i of a set stands for ``classes[i]``; the next one for the end of the text.
    leaves : mapping
        Node of another kind -> its first set; slots' values can begin with anything.

    Attributes
    ----------
    end : int
        The bit for the end of the text; in a first set, for the empty text.
    of : dict
        Rule, (rule, parameter), or node of `leaves` -> its follow set.
    """

    def __init__(self, rules: Mapping[str, Rule], start: Node, classes: Sequence[CharSet], leaves: Mapping[Node, int]):
        self.rules, self.classes, self.leaves = rules, classes, dict(leaves)
        self.end = 1 << len(classes)
        self.of: dict[Unit | Node, int] = {}
        self.pieces = units(rules)
        self.firsts = least_fixpoint(self.pieces, self._first_of_unit, 0)
        self.callers = {unit: {rule for rule, _ in given} for unit, given in call_arguments(rules).items()}
        self.work: list[str] = []
        self.visit(start, "", self.end)
        while self.work:
            name = self.work.pop()
            self.visit(rules[name].body, name, self.of[name])

    def _first_of_unit(self, unit: Unit, found: Mapping[Unit, int]) -> int:
        return _either(self.first(node, rule, found) for rule, node in self.pieces[unit])

    def first(self, node: Node, rule: str, found: Mapping[Unit, int]) -> int:
        """Return the first set of `node`, which stands in `rule`, from those `found` of rules and parameters."""

        def leaf(node: Node) -> int:
            match node:
                case nodes.Call():
                    return found.get(node.rule, 0)
                case nodes.Var():
                    return found.get((rule, node.name), 0)
            if node not in self.leaves:
                self.leaves[node] = self._first_of_text(node)
            return self.leaves[node]

        def seq(firsts: Iterable[int]) -> int:
            out = self.end
            for first in reversed(list(firsts)):
                out = self._then(first, out)
            return out

        def repeat(node: nodes.Repeat, item: int) -> int:
            return item | self.end if node.low == 0 else item

        return fold(node, leaf, seq, _either, repeat)

    def _first_of_text(self, node: Node) -> int:
        match node:
            case nodes.Chars():
                return bits(node.chars, self.classes)
            case nodes.Literal(data=data):
                return bits(_firsts([data]), self.classes)
            case nodes.Choices(values=values):
                return bits(_firsts(values), self.classes) | (self.end if b"" in values else 0)
        return -1

    def _then(self, first: int, rest: int) -> int:
        return (first & ~self.end) | rest if first & self.end else first

    def visit(self, node: Node, rule: str, after: int) -> None:
        """Note what can follow everything in `node`, which stands in `rule` with `after` behind it."""
        match node:
            case nodes.Seq():
                for item in reversed(node.items):
                    self.visit(item, rule, after)
                    after = self._then(self.first(item, rule, self.firsts), after)
            case nodes.Alt():
                for item in node.items:
                    self.visit(item, rule, after)
            case nodes.Repeat():
                again = 0 if node.high == 1 else self.first(node.item, rule, self.firsts) & ~self.end
                self.visit(node.item, rule, after | again)
            case nodes.Var():
                if self._grow((rule, node.name), after):
                    self.work.extend(self.callers.get((rule, node.name), set()).intersection(self.of))
            case nodes.Call():
                if self._grow(node.rule, after):
                    self.work.append(node.rule)
                for param, arg in zip(self.rules[node.rule].params, node.args):
                    if (node.rule, param) in self.of:
                        self.visit(arg, rule, self.of[node.rule, param])
            case _ if node in self.leaves:
                self._grow(node, after)

    def _grow(self, unit: Unit | Node, after: int) -> bool:
        """Add to a follow set; whether it is new."""
        known = self.of.get(unit)
        self.of[unit] = after | (known or 0)
        return self.of[unit] != known


def bits(chars: CharSet, classes: Sequence[CharSet]) -> int:
    """Return the set of those `classes` that have some of `chars`."""
    return sum(1 << i for i, one in enumerate(classes) if one.meets(chars))


def _firsts(texts: Iterable[bytes]) -> CharSet:
    return charset((ord(text.decode()[0]),) * 2 for text in texts if text)


def _either(found: Iterable[int]) -> int:
    out = 0
    for one in found:
        out |= one
    return out
