"""`Surroundings`: an episode's environment, with what the agent remembers of it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from constrained.agents.levels import History
from constrained.environments.base import (
    AgentMemory,
    Binding,
    Environment,
    MemoryWithSlots,
    WithCommands,
    WithEffect,
    WithFacts,
    WithMemory,
    WithOutcome,
    WithView,
)
from constrained.errors import ConstrainedError
from constrained.knowledge import Knowledge
from constrained.knowledge.commands import on_one_line, slot_values
from constrained.knowledge.world_state import WorldState

MAX_NAMED = 30
"""Most values (or keys) of a slot that a prompt names."""


class Result(NamedTuple):
    """The result of an action."""

    observation: str
    had_effect: bool  # whether the action was possible
    outcome: dict[str, float]  # "success" (0 or 1), and the environment's own measures
    done: bool  # the episode is over
    reward: float


class Surroundings:
    """An environment, with defaults for the optional abilities of `constrained.environments.base` that it lacks.

    Parameters
    ----------
    environment : Environment or None
        None: nothing is executed.
    memory : AgentMemory, optional
        The memory until the environment is reset, which replaces it.

    Attributes
    ----------
    history : History
        The actions done in each situation.
    supposed : WorldState or None
        In a plan written ahead, the facts after the planned actions.
    commands : frozenset of str or None
        The commands that are possible now, if the environment lists them.
    """

    def __init__(self, environment: Environment | None, memory: AgentMemory | None = None):
        self.environment, self.memory = environment, memory
        self.history = History()
        self.supposed: WorldState | None = None
        self.first_observation = ""
        self.shown: Mapping[str, Binding] = {}
        self.commands: frozenset[str] | None = None

    def reset(self) -> str:
        """Start the environment anew, with a fresh memory, and return the first observation."""
        assert self.environment is not None, "only an environment can be started"
        if isinstance(self.environment, type):
            name = self.environment.__name__
            raise ConstrainedError(f"{name} is a class, not an environment", f"give an instance: {name}(...)")
        if not hasattr(self.environment, "reset"):
            raise ConstrainedError(f"{self.environment!r:.80} is no environment", "it has reset() and step(action)")
        observation = _text(self.environment.reset())
        self.remember_from(observation)
        self.first_observation, self.history = observation, History()
        return observation

    def remember_from(self, first_observation: str) -> None:
        """Replace the memory by a fresh one that begins with this observation, if the environment offers one."""
        environment = self.environment
        self.memory = environment.memory(first_observation) if isinstance(environment, WithMemory) else None

    def slots(self, knowledge: Knowledge) -> Mapping[str, Binding]:
        """The values of the slots of `knowledge` now, from what is in view and what is remembered."""
        values: dict[str, Binding] = {}
        if isinstance(self.environment, WithCommands):
            commands = self.environment.admissible()
            if not isinstance(commands, (list, tuple, set)) or not all(isinstance(text, str) for text in commands):
                raise ConstrainedError(f"admissible() gave {commands!r:.80}", "return a list of texts")
            values.update(slot_values(knowledge.grammar, commands))
            self.commands = frozenset(commands)
        elif isinstance(self.environment, WithView):
            view = self.environment.view()
            if not isinstance(view, Mapping) or not all(isinstance(slot, str) for slot in view):
                raise ConstrainedError(f"view() gave {view!r:.80}", "return a dict: slot -> its values now")
            values.update(view)
        # A memory knows things that are out of view, so its values replace those of the view.
        if isinstance(self.memory, MemoryWithSlots):
            remembered = self.memory.slots()
            values.update(remembered)
            if not knowledge.slots.isdisjoint(remembered):  # the knowledge admits more than what is possible now
                self.commands = None
        self.shown = values
        return values

    def environment_facts(self) -> WorldState | None:
        """The environment's facts, if it has any; these are all that hold, unlike those of a memory."""
        return self.environment.facts_now() if isinstance(self.environment, WithFacts) else None

    def suppose(self, facts: WorldState | None, action: str | None = None) -> None:
        """Suppose that these facts hold, in a plan written ahead; `action` led to them."""
        before, self.supposed = self.situation(), facts
        if action is not None:
            self.history.record(before, action, self.situation())

    def step(self, action: str) -> Result:
        """Do an action, and remember its result."""
        environment = self.environment
        assert environment is not None, "only an environment can carry out actions"
        # Situations are taken around the memory's update, so that the history tells whether an action changed anything.
        before = self.situation()
        observation, reward, done = _stepped(environment.step(action))
        had_effect = environment.had_effect if isinstance(environment, WithEffect) else True
        if self.memory is not None:
            self.memory.update(action, observation)
        self.history.record(before, action, self.situation())
        outcome = (
            environment.outcome() if isinstance(environment, WithOutcome) else {"success": float(done and reward > 0)}
        )
        return Result(observation, had_effect, dict(outcome), done, reward)

    def known_facts(self) -> WorldState | None:
        """The facts that the memory knows, or else the environment, or else those supposed."""
        for source in (self.memory, self.environment):
            if isinstance(source, WithFacts) and (facts := source.facts_now()) is not None:
                return facts
        return self.supposed

    def situation(self) -> Hashable:
        """All that is known now: equal values mean that nothing has changed. None: nothing is remembered."""
        if self.memory is not None and self.supposed is None:
            return self.memory.situation()
        facts = self.known_facts() if self.supposed is None else self.supposed
        return None if facts is None else facts.state

    def in_view(self, slots: Collection[str]) -> str:
        """The values of `slots` as lines for a prompt; empty if there is a memory."""
        if self.memory is not None:
            return ""
        lines = [f"{slot}: {on_one_line(_listed(value))}" for slot, value in self.shown.items() if slot in slots]
        return "\n".join(["What can be named now:", *lines] if lines else [])

    def remembered(self) -> str:
        """The memory as lines for a prompt."""
        return "" if self.memory is None else self.memory.text()


def _text(given: Any) -> str:
    """The observation of `reset`; Gymnasium's environments return it with a dictionary."""
    observation = given[0] if isinstance(given, tuple) and len(given) == 2 else given
    return observation if isinstance(observation, str) else str(observation)


def _stepped(given: Any) -> tuple[str, float, bool]:
    """Observation, reward and done; of Gymnasium's five values, done is terminated or truncated."""
    if isinstance(given, tuple) and len(given) == 5:
        given = (given[0], given[1], bool(given[2] or given[3]))
    if not isinstance(given, tuple) or len(given) != 3:
        raise ConstrainedError(
            f"the environment's step gave {str(given)[:80]!r}, not three values",
            "return observation, reward, done; or, as Gymnasium does, observation, reward, terminated, truncated, info",
        )
    observation, reward, done = given
    try:
        reward = float(reward)
    except (TypeError, ValueError):
        raise ConstrainedError(
            f"the environment's step gave the reward {reward!r:.80}, not a number", "return observation, reward, done"
        ) from None
    return observation if isinstance(observation, str) else str(observation), reward, bool(done)


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"at {key}: {_listed(v)}" for key, v in islice(value.items(), MAX_NAMED)) or "none"
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    texts = list(map(str, value))
    more = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return ", ".join(texts[:MAX_NAMED]) + more if texts else "none"
