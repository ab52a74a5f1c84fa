"""The action graph of a grammar: which rules are actions, and which may follow which."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule
from constrained.knowledge.follow_sets import FollowSets, continuations, writes_text

START = "start"


class ActionGraph:
    """Actions (KnowAgent's E_a) and the rules of what may follow them (its R).

    An action is a rule that writes text; rules that only choose between actions are seen
    through. What FIRST says of the grammar after a `_STEP` are the successors of the action it
    ends, and FOLLOW where that may be nothing.

    Attributes
    ----------
    start : str
        The rule of whole paths.
    rules : dict of str to tuple of str
        Action (or "start") -> the actions that may follow, in the file's order.
    may_end : set of str
        Actions (or "start") after which a path may be over.
    distance : dict of str to int
        Action -> the fewest actions of a path from it to its end, itself included.
    """

    def __init__(self, rules: dict[str, Rule], start: str):
        self._rules = rules
        self.start = start
        self._follow = FollowSets(rules, start)
        self.arguments = self._follow.arguments
        self.rules: dict[str, tuple[str, ...]] = {}
        self.may_end: set[str] = set()
        self._add(START, *self._follow.first(n.Call(start), start))
        work = list(self.rules[START])
        while work:
            name = work.pop(0)
            if name not in self.rules:
                self._add(name, *self._follow.after(name))
                work.extend(self.rules[name])
        self.distance = self._distances()
        self._ended_by = {  # not the empty rest, which is one object for all
            id(_head(rest)): name
            for name in self.actions
            for rest in continuations(rules[name].body)
            if rest is not n.EMPTY
        }

    def _add(self, name: str, after: tuple[str, ...], ends: bool) -> None:
        self.rules[name] = after
        if ends:
            self.may_end.add(name)

    @property
    def actions(self) -> list[str]:
        """Every action that a path can reach, in the order they are met."""
        return [name for name in self.rules if name != START]

    def ended_by(self, rest: Node) -> str | None:
        """The action that has just ended, if `rest` of its own rule is what comes next."""
        return self._ended_by.get(id(_head(rest)))

    def leads_on(self, node: Node, rule: str) -> bool:
        """Whether `node`, standing in `rule`, is what comes after an action rather than a part of one."""
        actions, empty = self._follow.first(node, rule)
        return bool(actions) or empty

    def places(self) -> dict[tuple[str, str], list[str]] | None:
        """(place, place) -> the actions that lead from one to the other.

        A place is a rule that only chooses between actions. None where actions follow each
        other directly, or one leads to no place, so that the actions themselves are the places.
        """
        out: dict[tuple[str, str], list[str]] = {}
        done, work = set(), [self.start]
        while work:
            place = work.pop(0)
            if place in done:
                continue
            done.add(place)
            for call in self._calls(self._rules[place].body):
                rule = self._rules[call.rule]
                if not writes_text(rule.body):
                    return None
                given = dict(zip(rule.params, call.args))
                for after in continuations(rule.body):
                    after = given.get(after.name, after) if isinstance(after, n.Var) else after
                    if not isinstance(after, n.Call) or writes_text(self._rules[after.rule].body):
                        return None
                    actions = out.setdefault((place, after.rule), [])
                    if call.rule not in actions:
                        actions.append(call.rule)
                    work.append(after.rule)
        return out

    def _calls(self, node: Node) -> Iterator[n.Call]:
        if isinstance(node, n.Call):
            yield node
        elif isinstance(node, (n.Alt, n.Seq, n.Repeat)):
            for item in n.children(node):
                yield from self._calls(item)

    def _distances(self) -> dict[str, int]:
        found = dict.fromkeys(self.may_end, 1)
        while True:
            new = {
                a: 1 + min(found[b] for b in after if b in found)
                for a, after in self.rules.items()
                if a not in found and any(b in found for b in after)
            }
            if not new:
                return found
            found.update(new)


def _head(node: Node) -> Node:
    return node.items[0] if isinstance(node, n.Seq) and node.items else node


Group = "tuple[str, ...]"


def groups(graph: ActionGraph) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Each group of actions -> the groups that may follow it; ("start",) is one of its own.

    An arrow between groups stands for one from every action of the first to every one of the
    second: none is lost or added.
    """
    before: dict[str, list[str]] = {name: [] for name in graph.rules}
    for name, after in graph.rules.items():
        for other in after:
            before[other].append(name)
    alike: dict[tuple, list[str]] = {}
    for name, after in graph.rules.items():
        key = name == START, frozenset(after), frozenset(before[name]), name in graph.may_end
        alike.setdefault(key, []).append(name)
    of = {name: tuple(names) for names in alike.values() for name in names}
    return {
        group: list(dict.fromkeys(of[other] for other in graph.rules[group[0]])) for group in dict.fromkeys(of.values())
    }
