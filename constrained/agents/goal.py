"""What the goal leaves of the admitted actions, where facts are known: what is sound, and what is a heuristic."""

from __future__ import annotations

from collections.abc import Container, Sequence

from constrained.environments.base import Facts
from constrained.planning import GroundAction, State, Task
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan

MAX_SEARCHED = 100_000
"""States that one search for a way looks at; some seconds."""


def leading_on(facts: Facts, actions: Sequence[str]) -> list[str]:
    """The actions after which the goal can still be reached if nothing is undone: the others are dead ends.

    What the facts don't describe stays. Empty if the goal is already out of reach.
    """
    relaxed, meant = Relaxed.of(facts.task), facts.actions
    ground = [one for text in actions for one in meant.get(text, ())]
    if relaxed.plan(facts.state, facts.optimistic) is None:
        return []
    kept = set(relaxed.without_dead_ends(facts.state, ground, facts.optimistic))
    return [text for text in actions if text not in meant or not kept.isdisjoint(meant[text])]


def looking_useful(facts: Facts, actions: Sequence[str]) -> list[str]:
    """The helpful actions; all, if none is helpful."""
    helpful = Relaxed.of(facts.task).helpful(facts.state, facts.optimistic)
    return [text for text in actions if not helpful.isdisjoint(facts.actions.get(text, ()))] or list(actions)


class Ways:
    """The ways to the goal that searches found in one episode.

    `known`: what to do in states from which a way is known. `followed`: whether only their actions are left from now
    on.
    """

    def __init__(self) -> None:
        self.known: dict[State, GroundAction] = {}
        self.followed = False
        self._none: set[State] = set()

    def from_state(self, task: Task, state: State) -> bool:
        """Whether a way from a state is known, or can be found by a search that is not too long."""
        if state not in self.known and state not in self._none and not task.reached_goal(state):
            way, found = find_plan(task, state, MAX_SEARCHED)
            if not found:
                self._none.add(state)
            self.known = task.states(state, way) | self.known if found else self.known
        return state not in self._none

    def safe(self, facts: Facts, action: str) -> bool:
        """Whether an action can be undone by the next, or a way is found from there; True if not all is known."""
        task, state = facts.task, facts.state
        for one in () if facts.optimistic else facts.actions.get(action, ()):
            after = task.apply(state, one)
            back = any(task.apply(after, other) == state for other in task.applicable(after))
            if not back and not self.from_state(task, after):
                return False
        return True


def leads_back(facts: Facts, action: str, states: Container[object]) -> bool:
    """Whether an action leads to one of some states, whatever it stands for."""
    after = [facts.task.apply(facts.state, one) for one in facts.actions.get(action, ())]
    return bool(after) and all(state in states for state in after)
