"""Templates with arguments that can't be finished by themselves: each such call becomes a rule of its own, as in lark.

A template is otherwise entered with its arguments, and a call counts as finishable only if all of them are. An argument
that only leads back to the call (``r: t{r}``), or has no text, breaks that: the template may not need it. With the
argument written into the template's body, every analysis sees what is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

from constrained.grammar.analysis import productive_rules
from constrained.grammar.nodes import Call, Literal, Node, Related, Rule, Seq, Var, find, shape
from constrained.grammar.traverse import reachable, rebuild

MOST = 1_000
"""Rules made; a template that hands itself ever longer arguments is left as it is beyond that."""


def write_out_instances(rules: Mapping[str, Rule], every: bool = False) -> dict[str, Rule]:
    """Return `rules` with a rule for each call that has such arguments; with `every`, for all that can have one."""
    if not any(rule.params for rule in rules.values()):
        return dict(rules)
    calls = (call for rule in rules.values() for call in rule.find(Call))
    if not every and not any(find(arg, Call) for call in calls for arg in call.args):
        return dict(rules)
    productive = productive_rules(rules)
    out = dict(rules)
    made: dict[tuple, str] = {}
    work = list(rules)

    def write_out(node: Node) -> Node:
        if not isinstance(node, Call) or not node.args:
            return node
        template = out[node.rule]
        texts = every and not template.find(Related)
        values = {
            param: arg
            for param, arg in zip(template.params, node.args)
            if (find(arg, Call) and _is_closed(arg)) or (texts and isinstance(arg, Literal))
        }
        called = {call.rule for arg in values.values() for call in find(arg, Call)}
        if not values or (called <= productive and not every) or len(made) >= MOST:
            return node
        key = (node.rule, *((param, shape(arg)) for param, arg in values.items()))
        left = [param not in values for param in template.params]
        if key not in made:
            made[key] = name = f"{node.rule}$of{len(made)}"
            body = with_values(template.body, values)
            out[name] = Rule(name, body, tuple(compress(template.params, left)), template.line)
            work.append(name)
        return Call(made[key], tuple(compress(node.args, left)))

    for name in work:
        rule = out[name]
        if any(call.args for call in rule.find(Call)):
            written = rebuild(rule.body, write_out)
            out[name] = Rule(name, written, rule.params, rule.line)
    if every:  # templates that nobody calls any more may still be left-recursive
        used = reachable(out, Seq(tuple(Call(name) for name, rule in out.items() if not rule.params)))
        out = {name: rule for name, rule in out.items() if name in used}
    return out


def _is_closed(arg: Node) -> bool:
    """Whether an argument uses no parameters of the rule that gives it."""
    return not find(arg, Var) and not find(arg, Related)


def with_values(node: Node, values: Mapping[str, Node]) -> Node:
    """Return a node with its parameters replaced."""
    return rebuild(node, lambda leaf: values.get(leaf.name, leaf) if isinstance(leaf, Var) else leaf)
