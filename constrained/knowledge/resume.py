"""From the automaton's place after an action back to a piece of grammar.

Slots are bound anew at every step, so what may follow must outlive the automaton of the
step before: as nodes, with the template parameters that are already fixed.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.grammar import nodes as n


def continuation(frames: list[p.Frame | None]) -> n.Node:
    """The grammar of what may follow, from the frames at an action's end (None: nothing)."""
    return n.alt([_sequence(f) for f in dict.fromkeys(frames)])


def _sequence(frame: p.Frame | None) -> n.Node:
    items = []
    while frame is not None:
        items.append(_scoped(frame.node, frame.env))
        frame = frame.next
    return n.seq(items)


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
