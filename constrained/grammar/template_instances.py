"""Templates whose arguments lead back to the call: each such call becomes a rule of its own, as in lark.

A template is otherwise entered with its arguments, and a call counts as finishable only if all of them are. An argument
that calls the rule it stands in, or can never be finished itself, breaks that: the template may not need it. With the
argument written into the template's body, every analysis sees what is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from constrained.grammar.analysis import productive_rules
from constrained.grammar.nodes import Call, Node, Related, Rule, Var, find, shape
from constrained.grammar.traverse import reachable, rebuild

MOST = 1_000
"""Rules made; a template that hands itself ever longer arguments is left as it is beyond that."""


def write_out_instances(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Return `rules` with a rule for each call whose arguments lead back to it, or to no text."""
    if not any(call.args and any(find(arg, Call) for arg in call.args) for r in rules.values() for call in _calls(r)):
        return dict(rules)
    productive = productive_rules(rules)
    reach: dict[str, set[str]] = {}
    out = dict(rules)
    made: dict[tuple, str] = {}
    origin: dict[str, str] = {}
    work = list(rules)

    def reached(name: str) -> set[str]:
        if name not in reach:
            reach[name] = set(reachable(rules, rules[name].body)) | {name}
        return reach[name]

    def write_out(node: Node, rule: str) -> Node:
        if not isinstance(node, Call) or not node.args:
            return node
        args = tuple(rebuild(arg, partial(write_out, rule=rule)) for arg in node.args)
        called = {call.rule for arg in args for call in find(arg, Call) if call.rule in rules}
        closed = not any(find(arg, Var) or find(arg, Related) for arg in args)
        odd = any(name not in productive or rule in reached(name) or node.rule in reached(name) for name in called)
        if not closed or not odd or len(made) >= MOST:
            return Call(node.rule, args)
        key = (node.rule, *map(shape, args))
        if key not in made:
            made[key] = name = f"{node.rule}$of{len(made)}"
            template = rules[node.rule]
            values = dict(zip(template.params, args))
            body = rebuild(template.body, partial(_with, values=values))
            out[name] = Rule(name, body, (), template.line)
            origin[name] = rule
            work.append(name)
        return Call(made[key])

    for name in work:
        rule = out[name]
        if any(call.args for call in _calls(rule)):
            written = rebuild(rule.body, partial(write_out, rule=origin.get(name, name)))
            out[name] = Rule(name, written, rule.params, rule.line)
    return out


def _calls(rule: Rule) -> list[Call]:
    return find(rule.body, Call)


def _with(node: Node, values: Mapping[str, Node]) -> Node:
    """Return a leaf with its parameters replaced."""
    if isinstance(node, Var):
        return values.get(node.name, node)
    if isinstance(node, Call) and node.args:
        return Call(node.rule, tuple(rebuild(arg, partial(_with, values=values)) for arg in node.args))
    return node
