"""The levels of masks; the higher levels leave out dead ends, and then actions that don't look useful."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence

from constrained.knowledge.world_state import WorldState
from constrained.planning import FactSet, GroundAction, PlanningTask
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan

FORM, STATE, GOAL_SOUND, GOAL = LEVELS = ("form", "state", "goal-sound", "goal")
"""The levels of masks. Each admits less than the one before it.

- form: actions that exist, in an order that the rules allow;
- state: of these, actions whose conditions hold in what is known now;
- goal-sound: of these, actions that may still lead to the goal. Left out are only those that lead to a dead end even if
  nothing were ever undone, and those done before in the same situation after which nothing was left untried;
- goal: of these, actions that look useful. This is a heuristic: the first actions of a plan for the easier problem in
  which nothing is undone (helpful actions), without those done before in the same situation.
"""

MAX_SEARCHED = 100_000
"""Most states that one search for a way to the goal visits; some seconds."""


class History:
    """The actions done in an episode, by situation, and what they leave for the levels `goal-sound` and `goal`.

    A situation is all that is known at one point: an equal situation means that nothing has changed.

    Attributes
    ----------
    tried : dict
        Situation -> the actions done in it -> the situation after each.
    admitted : dict
        Situation -> the actions that may lead to the goal from it, where that was computed.
    ways : GoalPaths
        The ways to the goal that searches found.
    """

    def __init__(self) -> None:
        self.tried: dict[Hashable, dict[str, Hashable]] = {}
        self.admitted: dict[Hashable, set[str]] = {}
        self.ways = GoalPaths()

    def record(self, before: Hashable, action: str, after: Hashable) -> None:
        """Record that an action led from one situation to another; None means that the situation is unknown."""
        if before is not None:
            self.tried.setdefault(before, {})[action] = after

    def done(self, here: Hashable) -> set[str]:
        """The actions already done in a situation."""
        return set(self.tried.get(here, ()))

    def without_dead_ends(self, actions: Sequence[str], facts: WorldState | None, here: Hashable) -> list[str]:
        """The actions that can still lead to the goal; all, if none can.

        Sound if the environment is deterministic and a situation holds all that matters: if the goal can be reached
        from here at all, one of the returned actions leads to it.
        """
        left = leading_on(facts, actions) if facts else list(actions)
        if here is None:
            return left or list(actions)
        self.admitted.setdefault(here, set(left))
        return [action for action in left if not self._exhausted(here, action)] or left or list(actions)

    def _exhausted(self, here: Hashable, action: str) -> bool:
        """Whether an action was done here before, and everything that it leads to without passing `here` was tried."""
        after = self.tried.get(here, {}).get(action)
        if after is None:
            return False
        # A walk over the situations reached so far: exhausted if none of them has an admitted action left to try.
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

    def helpful(self, actions: Sequence[str], facts: WorldState | None, here: Hashable) -> list[str]:
        """The actions that look useful, by a heuristic.

        Left out are actions done here before, actions known to lead back to an earlier situation, and actions that
        can't be undone and after which a search finds no way to the goal. If none is left, a way to the goal is
        searched for and followed from then on; if there is none, actions that aren't helpful are admitted, too.
        """
        if facts is None:
            return self._new(actions, None, here) or list(actions)
        # Helpful actions first. Where all of them were done, or can't be undone and lead nowhere, a search finds a way.
        # Once that was necessary the way is followed to its end, because the heuristic has failed in this episode.
        useful = looking_useful(facts, actions)
        new = [] if self.ways.followed else self._new(useful, facts, here)
        new = [action for action in new if self.ways.safe(facts, action)]
        if not new and not facts.optimistic and self.ways.from_state(facts.task, facts.state):
            self.ways.followed = True
            way = self.ways.known.get(facts.state)
            new = [action for action in actions if way in facts.actions.get(action, ())]
        return new or self._new(actions, facts, here) or useful

    def _new(self, actions: Iterable[str], facts: WorldState | None, here: Hashable) -> list[str]:
        """The actions not done here before and not known to lead back to an earlier situation."""
        done = self.done(here)
        return [a for a in actions if a not in done and not (facts and leads_back(facts, a, self.tried))]


def leading_on(facts: WorldState, actions: Sequence[str]) -> list[str]:
    """The actions after which the goal can still be reached if nothing is undone; the others are dead ends.

    Actions that the facts don't describe stay. Empty if the goal is already out of reach.
    """
    relaxed, meant = Relaxed.of(facts.task), facts.actions
    if relaxed.plan(facts.state, facts.optimistic) is None:
        return []
    ground = [action for text in actions for action in meant.get(text, ())]
    kept = set(relaxed.without_dead_ends(facts.state, ground, facts.optimistic))
    return [text for text in actions if text not in meant or not kept.isdisjoint(meant[text])]


def looking_useful(facts: WorldState, actions: Sequence[str]) -> list[str]:
    """The helpful actions; all, if none is helpful."""
    helpful = Relaxed.of(facts.task).helpful(facts.state, facts.optimistic)
    return [text for text in actions if not helpful.isdisjoint(facts.actions.get(text, ()))] or list(actions)


class GoalPaths:
    """The ways to the goal that searches found in one episode.

    Attributes
    ----------
    known : dict
        The next action in each state from which a way is known.
    followed : bool
        Whether only the actions of a way are admitted from now on.
    """

    def __init__(self) -> None:
        self.known: dict[FactSet, GroundAction] = {}
        self.followed = False
        self._none: set[FactSet] = set()

    def from_state(self, task: PlanningTask, state: FactSet) -> bool:
        """Whether a way from a state is known, or is found by a search within `MAX_SEARCHED`."""
        if state not in self.known and state not in self._none and not task.reached_goal(state):
            way, found = find_plan(task, state, MAX_SEARCHED)
            if not found:
                self._none.add(state)
            self.known = task.states(state, way) | self.known if found else self.known
        return state not in self._none

    def safe(self, facts: WorldState, action: str) -> bool:
        """Whether the next action can undo this one, or a way leads on after it; True if facts are unknown."""
        task, state = facts.task, facts.state
        for ground in () if facts.optimistic else facts.actions.get(action, ()):
            after = task.apply(state, ground)
            undone = any(task.apply(after, following) == state for following in task.applicable(after))
            if not undone and not self.from_state(task, after):
                return False
        return True


def leads_back(facts: WorldState, action: str, states: Container[object]) -> bool:
    """Whether every ground action that an action's text may stand for leads to one of these states."""
    after = [facts.task.apply(facts.state, ground) for ground in facts.actions.get(action, ())]
    return bool(after) and all(state in states for state in after)
