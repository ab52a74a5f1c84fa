"""From the automaton's place after an action back to a piece of grammar.

Slots are bound anew at every step, so what may follow must outlive the automaton of the
step before: as nodes, with the template parameters that are already fixed.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.graph_stack import forks_below
from constrained.grammar import nodes as n
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
