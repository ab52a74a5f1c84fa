"""An episode's environment, with what the agent remembers of it."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from constrained.environments.base import (
    Binding,
    Environment,
    Facts,
    Memory,
    MemoryWithSlots,
    WithEffect,
    WithFacts,
    WithMemory,
    WithOutcome,
    WithView,
)
from constrained.errors import ConstrainedError
from constrained.planning import GroundAction, State, Task
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan

MAX_NAMED = 30
"""Values of a slot, or keys, that a prompt names."""


class Result(NamedTuple):
    """The result of an action."""

    observation: str
    had_effect: bool  # whether the action was possible
    outcome: dict[str, float]  # "success" (0 or 1), and the environment's own measures
    done: bool  # the episode is over


class World:
    """An environment with the optional abilities of `constrained.environments.base` filled in.

    Parameters
    ----------
    environment : Environment or None
        None: nothing is executed.
    memory : Memory, optional
        Until the environment is reset and offers its own.

    Attributes
    ----------
    tried : dict
        Situation -> the actions already done in it -> the situation after each.
    admitted : dict
        Situation -> the actions that may lead to the goal from it, where that was asked.
    supposed : Facts or None
        In a plan written ahead: the facts after its actions.
    ways : Ways
        Those to the goal that were searched for.
    """

    def __init__(self, environment: Environment | None, memory: Memory | None = None):
        self.environment, self.memory = environment, memory
        self.tried: dict[Hashable, dict[str, Hashable]] = {}
        self.admitted: dict[Hashable, set[str]] = {}
        self.supposed: Facts | None = None
        self.ways = Ways()
        self.first_observation = ""
        self.shown: Mapping[str, Binding] = {}

    def reset(self) -> str:
        """Start anew with a fresh memory; returns the first observation."""
        assert self.environment is not None, "only an environment can be started"
        if not hasattr(self.environment, "reset"):
            raise ConstrainedError(f"{self.environment!r:.80} is no environment", "it has reset() and step(action)")
        observation = _text(self.environment.reset())
        self.remember_from(observation)
        self.first_observation, self.tried, self.admitted, self.ways = observation, {}, {}, Ways()
        return observation

    def remember_from(self, first_observation: str) -> None:
        """Take a fresh memory that begins with this observation, if the environment offers one."""
        environment = self.environment
        self.memory = environment.memory(first_observation) if isinstance(environment, WithMemory) else None

    def slots(self) -> Mapping[str, Binding]:
        """What the slots of the action grammar may be bound to now, from what is in view and what is remembered."""
        found: dict[str, Binding] = {}
        if isinstance(self.environment, WithView):
            view = self.environment.view()
            if not isinstance(view, Mapping):
                raise ConstrainedError(
                    f"view() gave {view!r:.80}", "return a dict: slot -> the values that are there now"
                )
            found.update(view)
        if isinstance(self.memory, MemoryWithSlots):
            found.update(self.memory.slots())
        self.shown = found
        return found

    def told(self) -> Facts | None:
        """The facts that the environment tells, if it does; these are all there are, unlike those of a memory."""
        return self.environment.facts_now() if isinstance(self.environment, WithFacts) else None

    def suppose(self, facts: Facts | None, action: str | None = None) -> None:
        """Take facts as those that hold, in a plan written ahead; `action` is what led to them."""
        before, self.supposed = self.situation(), facts
        if action is not None and before is not None:
            self.tried.setdefault(before, {})[action] = self.situation()

    def step(self, action: str) -> Result:
        """Do an action, and remember it."""
        environment = self.environment
        assert environment is not None, "only an environment can carry out actions"
        before = self.situation()
        observation, reward, done = _stepped(environment.step(action))
        had_effect = environment.had_effect if isinstance(environment, WithEffect) else True
        if self.memory is not None:
            self.memory.update(action, observation)
        if before is not None:
            self.tried.setdefault(before, {})[action] = self.situation()
        outcome = (
            environment.outcome() if isinstance(environment, WithOutcome) else {"success": float(done and reward > 0)}
        )
        return Result(observation, had_effect, dict(outcome), done)

    def done_here(self) -> set[str]:
        """The actions already done in the present situation."""
        return set(self.tried.get(self.situation(), ()))

    def known_facts(self) -> Facts | None:
        """What is known as facts: by the memory, or else by the environment."""
        for source in (self.memory, self.environment):
            if isinstance(source, WithFacts) and (facts := source.facts_now()) is not None:
                return facts
        return self.supposed

    def situation(self) -> Hashable:
        """What is known now: where it is the same again, nothing has changed. None: nothing is remembered."""
        if self.memory is not None and self.supposed is None:
            return self.memory.situation()
        facts = self.known_facts() if self.supposed is None else self.supposed
        return None if facts is None else facts.state

    def without_dead_ends(self, actions: Sequence[str], facts: Facts | None) -> list[str]:
        """The actions without those that can't lead to the goal; all, if that leaves none.

        Sound where the environment is deterministic and a situation says all that matters: if the goal can be reached
        from here at all, it can be reached by one of the actions left.
        """
        left = leading_on(facts, actions) if facts else list(actions)
        here = self.situation()
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

    def helpful(self, actions: Sequence[str], facts: Facts | None) -> list[str]:
        """The actions that look useful, a heuristic.

        Left out are those done here before, those known to lead back to an earlier situation, and those that can't be
        undone and after which a search finds no way to the goal. Where none is left, a way is searched for and followed
        from then on; if none is found, the actions that aren't helpful are taken, too.
        """
        useful = list(actions) if facts is None else looking_useful(facts, actions)
        if facts is None:
            return self._new(useful, facts) or useful
        new = [] if self.ways.followed else [one for one in self._new(useful, facts) if self.ways.safe(facts, one)]
        if not new and not facts.optimistic and self.ways.from_state(facts.task, facts.state):
            self.ways.followed = True
            way = self.ways.known.get(facts.state)
            new = [one for one in actions if way in facts.actions.get(one, ())]
        return new or self._new(actions, facts) or useful

    def _new(self, actions: Iterable[str], facts: Facts | None) -> list[str]:
        """The actions not done here before, and not known to lead back to an earlier situation."""
        done = self.done_here()
        return [one for one in actions if one not in done and not (facts and leads_back(facts, one, self.tried))]

    def in_view(self, slots: Collection[str]) -> str:
        """The first observation, and what `slots` hold now, as lines for a prompt; empty where a memory tells it."""
        if self.memory is not None:
            return ""
        lines = [f"{slot}: {_listed(value)}" for slot, value in self.shown.items() if slot in slots]
        shown = ["What can be named now:", *lines] if lines else []
        return "\n".join([*([self.first_observation] if self.first_observation else []), *shown])

    def facts(self) -> str:
        """What is remembered, as lines for a prompt."""
        return "" if self.memory is None else self.memory.text()


def _text(given: Any) -> str:
    """The observation of `reset`; Gymnasium's environments return it with a dictionary."""
    observation = given[0] if isinstance(given, tuple) and len(given) == 2 else given
    return observation if isinstance(observation, str) else str(observation)


def _stepped(given: Any) -> tuple[str, float, bool]:
    """Observation, reward and whether it is over; of Gymnasium's five values, it is over if terminated or truncated."""
    if isinstance(given, tuple) and len(given) == 5:
        given = (given[0], given[1], bool(given[2] or given[3]))
    if not isinstance(given, tuple) or len(given) != 3:
        raise ConstrainedError(
            f"the environment's step gave {str(given)[:80]!r}, not three values",
            "return observation, reward, done; or, as Gymnasium does, observation, reward, terminated, truncated, info",
        )
    observation, reward, done = given
    return observation if isinstance(observation, str) else str(observation), float(reward), bool(done)


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"at {key}: {_listed(one)}" for key, one in islice(value.items(), MAX_NAMED)) or "none"
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    texts = [str(one) for one in value]
    more = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return ", ".join(texts[:MAX_NAMED]) + more if texts else "none"


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
