"""What all environments share that tell their facts: the memory that a model reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator

from constrained.environments.base import Facts
from constrained.planning.facts import State


class FactsEnvironment(ABC):
    """An environment that knows what a player knows, as facts.

    Attributes
    ----------
    task : str
        The goal in words.
    had_effect : bool
        Whether the last action was possible.
    done : bool
        Whether the goal holds.
    """

    task: str
    had_effect: bool
    done: bool

    @abstractmethod
    def facts_now(self) -> Facts:
        """What the player knows, and what may be."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """What there is and what is known of it, in words."""

    def outcome(self) -> dict[str, float]:
        """Whether the goal holds."""
        return {"success": float(self.done)}

    def memory(self, first_observation: str) -> FactsMemory:
        """A memory that tells what is known now."""
        return FactsMemory(self)


class FactsMemory:
    """What is known in an environment that tells its facts, written anew after each action.

    Parameters
    ----------
    environment : FactsEnvironment
    """

    def __init__(self, environment: FactsEnvironment):
        self._environment, self._last = environment, "none"

    def update(self, action: str, observation: str) -> None:
        """Note the last action; the environment knows what it changed."""
        self._last = f"{action.strip()}{'' if self._environment.had_effect else ', no effect'}"

    def text(self) -> str:
        """Return what is known, with the task and the last action."""
        return "\n".join([f"Task: {self._environment.task}", *self._environment.lines(), f"Last: {self._last}"])

    def situation(self) -> Hashable:
        """Return the facts: where they are equal, nothing has changed."""
        state: State = self._environment.facts_now().state
        return state
