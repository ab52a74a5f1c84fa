"""FIRST and FOLLOW sets (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2), with actions as the terminals.

FIRST of a piece of grammar is the actions it may begin with; FOLLOW of a rule is the actions that may come after it,
wherever it is called. A template parameter stands for all arguments that any call gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from constrained.grammar import nodes
from constrained.grammar.nodes import Node, Rule, is_step
from constrained.grammar.traverse import Unit, call_arguments, fold, least_fixpoint, reachable, reached, units

First = tuple[tuple[str, ...], bool]
"""The actions that something may begin with, and whether it may hold no action."""

_NOTHING: First = (), False


class FollowSets:
    """Which actions begin a piece of grammar, and which may follow an action.

    `arguments`: (rule, parameter) -> (calling rule, argument) of every call.
    """

    def __init__(self, rules: dict[str, Rule], start: str):
        self._rules = {name: rules[name] for name in reachable(rules, nodes.Call(start))}
        self.arguments = call_arguments(self._rules)
        self._writing = {name for name, rule in self._rules.items() if writes_text(rule.body)}
        pieces = {unit: given for unit, given in units(self._rules).items() if unit not in self._writing}
        self._first: Mapping[Unit, First] = {}
        self._first = least_fixpoint(
            pieces, lambda unit, found: _union(self.first(node, rule, found) for rule, node in pieces[unit]), _NOTHING
        )
        # FOLLOW, in two parts: the actions right behind a unit's calls, and the units that a call of it may end
        # (None: the whole path).
        self._behind: dict[Unit, dict[str, None]] = {}
        self._ends: dict[Unit, dict[Unit | None, None]] = {}
        self._note_calls(start)

    def first(self, node: Node, rule: str, known: Mapping[Unit, First] | None = None) -> First:
        """FIRST of `node`, which stands in `rule`; `known`: of the units, while they are being found."""
        units = self._first if known is None else known

        def leaf(node: Node) -> First:
            match node:
                case nodes.Call() if node.rule in self._writing:
                    return (node.rule,), False
                case nodes.Call():
                    return units.get(node.rule, _NOTHING)
                case nodes.Var():
                    return units.get((rule, node.name), _NOTHING)
            return (), is_step(node)

        return fold(node, leaf, _concatenation, _union, lambda repeat, item: (item[0], item[1] or repeat.low == 0))

    def after(self, action: str) -> First:
        """The actions that may follow `action`, and whether a path may end after it."""
        found: dict[str, None] = {}
        may_end = False
        for rest in continuations(self._rules[action].body):
            actions, empty = self.first(rest, action)
            found.update(dict.fromkeys(actions))
            if empty:
                behind, ends = self._follow(action)
                found.update(behind)
                may_end = may_end or ends
        return tuple(found), may_end

    def _follow(self, unit: Unit) -> tuple[dict[str, None], bool]:
        """FOLLOW of `unit`, and whether the path may end there."""
        start: Unit | None = unit
        passed = reached([start], lambda one: self._ends.get(one, ()) if one is not None else ())
        return {
            action: None for one in passed if one is not None for action in self._behind.get(one, ())
        }, None in passed

    def _note_calls(self, start: str) -> None:
        """Fill `_behind` and `_ends` for every call that a path from `start` passes, in the file's order."""
        walked: set[Unit] = set()
        # (node, the rule it stands in, the actions behind it, the unit it is part of, whether it may end that unit);
        # an explicit stack, as a chain of actions may be longer than Python's own
        stack: list[tuple[Node, str, dict[str, None], Unit | None, bool]] = [(nodes.Call(start), start, {}, None, True)]
        while stack:
            node, rule, behind, whole, last = stack.pop()
            match node:
                case nodes.Seq():
                    parts = []
                    for item in reversed(node.items):
                        parts.append((item, rule, behind, whole, last))
                        actions, empty = self.first(item, rule)
                        behind = {**dict.fromkeys(actions), **(behind if empty else {})}
                        last = last and empty
                    stack.extend(reversed(parts))
                case nodes.Alt():
                    stack.extend((item, rule, behind, whole, last) for item in reversed(node.items))
                case nodes.Repeat():
                    again = self.first(node.item, rule)[0] if node.high != 1 else ()
                    stack.append((node.item, rule, {**dict.fromkeys(again), **behind}, whole, last))
                case nodes.Call() | nodes.Var():
                    unit = node.rule if isinstance(node, nodes.Call) else (rule, node.name)
                    self._behind.setdefault(unit, {}).update(behind)
                    if last:
                        self._ends.setdefault(unit, {})[whole] = None
                    if unit not in walked:
                        walked.add(unit)
                        parts = [(piece, owner, {}, unit, True) for owner, piece in self._definitions(unit)]
                        stack.extend(reversed(parts))

    def _definitions(self, unit: Unit) -> Iterator[tuple[str, Node]]:
        """(rule, node) of what a unit stands for; of an action, only what comes after its text."""
        if not isinstance(unit, str):
            yield from self.arguments.get(unit, ())
        elif unit in self._writing:
            yield from ((unit, rest) for rest in continuations(self._rules[unit].body))
        else:
            yield unit, self._rules[unit].body


def writes_text(node: Node) -> bool:
    """Whether a rule's body reads text or slots itself, rather than only choosing between rules."""
    return fold(node, _reads_text, any, any, lambda _, item: item)


def _reads_text(node: Node) -> bool:
    return not is_step(node) and not isinstance(node, (nodes.Call, nodes.Var, nodes.Scoped))


def ends_step(node: Node) -> bool:
    """Whether every way through `node` passes a `_STEP`, not counting the rules it calls."""
    return fold(node, is_step, any, all, _at_least_once)


def _at_least_once(repeat: nodes.Repeat, item: bool) -> bool:
    return repeat.low > 0 and item


def continuations(node: Node) -> list[Node]:
    """What may come after the action whose body is `node`.

    That is what stands after each `_STEP`, and the empty rest if there is a way through without one.
    """
    return [*_after_step(node), *([] if ends_step(node) else [nodes.EMPTY])]


def _after_step(node: Node) -> Iterator[Node]:
    match node:
        case nodes.Seq():
            for i, item in enumerate(node.items):
                for after in _after_step(item):
                    yield nodes.seq([after, *node.items[i + 1 :]])
                if ends_step(item):
                    return
        case nodes.Alt():
            for item in node.items:
                yield from _after_step(item)
        case nodes.Repeat():
            again = nodes.EMPTY if node.high == 1 else nodes.repeat(node.item, 0, None)
            yield from (nodes.seq([after, again]) for after in _after_step(node.item))
        case nodes.Slot() if is_step(node):
            yield nodes.EMPTY


def _concatenation(parts: Iterable[First]) -> First:
    found: dict[str, None] = {}
    for actions, empty in parts:
        found.update(dict.fromkeys(actions))
        if not empty:
            return tuple(found), False
    return tuple(found), True


def _union(parts: Iterable[First]) -> First:
    parts = list(parts)
    return tuple(dict.fromkeys(a for actions, _ in parts for a in actions)), any(empty for _, empty in parts)
