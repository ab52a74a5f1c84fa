"""What may still follow on a path, as a piece of grammar.

Slots are bound anew at every step, so what may follow must outlive the automaton of the step before: the frames of its
stacks become nodes, with the template parameters that are already fixed.
"""

from __future__ import annotations

from constrained.automaton import Grammar, positions
from constrained.automaton.graph_stack import forks_below
from constrained.grammar import STEP
from constrained.grammar.nodes import (
    EMPTY,
    NEVER,
    Alt,
    Call,
    Node,
    Repeat,
    Rule,
    Scoped,
    Seq,
    Slot,
    Var,
    alt,
    repeat,
    seq,
)  # fmt: skip
from constrained.grammar.traverse import size
from constrained.limits import Limits


def continuation(frames: list[positions.Frame | None], limits: Limits) -> Node:
    """The grammar of what may follow, from the frames at an action's end (None: nothing follows).

    Raises
    ------
    LimitError
        The stacks fork too often for what may follow to be written out.
    """
    written: dict[positions.Frame | None, Node] = {None: EMPTY}
    for frame in frames:
        for fork in forks_below(frame, written):  # deepest first
            written[fork] = alt([_sequence(way, written) for way in fork.ways])
    node = alt([_sequence(frame, written) for frame in dict.fromkeys(frames)])
    too_many = "there are too many ways to go on after this action"
    limits.check("nodes", size(node), too_many, "let alternatives begin differently")
    return node


def _sequence(frame: positions.Frame | None, written: dict[positions.Frame | None, Node]) -> Node:
    """The frames from `frame` down to one that is written already."""
    items = []
    while frame not in written:
        assert frame is not None  # the bottom is written from the start
        items.append(_scoped(frame.node, frame.env))
        frame = frame.next
    return seq([*items, written[frame]])


def _scoped(node: Node, env: positions.Env) -> Node:
    """`node` with the values that its parameters have in `env`."""
    if not env.values:
        return node
    values: dict[str, bytes | tuple[bytes, ...] | Node] = {}
    for name, value in env.values.items():
        if isinstance(value, positions.Thunk):
            inner = _scoped(value.node, value.env)
            values[name] = inner if isinstance(inner, Scoped) else Scoped(inner, {})
        else:
            values[name] = value.values if isinstance(value, positions.Unbound) else value
    return Scoped(node, values)


def nonempty(grammar: Grammar) -> Grammar:
    """`grammar` without the empty text, since ending a path is no action; `grammar` itself if it has none."""
    start = _without_empty(grammar.start, grammar.of_rules(_nullable_rules))
    return grammar if start is grammar.start else grammar.extended(_with_nonempty_rules, start)


def _with_nonempty_rules(rules: dict[str, Rule]) -> dict[str, Rule]:
    """`rules`, and a copy of each nullable one without the empty text."""
    nullable = _nullable_rules(rules)
    copies = (
        Rule(_nonempty_name(name), _without_empty(rules[name].body, nullable), rules[name].params, rules[name].line)
        for name in nullable
    )
    return {**rules, **{copy.name: copy for copy in copies}}


def _nonempty_name(rule: str) -> str:
    return f"{rule}, not empty"


def _without_empty(node: Node, nullable: frozenset[str]) -> Node:
    """`node` without the empty text; the same object if it has none."""
    if not _nullable(node, nullable):
        return node
    match node:
        case Alt():
            return alt([_without_empty(item, nullable) for item in node.items])
        case Seq():  # every item is nullable: some item is the first with text, and those before it are left out
            first_with_text = (
                [_without_empty(item, nullable), *node.items[i + 1 :]] for i, item in enumerate(node.items)
            )
            return alt([seq(items) for items in first_with_text])
        case Repeat():
            others = repeat(node.item, 0, None if node.high is None else node.high - 1)
            return seq([_without_empty(node.item, nullable), others])
        case Scoped():
            value = _scoped_value(node)
            return (
                _without_empty(value, nullable) if value else Scoped(_without_empty(node.node, nullable), node.values)
            )
        case Call():
            return Call(_nonempty_name(node.rule), node.args)
    return NEVER


def _nullable_rules(rules: dict[str, Rule]) -> frozenset[str]:
    """The rules that have the empty text: the least fixed point."""
    found: frozenset[str] = frozenset()
    while more := frozenset(name for name, rule in rules.items() if _nullable(rule.body, found)) - found:
        found |= more
    return found


def _nullable(node: Node, rules: frozenset[str]) -> bool:
    match node:
        case Seq():
            return all(_nullable(item, rules) for item in node.items)
        case Alt():
            return any(_nullable(item, rules) for item in node.items)
        case Repeat():
            return node.low == 0 or _nullable(node.item, rules)
        case Scoped():
            return _nullable(_scoped_value(node) or node.node, rules)
        case Call():
            return node.rule in rules
        case Slot():
            return node.name == STEP
    return False


def _scoped_value(node: Scoped) -> Scoped | None:
    """The piece of grammar that a scope around a parameter alone stands for, if it is one."""
    value = node.values.get(node.node.name) if isinstance(node.node, Var) else None
    return value if isinstance(value, Scoped) else None
