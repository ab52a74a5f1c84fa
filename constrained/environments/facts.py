"""The base of environments that know their facts, with the memory that a model reads there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator

from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import State


class FactsEnvironment(ABC):
    """An environment that can tell what the player knows, as facts.

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
    def facts_now(self) -> WorldState:
        """Return what the player knows, and what may be."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Return the objects and the known facts, in words."""

    def outcome(self) -> dict[str, float]:
        """Return success: whether the goal holds."""
        return {"success": float(self.done)}

    def memory(self, first_observation: str) -> FactsMemory:
        """Return a memory of the facts known now."""
        return FactsMemory(self)


class FactsMemory:
    """A memory that reads the known facts from the environment itself.

    Parameters
    ----------
    environment : FactsEnvironment
    """

    def __init__(self, environment: FactsEnvironment):
        self._environment, self._last = environment, "none"

    def update(self, action: str, observation: str) -> None:
        """Record the last action; the environment knows what it changed."""
        self._last = f"{action.strip()}{'' if self._environment.had_effect else ', no effect'}"

    def text(self) -> str:
        """Return the known facts, with the task and the last action."""
        return "\n".join([f"Task: {self._environment.task}", *self._environment.lines(), f"Last: {self._last}"])

    def situation(self) -> Hashable:
        """Return the facts: equal facts mean that nothing has changed."""
        state: State = self._environment.facts_now().state
        return state
