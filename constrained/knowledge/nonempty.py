"""A path may be over, but that is no action: the texts of a grammar, the empty one left out."""

from __future__ import annotations

from constrained.grammar import STEP, Grammar
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule


def nonempty(grammar: Grammar) -> Grammar:
    """`grammar` without the empty text; `grammar` itself if it has none."""
    start = _begun(grammar.start, grammar.of_rules(_nullable_rules))
    return grammar if start is grammar.start else grammar.extended(_with_nonempty, start)


def _with_nonempty(rules: dict[str, Rule]) -> dict[str, Rule]:
    """`rules`, and each that has the empty text without it, under another name."""
    empty = _nullable_rules(rules)
    named = {_name(r.name): Rule(_name(r.name), _begun(r.body, empty), r.params, r.line) for r in map(rules.get, empty)}
    return {**rules, **named}


def _name(rule: str) -> str:
    return f"{rule}, not empty"


def _begun(node: Node, empty: frozenset[str]) -> Node:
    """`node` without the empty text, which the rules `empty` have; the same object if it has none."""
    if not _nullable(node, empty):
        return node
    if isinstance(node, n.Alt):
        return n.alt([_begun(item, empty) for item in node.items])
    if isinstance(node, n.Seq):  # all before the first item with text may be left out
        return n.alt([n.seq([_begun(item, empty), *node.items[i + 1 :]]) for i, item in enumerate(node.items)])
    if isinstance(node, n.Repeat):
        again = n.repeat(node.item, 0, None if node.high is None else node.high - 1)
        return n.seq([_begun(node.item, empty), again])
    if isinstance(node, n.Scoped):
        value = _value(node)
        return _begun(value, empty) if value else n.Scoped(_begun(node.node, empty), node.values)
    return n.Call(_name(node.rule), node.args) if isinstance(node, n.Call) else n.NEVER


def _nullable_rules(rules: dict[str, Rule]) -> frozenset[str]:
    """The rules that have the empty text: least fixed point."""
    found: frozenset[str] = frozenset()
    while more := frozenset(name for name, rule in rules.items() if _nullable(rule.body, found)) - found:
        found |= more
    return found


def _nullable(node: Node, empty: frozenset[str]) -> bool:
    if isinstance(node, n.Seq):
        return all(_nullable(item, empty) for item in node.items)
    if isinstance(node, n.Alt):
        return any(_nullable(item, empty) for item in node.items)
    if isinstance(node, n.Repeat):
        return node.low == 0 or _nullable(node.item, empty)
    if isinstance(node, n.Scoped):
        return _nullable(_value(node) or node.node, empty)
    if isinstance(node, n.Call):
        return node.rule in empty
    return isinstance(node, n.Slot) and node.name == STEP


def _value(node: n.Scoped) -> n.Scoped | None:
    """What a place stands for that is but a parameter: where an action led back to."""
    value = node.values.get(node.node.name) if isinstance(node.node, n.Var) else None
    return value if isinstance(value, n.Scoped) else None
