"""Strongly connected components (Tarjan, 1972): names that lead to each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isqrt

from constrained.grammar import nodes
from constrained.grammar.nodes import NEVER, Alt, Call, Choices, Node, Related, Repeat, Rule, Seq, Slot, Var

# MERGED DOC: """Removal of what can never be completed, so that no mask leads into a dead end."""


def components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The components of a graph, each one before those that lead to it.

    Parameters
    ----------
    edges : mapping of str to iterable of str
        Name -> the names it leads to; those that are no key themselves are left out.
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    waiting: set[str] = set()
    out: list[list[str]] = []
    for root in edges:
        if root in order:
            continue
        work = [(root, iter(edges[root]))]
        order[root] = lowest[root] = len(order)
        open_names.append(root)
        waiting.add(root)
        while work:
            name, rest = work[-1]
            other = next((o for o in rest if o in edges and (o not in order or o in waiting)), None)
            if other is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    found = []
                    while not found or found[-1] != name:
                        found.append(open_names.pop())
                    waiting.difference_update(found)
                    out.append(found[::-1])
            elif other in order:
                lowest[name] = min(lowest[name], order[other])
            else:
                order[other] = lowest[other] = len(order)
                open_names.append(other)
                waiting.add(other)
                work.append((other, iter(edges[other])))
    return out


def cyclic_components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The components whose names come round to themselves."""
    return [found for found in components(edges) if len(found) > 1 or found[0] in edges[found[0]]]


def shortest_cycle(first: str, edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on a shortest way from `first` back to itself; `first` alone if there is none."""
    before: dict[str, str] = {}
    work = [first]
    for top in work:
        for other in edges.get(top, ()):
            if other == first:
                path = [top]
                while path[-1] != first:
                    path.append(before[path[-1]])
                return path[::-1]
            if other not in before:
                before[other] = top
                work.append(other)
    return [first]


def productive_rules(rules: dict[str, Rule]) -> set[str]:
    """Rules from which some finite text can be derived (slots taken as bound)."""
    callers: dict[str, set[str]] = {}
    for name, rule in rules.items():
        for node in nodes.walk(rule.body):
            if isinstance(node, Call):
                callers.setdefault(node.rule, set()).add(name)
    found: set[str] = set()
    work = list(rules)
    while work:
        name = work.pop()
        if name not in found and _productive(rules[name].body, found):
            found.add(name)
            work.extend(callers.get(name, ()))
    return found


def trim(rules: dict[str, Rule], good: set[str]) -> dict[str, Rule]:
    """`rules` without alternatives that no text completes; `good`: their `productive_rules`."""
    return {n: Rule(n, _prune(r.body, good), r.params, r.line) if n in good else r for n, r in rules.items()}


def _productive(node: Node, good: set[str]) -> bool:
    if isinstance(node, Seq):
        return all(_productive(i, good) for i in node.items)
    if isinstance(node, Alt):
        return any(_productive(i, good) for i in node.items)
    if isinstance(node, Repeat):
        return node.low == 0 or _productive(node.item, good)
    if isinstance(node, Call):
        return node.rule in good and all(_productive(a, good) for a in node.args)
    return True


_LONG = 256


def _nested(node: Node) -> Node:
    """A long sequence as one of shorter ones: the automaton makes a sequence of what is left after each item."""
    if not isinstance(node, Seq) or len(node.items) <= _LONG:
        return node
    size = max(32, isqrt(len(node.items)))
    return Seq(tuple(Seq(node.items[i : i + size]) for i in range(0, len(node.items), size)))


def _prune(node: Node, good: set[str]) -> Node:
    if not _productive(node, good):
        return NEVER
    if isinstance(node, Seq):
        return _nested(nodes.seq([_prune(i, good) for i in node.items]))
    if isinstance(node, Alt):
        kept = [_prune(i, good) for i in node.items if _productive(i, good)]
        return kept[0] if len(kept) == 1 else Alt(tuple(kept))
    if isinstance(node, Repeat):
        return nodes.repeat(_prune(node.item, good), node.low, node.high)
    return node


Unit = "str | tuple[str, str]"  # a rule, or a (rule, parameter)


class Nullable:
    """Which pieces of grammar may be the empty text.

    Parameters
    ----------
    rules : dict of str to Rule
    slots : frozenset of str
        Slots that are bound to something that may be empty.
    """

    def __init__(self, rules: dict[str, Rule], slots: frozenset[str] = frozenset()):
        self._slots = slots
        arguments: dict[tuple[str, str], list[tuple[Node, str]]] = {}
        for rule in rules.values():
            for node in nodes.walk(rule.body):
                if isinstance(node, Call) and node.args:
                    for name, arg in zip(rules[node.rule].params, node.args):
                        arguments.setdefault((node.rule, name), []).append((arg, rule.name))
        bodies: dict[Unit, list[tuple[Node, str]]] = {name: [(r.body, name)] for name, r in rules.items()}
        self._sure = self._fixed_point(bodies)
        self._maybe = self._fixed_point({**bodies, **arguments})

    def rule(self, name: str) -> bool:
        """Whether the rule has the empty text, whatever its arguments."""
        return name in self._sure

    def sure(self, node: Node, rule: str) -> bool:
        """Whether `node`, standing in `rule`, has the empty text whatever the parameters are."""
        return self._of(node, rule, self._sure)

    def maybe(self, node: Node, rule: str) -> bool:
        """Whether it has the empty text with some arguments that some call gives."""
        return self._of(node, rule, self._maybe)

    def _of(self, node: Node, rule: str, found: set) -> bool:
        if isinstance(node, Seq):
            return all(self._of(i, rule, found) for i in node.items)
        if isinstance(node, Alt):
            return any(self._of(i, rule, found) for i in node.items)
        if isinstance(node, Repeat):
            return node.low == 0 or self._of(node.item, rule, found)
        if isinstance(node, Call):
            return node.rule in found
        if isinstance(node, Var):
            return (rule, node.name) in found
        if isinstance(node, (Slot, Related)):
            return (node if isinstance(node, Slot) else node.slot).name in self._slots
        return isinstance(node, Choices) and not node.values[0]

    def _fixed_point(self, pieces: dict) -> set:
        users: dict[Unit, set] = {}
        for unit, given in pieces.items():
            for piece, rule in given:
                for node in nodes.walk(piece):
                    if isinstance(node, Call):
                        users.setdefault(node.rule, set()).add(unit)
                    elif isinstance(node, Var):
                        users.setdefault((rule, node.name), set()).add(unit)
        found: set = set()
        work = list(pieces)
        while work:
            unit = work.pop()
            if unit not in found and any(self._of(piece, rule, found) for piece, rule in pieces[unit]):
                found.add(unit)
                work.extend(users.get(unit, ()))
        return found
