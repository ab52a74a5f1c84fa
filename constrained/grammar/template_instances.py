"""Calls of templates that become rules of their own, as in lark: the arguments are written into the template's body.

A template is otherwise entered with its arguments, and a call counts as finishable only if all of them are. Where an
argument has no text, the template may not need it: its rule has `NEVER` in the parameter's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import attrgetter

from constrained.grammar.analysis import TextlessArguments
from constrained.grammar.nodes import LEAVES, NEVER, LiteralText, Node, Related, Rule, RuleRef, Seq, Var, find, shape
from constrained.grammar.traverse import reachable, rebuild

MOST = 1_000
"""Rules made; a template that hands itself ever longer arguments is left as it is beyond that."""


def write_out_instances(rules: Mapping[str, Rule], every: bool = False) -> dict[str, Rule]:
    """`rules` with a rule for each call that has arguments without text; with `every`, for all that can be."""
    out = dict(rules)
    if not any(map(attrgetter("params"), rules.values())):
        return out
    calls = (call for rule in rules.values() for call in rule.find(RuleRef))
    arguments = [arg for call in calls for arg in call.args if type(arg) not in LEAVES]
    if not (arguments or every):
        return out
    textless = TextlessArguments(out)  # which is asked about the rules made here, too
    if not every and all(map(textless.has_text, arguments)):
        return out
    # A rule is made once for each template with the same arguments written in. It may call templates in its turn, so it
    # is looked through like the others: `work` grows meanwhile.
    made: dict[tuple, str] = {}
    work = list(rules)

    def write_out(node: Node) -> Node:
        if not isinstance(node, RuleRef) or not node.args:
            return node
        template = out[node.rule]
        relations = template.find(Related) if every else []
        related = {var.name for relation in relations for var in find(relation, Var)}
        # Written in are, with `every`, arguments that may lead to left recursion (those with calls; a relation refuses
        # them), or are only text (unless the template has relations); and always those without any text.
        values: dict[str, Node] = {
            param: arg
            for param, arg in zip(template.params, node.args)
            if every
            and param not in related
            and ((find(arg, RuleRef) and _is_closed(arg)) or (not relations and isinstance(arg, LiteralText)))
        }
        if len(made) >= MOST:
            values.clear()
        arguments = zip(template.params, node.args)
        values.update((param, NEVER) for param, arg in arguments if not textless.has_text(arg))
        if not values:
            return node
        key = (node.rule, *((param, shape(arg)) for param, arg in values.items()))
        left = [param not in values for param in template.params]
        if key not in made:
            made[key] = name = f"{node.rule}$of{len(made)}"
            body = with_values(template.body, values)
            out[name] = Rule(name, body, tuple(compress(template.params, left)), template.line)
            work.append(name)
        return RuleRef(made[key], tuple(compress(node.args, left)))

    for name in work:
        rule = out[name]
        if any(call.args for call in rule.find(RuleRef)):
            written = rebuild(rule.body, write_out)
            out[name] = Rule(name, written, rule.params, rule.line)
    if every:  # templates that nobody calls any more may still be left-recursive
        used = reachable(out, Seq(tuple(RuleRef(name) for name, rule in out.items() if not rule.params)))
        out = {name: rule for name, rule in out.items() if name in used}
    return out


def _is_closed(arg: Node) -> bool:
    """Whether an argument uses no parameters of the rule that gives it."""
    return not find(arg, Var) and not find(arg, Related)


def with_values(node: Node, values: Mapping[str, Node]) -> Node:
    """A node with its parameters replaced."""

    def written(leaf: Node) -> Node:
        if isinstance(leaf, Related):  # no value is related to one that there can't be
            return NEVER if any(values.get(var.name) is NEVER for var in find(leaf, Var)) else leaf
        return values.get(leaf.name, leaf) if isinstance(leaf, Var) else leaf

    return rebuild(node, written)
