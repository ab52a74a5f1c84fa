"""First and follow sets of actions: which actions begin a node of the grammar, and which may follow an action.

A template parameter stands for all arguments that calls pass to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constrained.grammar import nodes
from constrained.grammar.first_follow import FollowSets
from constrained.grammar.nodes import Node, Rule, RuleRef, is_step
from constrained.grammar.traverse import fold, reachable, units

END = ""
"""The element of a set that stands for the end of the path; in a first set, for a node without an action."""

Actions = dict[str, None]
"""A set of actions, in the file's order."""


class ActionFollowSets(FollowSets[Actions]):
    """The first and follow sets of the rules that paths from the rule `start` pass through."""

    def __init__(self, rules: dict[str, Rule], start: str):
        passed = {name: rules[name] for name in reachable(rules, RuleRef(start))}
        self._writing = {name for name, rule in passed.items() if writes_text(rule.body)}
        pieces = units(passed)
        for name in self._writing:
            pieces[name] = [(name, rest) for rest in continuations(passed[name].body)]
        super().__init__(pieces, RuleRef(start), {}, {END: None}, self._writing)

    def leaf(self, node: Node) -> Actions | None:
        if isinstance(node, RuleRef) and node.rule in self._writing:
            return {node.rule: None}
        return None if isinstance(node, (RuleRef, nodes.Var)) else self.end if is_step(node) else {}

    def union(self, sets: Iterable[Actions]) -> Actions:
        return {action: None for actions in sets for action in actions}

    def split(self, found: Actions) -> tuple[Actions, bool]:
        return {action: None for action in found if action != END}, END in found

    def after(self, action: str) -> Actions:
        """The actions that may follow `action`; `END` is among them if a path may end after it."""
        return self.union(self.then(self.first(rest, rule), self.of[action]) for rule, rest in self.pieces[action])


def writes_text(node: Node) -> bool:
    """Whether a rule's body reads text or slots itself, instead of only choosing between rules."""

    def leaf(node: Node) -> bool:
        return not is_step(node) and not isinstance(node, (nodes.RuleRef, nodes.Var, nodes.Scoped))

    return fold(node, leaf, any, any, lambda _, item: item)


def ends_step(node: Node) -> bool:
    """Whether every way through `node` passes a `_STEP`, not counting the rules it calls."""
    return fold(node, is_step, any, all, _at_least_once)


def _at_least_once(repeat: nodes.Repeat, item: bool) -> bool:
    return repeat.low > 0 and item


def continuations(node: Node) -> list[Node]:
    """What may come after the action with the body `node`.

    That is the rest after each `_STEP`, and the empty rest if there is a way through without a `_STEP`.
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
