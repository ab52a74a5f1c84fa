"""Removal of what can never be completed, so that no mask leads into a dead end."""

from __future__ import annotations

from math import isqrt

from constrained.grammar import nodes
from constrained.grammar.nodes import NEVER, Alt, Call, Node, Repeat, Rule, Seq


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
