"""A path may be over, but that is no action: the texts of a grammar, the empty one left out."""

from __future__ import annotations

from constrained.grammar import STEP, Grammar
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule


def nonempty(grammar: Grammar) -> Grammar:
    """`grammar` without the empty text; `grammar` itself if it has none."""
    rules = dict(grammar.rules)
    start = _begun(grammar.start, rules)
    return grammar if start is grammar.start else Grammar(rules, start, grammar.slots, grammar.bindings, grammar.limits)


def _begun(node: Node, rules: dict[str, Rule]) -> Node:
    """`node` without the empty text; the same object if it has none. Adds the rules it needs."""
    if not _nullable(node, rules, frozenset()):
        return node
    if isinstance(node, n.Alt):
        return n.alt([_begun(item, rules) for item in node.items])
    if isinstance(node, n.Seq):  # all before the first item with text may be left out
        return n.alt([n.seq([_begun(item, rules), *node.items[i + 1 :]]) for i, item in enumerate(node.items)])
    if isinstance(node, n.Repeat):
        again = n.repeat(node.item, 0, None if node.high is None else node.high - 1)
        return n.seq([_begun(node.item, rules), again])
    if isinstance(node, n.Scoped):
        value = _value(node)
        return _begun(value, rules) if value else n.Scoped(_begun(node.node, rules), node.values)
    if isinstance(node, n.Call):
        name = f"{node.rule}, not empty"
        if name not in rules:
            rule = rules[node.rule]
            rules[name] = Rule(name, n.NEVER, rule.params, rule.line)  # for calls of itself
            rules[name] = Rule(name, _begun(rule.body, rules), rule.params, rule.line)
        return n.Call(name, node.args)
    return n.NEVER


def _nullable(node: Node, rules: dict[str, Rule], path: frozenset[str]) -> bool:
    if isinstance(node, n.Seq):
        return all(_nullable(item, rules, path) for item in node.items)
    if isinstance(node, n.Alt):
        return any(_nullable(item, rules, path) for item in node.items)
    if isinstance(node, n.Repeat):
        return node.low == 0 or _nullable(node.item, rules, path)
    if isinstance(node, n.Scoped):
        return _nullable(_value(node) or node.node, rules, path)
    if isinstance(node, n.Call):
        return node.rule not in path and _nullable(rules[node.rule].body, rules, path | {node.rule})
    return isinstance(node, n.Slot) and node.name == STEP


def _value(node: n.Scoped) -> n.Scoped | None:
    """What a place stands for that is but a parameter: where an action led back to."""
    value = node.values.get(node.node.name) if isinstance(node.node, n.Var) else None
    return value if isinstance(value, n.Scoped) else None
