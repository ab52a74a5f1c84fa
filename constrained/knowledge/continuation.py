"""From the automaton's place after an action back to a piece of grammar.

Slots are bound anew at every step, so what may follow must outlive the automaton of the
step before: as nodes, with the template parameters that are already fixed.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.graph_stack import forks_below
from constrained.grammar import STEP, Grammar
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule
from constrained.limits import Limits


def continuation(frames: list[p.Frame | None], limits: Limits) -> n.Node:
    """The grammar of what may follow, from the frames at an action's end (None: nothing).

    Raises
    ------
    LimitError
        The stacks fork too often for what may follow to be written out.
    """
    made: dict[p.Frame | None, n.Node] = {None: n.EMPTY}
    for frame in frames:
        for fork in forks_below(frame, made):
            made[fork] = n.alt([_sequence(way, made) for way in fork.ways])
    node = n.alt([_sequence(frame, made) for frame in dict.fromkeys(frames)])
    too_many = "there are too many ways to go on after this action"
    limits.check("nodes", n.size(node), too_many, "let alternatives begin differently")
    return node


def _sequence(frame: p.Frame | None, made: dict) -> n.Node:
    items = []
    while frame not in made:
        items.append(_scoped(frame.node, frame.env))
        frame = frame.next
    return n.seq([*items, made[frame]])


def _scoped(node: n.Node, env: p.Env) -> n.Node:
    if not env.values:
        return node
    values = {}
    for name, value in env.values.items():
        if isinstance(value, p.Thunk):
            value = _scoped(value.node, value.env)
            value = value if isinstance(value, n.Scoped) else n.Scoped(value, {})
        elif isinstance(value, p.Unbound):
            value = value.values
        values[name] = value
    return n.Scoped(node, values)


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
