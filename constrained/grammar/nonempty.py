"""Remove the empty text from pieces of a grammar."""

from __future__ import annotations

from collections.abc import Mapping

from constrained.grammar import nodes
from constrained.grammar.analysis import Nullable, scoped_value
from constrained.grammar.nodes import Node, Rule, RuleRef, find


def nonempty_name(rule: str) -> str:
    """The name of the rule that reads the nonempty texts of `rule`."""
    return f"{rule}$text"


def without_empty(node: Node, nullable: Nullable) -> Node:
    """`node` without the empty text; the same object if it has none.

    Template parameters count as not empty. The rules that it calls, such as `rule$text`, are those of
    :func:`nonempty_rules`.
    """
    if not nullable.always(node, ""):
        return node
    match node:
        case nodes.Alt():
            return nodes.alt([without_empty(item, nullable) for item in node.items])
        case nodes.Seq():  # every item is nullable; one of them is the first that isn't empty
            items = [without_empty(item, nullable) for item in node.items]
            return nodes.alt([nodes.seq([item, *node.items[i + 1 :]]) for i, item in enumerate(items)])
        case nodes.Repeat():
            others = nodes.repeat(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
            return nodes.seq([without_empty(node.item, nullable), others])  # the rounds before it were empty
        case nodes.Choices():
            return nodes.choices(node.values[1:], strings=node.strings)
        case nodes.Except():
            return without_empty(node.written_out, nullable)
        case nodes.Scoped():
            if value := scoped_value(node):
                return without_empty(value, nullable)
            return nodes.Scoped(without_empty(node.node, nullable), node.values)
        case RuleRef():
            return RuleRef(nonempty_name(node.rule), node.args)
    return nodes.NEVER


def nonempty_rules(rules: Mapping[str, Rule], nullable: Nullable, node: Node) -> dict[str, Rule]:
    """The nonempty rules that `node` calls, directly or indirectly, and that `rules` doesn't contain."""
    out: dict[str, Rule] = {}
    originals = {nonempty_name(name): rule for name, rule in rules.items() if nullable.rule(name)}
    work = [node]
    for piece in work:
        for call in find(piece, RuleRef):
            rule = originals.get(call.rule)
            if rule is not None and call.rule not in rules and call.rule not in out:
                body = without_empty(rule.body, nullable)
                out[call.rule] = Rule(call.rule, body, rule.params, rule.line)
                work.append(body)
    return out
