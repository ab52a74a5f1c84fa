"""The levels of masks; the higher ones leave out actions that lead to dead ends, or that don't look useful."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence

from constrained.environments.base import Facts
from constrained.planning import GroundAction, State, Task
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan

FORM, STATE, GOAL_SOUND, GOAL = LEVELS = ("form", "state", "goal-sound", "goal")
"""The levels of masks, each with all that the one before it holds.

- form: what the grammar says, actions that exist in an order the rules allow;
- state: and whose conditions hold in what is known now;
- goal-sound: and that may still lead to the goal. Left out is only what can't: what leads to a dead end even if nothing
  were ever undone again, and what was done before in the same situation with nothing new behind it;
- goal: and that look useful, a heuristic: the first actions of a plan for the easier problem in which nothing is undone
  (helpful actions), and none that was done before in the same situation.
"""

MAX_SEARCHED = 100_000
"""States that one search for a way looks at; some seconds."""


class History:
    """What was done in an episode, by situation, and which actions that leaves for the levels `goal-sound` and `goal`.

    A situation is what is known at one point; where it is the same again, nothing has changed.

    Attributes
    ----------
    tried : dict
        Situation -> the actions already done in it -> the situation after each.
    admitted : dict
        Situation -> the actions that may lead to the goal from it, where that was asked.
    ways : Ways
        Those to the goal that were searched for.
    """

    def __init__(self) -> None:
        self.tried: dict[Hashable, dict[str, Hashable]] = {}
        self.admitted: dict[Hashable, set[str]] = {}
        self.ways = Ways()

    def record(self, before: Hashable, action: str, after: Hashable) -> None:
        """Note that an action led from one situation to another; None is no situation."""
        if before is not None:
            self.tried.setdefault(before, {})[action] = after

    def done(self, here: Hashable) -> set[str]:
        """The actions already done in a situation."""
        return set(self.tried.get(here, ()))

    def without_dead_ends(self, actions: Sequence[str], facts: Facts | None, here: Hashable) -> list[str]:
        """The actions without those that can't lead to the goal; all, if that leaves none.

        Sound where the environment is deterministic and a situation says all that matters: if the goal can be reached
        from here at all, it can be reached by one of the actions left.
        """
        left = leading_on(facts, actions) if facts else list(actions)
        if here is None:
            return left or list(actions)
        self.admitted.setdefault(here, set(left))
        return [one for one in left if not self._in_vain(here, one)] or left or list(actions)

    def _in_vain(self, here: Hashable, action: str) -> bool:
        """Whether an action was done here before, and nothing was left undone after it but by way of `here`."""
        after = self.tried.get(here, {}).get(action)
        if after is None:
            return False
        seen, work = {here}, [after]
        while work:
            situation = work.pop()
            if situation in seen:
                continue
            seen.add(situation)
            done = self.tried.get(situation, {})
            if situation not in self.admitted or not self.admitted[situation] <= done.keys():
                return False
            work += done.values()
        return True

    def helpful(self, actions: Sequence[str], facts: Facts | None, here: Hashable) -> list[str]:
        """The actions that look useful, a heuristic.

        Left out are those done here before, those known to lead back to an earlier situation, and those that can't be
        undone and after which a search finds no way to the goal. Where none is left, a way is searched for and followed
        from then on; if none is found, the actions that aren't helpful are taken, too.
        """
        if facts is None:
            return self._new(actions, None, here) or list(actions)
        useful = looking_useful(facts, actions)
        new = [] if self.ways.followed else self._new(useful, facts, here)
        new = [one for one in new if self.ways.safe(facts, one)]
        if not new and not facts.optimistic and self.ways.from_state(facts.task, facts.state):
            self.ways.followed = True
            way = self.ways.known.get(facts.state)
            new = [one for one in actions if way in facts.actions.get(one, ())]
        return new or self._new(actions, facts, here) or useful

    def _new(self, actions: Iterable[str], facts: Facts | None, here: Hashable) -> list[str]:
        """The actions not done here before, and not known to lead back to an earlier situation."""
        done = self.done(here)
        return [one for one in actions if one not in done and not (facts and leads_back(facts, one, self.tried))]


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
