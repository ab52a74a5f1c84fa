"""The order rules of action knowledge as part of a planning task, so that what is planned keeps to them.

What may come next depends on the last action. So actions after which the same may come share a fact, "after look or
close"; each of them makes it true, and what may come then needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from constrained.knowledge.action_graph import START
from constrained.knowledge.base import Knowledge
from constrained.planning.facts import FactSet
from constrained.planning.model import Action, Condition, Effect, Junction, Literal, conjunction
from constrained.planning.task import PlanningTask

MAX_PHASES = 100
"""Groups of actions, after which different actions may come, that a task is given facts for."""


class OrderedTask:
    """A task whose plans obey the order rules.

    Parameters
    ----------
    task : PlanningTask
        A problem of the knowledge's world.
    rule_of : mapping of str to str
        Action of the task -> its rule.
    rules : mapping of str to sequence of str
        Rule (or "start") -> the rules that may follow (`Knowledge.rules`).

    Attributes
    ----------
    task : PlanningTask
        The given one, if any action may follow any other, or if the world doesn't know some action of the rules.
    """

    def __init__(self, task: PlanningTask, rule_of: Mapping[str, str], rules: Mapping[str, Sequence[str]]):
        phases: dict[frozenset[str], list[str]] = {}  # the actions that may come next -> those before
        for name, following in rules.items():
            phases.setdefault(frozenset(following), []).append(name)
        known = rules.keys() - {START} <= set(rule_of.values())
        self._phase: dict[str, str] = {}  # rule -> the fact that holds after it
        self.task = task
        if known and 1 < len(phases) <= MAX_PHASES:
            names = {following: _named(before) for following, before in phases.items()}
            self._phase = {name: names[following] for following, before in phases.items() for name in before}
            self.task = self._ordered(task, {name: set(following) for following, name in names.items()}, rule_of)

    @classmethod
    def of(cls, task: PlanningTask, knowledge: Knowledge | None) -> OrderedTask:
        """The ordered task, cached with the given one; without knowledge there are no rules."""
        if knowledge is None or knowledge.world is None:
            return cls(task, {}, {})
        cache, key = vars(task).setdefault("ordered", {}), tuple(knowledge.rules.items())
        if key not in cache:
            cache[key] = cls(task, knowledge.world.rules, knowledge.rules)
        return cache[key]

    def _ordered(self, task: PlanningTask, following: dict[str, set[str]], rule_of: Mapping[str, str]) -> PlanningTask:
        actions = [self._action(action, rule_of[action.name], following) for action in task.domain.actions]
        domain = replace(
            task.domain,
            predicates={**task.domain.predicates, **dict.fromkeys(following, ())},
            actions=actions,
        )
        return PlanningTask(domain, replace(task.problem, init=(*task.problem.init, (self._phase[START],))))

    def _action(self, action: Action, rule: str, following: dict[str, set[str]]) -> Action:
        """An action that comes only where its rule may."""
        before: list[Condition] = [Literal(phase, ()) for phase, rules in following.items() if rule in rules]
        needed = (
            [] if len(before) == len(following) else [before[0] if len(before) == 1 else Junction("or", tuple(before))]
        )
        after = self._phase.get(rule)
        changes = [Effect(Literal(phase, (), phase == after)) for phase in following] if after is not None else []
        precondition = conjunction([*needed, action.precondition])
        return replace(action, precondition=precondition, effects=(*action.effects, *changes))

    def state(self, state: FactSet, knowledge: Knowledge | None) -> FactSet:
        """A state of the given task, at a point of a path, as a state of the ordered one."""
        phase = None if knowledge is None else self._phase.get(knowledge.last)
        return state if phase is None else state.changed(added=[(phase,)])


def _named(before: list[str]) -> str:
    """The name of what holds after some actions."""
    first, *others = ("the start" if name == START else name for name in before)
    return f"after {' or '.join([first, *others])}" if len(others) < 3 else f"after {first} or {len(others)} others"
