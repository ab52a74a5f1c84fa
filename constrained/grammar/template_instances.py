"""Templates with arguments that can't be finished by themselves: each such call becomes a rule of its own, as in lark.

A template is otherwise entered with its arguments, and a call counts as finishable only if all of them are. An argument
that only leads back to the call (``r: t{r}``), or has no text, breaks that: the template may not need it. With the
argument written into the template's body, every analysis sees what is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from constrained.grammar.analysis import productive_rules
from constrained.grammar.nodes import Call, Node, Related, Rule, Var, find, shape
from constrained.grammar.traverse import rebuild

MOST = 1_000
"""Rules made; a template that hands itself ever longer arguments is left as it is beyond that."""


def write_out_instances(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Return `rules` with a rule for each call that has such arguments."""
    if not any(call.args and any(find(arg, Call) for arg in call.args) for r in rules.values() for call in _calls(r)):
        return dict(rules)
    productive = productive_rules(rules)
    out = dict(rules)
    made: dict[tuple, str] = {}
    work = list(rules)

    def write_out(node: Node) -> Node:
        if not isinstance(node, Call) or not node.args:
            return node
        args = tuple(rebuild(arg, write_out) for arg in node.args)
        called = {call.rule for arg in args for call in find(arg, Call) if call.rule in rules}
        closed = not any(find(arg, Var) or find(arg, Related) for arg in args)
        if not closed or called <= productive or len(made) >= MOST:
            return Call(node.rule, args)
        key = (node.rule, *map(shape, args))
        if key not in made:
            made[key] = name = f"{node.rule}$of{len(made)}"
            template = rules[node.rule]
            values = dict(zip(template.params, args))
            body = rebuild(template.body, partial(_with, values=values))
            out[name] = Rule(name, body, (), template.line)
            work.append(name)
        return Call(made[key])

    for name in work:
        rule = out[name]
        if any(call.args for call in _calls(rule)):
            written = rebuild(rule.body, write_out)
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
