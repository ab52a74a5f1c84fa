"""The rest of a path as a node of the grammar.

Slots are rebound at every step, so the rest of the path must outlive the automaton of the step before. The frames of
its stacks become nodes, with the values of template parameters that are already fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from constrained.automaton import Grammar, positions
from constrained.automaton.graph_stack import forks_below
from constrained.grammar import STEP, nodes
from constrained.grammar.analysis import Nullable
from constrained.grammar.nodes import Node, Rule
from constrained.grammar.nonempty import nonempty_name, nonempty_rules, without_empty
from constrained.grammar.traverse import size
from constrained.limits import Limits


def continuation(frames: list[positions.Frame | None], limits: Limits) -> Node:
    """The node of what may follow, from the stack frames at an action's end (None: nothing follows).

    Raises LimitError: the stacks fork too often for the node to be written out.
    """
    written: dict[positions.Frame | None, Node] = {None: nodes.EMPTY}
    for frame in frames:
        for fork in forks_below(frame, written):  # deepest first
            written[fork] = nodes.alt([_sequence(way, written) for way in fork.ways])
    node = nodes.alt([_sequence(frame, written) for frame in dict.fromkeys(frames)])
    too_many = "there are too many ways to go on after this action"
    limits.check("nodes", size(node), too_many, "let alternatives begin differently")
    return node


def _sequence(frame: positions.Frame | None, written: dict[positions.Frame | None, Node]) -> Node:
    """The frames from `frame` down to one that has its node already."""
    items = []
    while frame not in written:
        assert frame is not None  # None has a node from the start
        items.append(_scoped(frame.node, frame.env))
        frame = frame.next
    return nodes.seq([*items, written[frame]])


def _scoped(node: Node, env: positions.Env) -> Node:
    """`node` with the values of its parameters in `env`."""
    used = {variable.name for variable in nodes.find(node, nodes.Var)} if env.values else set()
    if not used & env.values.keys():
        return node
    values: dict[str, bytes | tuple[bytes, ...] | Node] = {}
    for name in sorted(used & env.values.keys()):
        value = env.values[name]
        if isinstance(value, positions.Thunk):
            inner = _scoped(value.node, value.env)
            values[name] = inner if isinstance(inner, nodes.Scoped) else nodes.Scoped(inner, {})
        else:
            values[name] = value.values if isinstance(value, positions.Unbound) else value
    return nodes.Scoped(node, values)


@cache
def _either() -> Grammar:
    return Grammar.from_lark("%declare FIRST SECOND\nstart: FIRST | SECOND\n")


def either(first: Grammar, second: Grammar | str) -> Grammar:
    """The texts of two grammars, or of a grammar and one more text."""
    return _either().bind(FIRST=first, SECOND=second)


def nonempty(grammar: Grammar) -> Grammar:
    """`grammar` without the empty text, since ending a path is not an action; the same object if it doesn't have it."""
    start = without_empty(grammar.start, grammar.of_rules(_nullable))
    return grammar if start is grammar.start else grammar.extended(_with_nonempty_rules, start)


def _with_nonempty_rules(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """`rules`, and for each nullable rule a copy without the empty text."""
    nullable = _nullable(rules)
    copies = nodes.seq([nodes.RuleRef(nonempty_name(name)) for name in rules if nullable.rule(name)])
    return {**rules, **nonempty_rules(rules, nullable, copies)}


def _nullable(rules: Mapping[str, Rule]) -> Nullable:
    """Which nodes may be empty where a path may end."""
    return Nullable(rules, frozenset({STEP}))
