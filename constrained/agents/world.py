"""An episode's environment, with what the agent remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from constrained.environments.base import (
    Binding,
    Environment,
    Memory,
    MemoryWithSlots,
    WithEffect,
    WithMemory,
    WithOutcome,
    WithView,
)


class Result(NamedTuple):
    """The result of an action.

    Attributes
    ----------
    observation : str
    had_effect : bool
        Whether the action was possible.
    outcome : dict of str to float
        "success" (0 or 1), and the environment's own measures.
    done : bool
        The episode is over.
    """

    observation: str
    had_effect: bool
    outcome: dict[str, float]
    done: bool


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
    tried : dict of str to set of str
        Situation, as the memory words it -> the actions already done in it.
    """

    def __init__(self, environment: Environment | None, memory: Memory | None = None):
        self.environment, self.memory = environment, memory
        self.tried: dict[str, set[str]] = {}

    def reset(self) -> str:
        """Start anew with a fresh memory; returns the first observation."""
        assert self.environment is not None, "only an environment can be started"
        observation = self.environment.reset()
        self.remember_from(observation)
        self.tried = {}
        return observation

    def remember_from(self, first_observation: str) -> None:
        """Take a fresh memory that begins with this observation, if the environment offers one."""
        environment = self.environment
        self.memory = environment.memory(first_observation) if isinstance(environment, WithMemory) else None

    def slots(self) -> Mapping[str, Binding]:
        """What the slots of the action grammar may be bound to now, from what is in view and what is remembered."""
        found: dict[str, Binding] = {}
        if isinstance(self.environment, WithView):
            found.update(self.environment.view())
        if isinstance(self.memory, MemoryWithSlots):
            found.update(self.memory.slots())
        return found

    def step(self, action: str) -> Result:
        """Do an action, and remember it."""
        environment = self.environment
        assert environment is not None, "only an environment can carry out actions"
        observation, reward, done = environment.step(action)
        had_effect = environment.had_effect if isinstance(environment, WithEffect) else True
        if self.memory is not None:
            self.tried.setdefault(self.memory.situation(), set()).add(action)
            self.memory.update(action, observation)
        outcome = (
            environment.outcome() if isinstance(environment, WithOutcome) else {"success": float(done and reward > 0)}
        )
        return Result(observation, had_effect, dict(outcome), done)

    def done_here(self) -> set[str]:
        """The actions already done in the present situation: environments are deterministic, so they change nothing."""
        return set() if self.memory is None else self.tried.get(self.memory.situation(), set())

    def facts(self) -> str:
        """What is remembered, as lines for a prompt."""
        return "" if self.memory is None else self.memory.text()
