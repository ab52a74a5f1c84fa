"""The action graph of a grammar: which rules are actions, and which may follow which."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar.nodes import EMPTY, Alt, Node, Repeat, Rule, RuleRef, Seq, Var
from constrained.grammar.traverse import Pieces, argument_sources
from constrained.knowledge.follow_sets import END, ActionFollowSets, Actions, continuations, writes_text

START = "start"

ActionGroup = tuple[str, ...]
"""Actions with the same predecessors and the same successors."""


class ActionGraph:
    """The actions (KnowAgent's E_a) and which action may follow which (its R).

    An action is a rule that writes text; a rule that only chooses between actions is not a vertex. An action's
    successors are FIRST of what comes after its `_STEP`, and FOLLOW where that may be empty.

    Attributes
    ----------
    start : str
        The rule of whole paths.
    rules : dict of str to tuple of str
        Action (or "start") -> the actions that may follow, in the file's order.
    may_end : set of str
        Actions (or "start") after which a path may end.
    distance : dict of str to int
        Action -> the fewest actions from it to the end of a path, itself included.
    """

    def __init__(self, rules: dict[str, Rule], start: str):
        self._rules = rules
        self.start = start
        self._follow = ActionFollowSets(rules, start)
        self._sources: dict[tuple[str, str], tuple[list[tuple[str, str]], Pieces]] = {}
        self.rules: dict[str, tuple[str, ...]] = {}
        self.may_end: set[str] = set()
        self._add(START, self._follow.first(RuleRef(start), start))
        # Breadth first, so that `rules` lists actions in the order in which paths reach them.
        work = list(self.rules[START])
        for name in work:
            if name not in self.rules:
                self._add(name, self._follow.after(name))
                work.extend(self.rules[name])
        self.distance = self._distances()
        self._ended_by = {  # by identity; EMPTY is one object for all rules, so it tells nothing
            id(_head(rest)): name
            for name in self.actions
            for rest in continuations(rules[name].body)
            if rest is not EMPTY
        }

    def _add(self, name: str, after: Actions) -> None:
        self.rules[name] = tuple(action for action in after if action != END)
        if END in after:
            self.may_end.add(name)

    @property
    def actions(self) -> list[str]:
        """All actions that a path can reach, breadth first."""
        return [name for name in self.rules if name != START]

    def ended_by(self, rest: Node) -> str | None:
        """The action that has just ended where `rest` comes next; None if `rest` belongs to no action's rule."""
        return self._ended_by.get(id(_head(rest)))

    def sources(self, rule: str, parameter: str) -> tuple[list[tuple[str, str]], Pieces]:
        """`argument_sources` of the grammar's rules, cached."""
        key = (rule, parameter)
        if key not in self._sources:
            self._sources[key] = argument_sources(self._follow.pieces, key)
        return self._sources[key]

    def leads_on(self, node: Node, rule: str) -> bool:
        """Whether `node`, in the body of `rule`, begins with actions instead of being part of an action's text."""
        return bool(self._follow.first(node, rule))

    def choice_points(self) -> dict[tuple[str, str], list[str]] | None:
        """(choice point, choice point) -> the actions that lead from one to the other.

        A choice point is a rule that only chooses between actions. None if the grammar isn't made of choice points:
        after some action comes another action directly, or nothing.
        """
        out: dict[tuple[str, str], list[str]] = {}
        work = [self.start]
        for point in work:
            # A choice point calls only actions, and each action goes on with a choice point: named by the rule, or
            # given as an argument of the call.
            for call in _calls(self._rules[point].body):
                rule = self._rules[call.rule]
                if not writes_text(rule.body):
                    return None
                arguments = dict(zip(rule.params, call.args))
                for after in continuations(rule.body):
                    if isinstance(after, Var):
                        after = arguments.get(after.name, after)
                    if not isinstance(after, RuleRef) or writes_text(self._rules[after.rule].body):
                        return None
                    actions = out.setdefault((point, after.rule), [])
                    if call.rule not in actions:
                        actions.append(call.rule)
                    if after.rule not in work:
                        work.append(after.rule)
        return out

    def groups(self) -> dict[ActionGroup, list[ActionGroup]]:
        """Each group of actions -> the groups that may follow it; ("start",) is a group by itself.

        Every action of the second group may follow every action of the first.
        """
        before = {name: frozenset(a for a, after in self.rules.items() if name in after) for name in self.rules}
        alike: dict[tuple, list[str]] = {}
        for name, after in self.rules.items():
            key = name == START, frozenset(after), before[name], name in self.may_end
            alike.setdefault(key, []).append(name)
        group_of = {name: tuple(names) for names in alike.values() for name in names}
        return {
            group: list(dict.fromkeys(group_of[name] for name in self.rules[group[0]]))
            for group in dict.fromkeys(group_of.values())
        }

    def _distances(self) -> dict[str, int]:
        distances, layer = dict.fromkeys(self.may_end, 1), 1
        while new := [
            name
            for name, after in self.rules.items()
            if name not in distances and any(distances.get(action) == layer for action in after)
        ]:
            layer += 1
            distances.update(dict.fromkeys(new, layer))
        return distances


def _calls(node: Node) -> Iterator[RuleRef]:
    """The calls in `node`, without those inside arguments."""
    if isinstance(node, RuleRef):
        yield node
    elif isinstance(node, (Alt, Seq, Repeat)):
        for item in node.parts:
            yield from _calls(item)


def _head(node: Node) -> Node:
    return node.items[0] if isinstance(node, Seq) and node.items else node
