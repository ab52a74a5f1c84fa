"""The base of environments that know their facts, with the memory that a model reads there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import ClassVar

from constrained.knowledge.world_state import WorldState
from constrained.planning.model import Problem
from constrained.planning.wording import condition_words


class FactsEnvironment(ABC):
    """An environment that plays a planning task, and can tell what the player knows, as facts.

    Parameters
    ----------
    start : WorldState
        The planning task, and the facts at its start.
    no_goal : str
        The task sentence if the task has no goal.

    Attributes
    ----------
    task : str
        The goal in words.
    facts : WorldState
        The planning task, and the facts that hold now.
    had_effect : bool
        Whether the last action was possible.
    scene : str
        The objects, and the facts known at the start, in words.
    done : bool
        Whether the goal holds.
    judged : bool
        Whether there is a goal, so that the outcome is known.
    """

    TASK_LINE: ClassVar[str] = "Your task is to: {}"
    """The last line of the first observation."""

    def __init__(self, start: WorldState, no_goal: str):
        goal = start.task.goal
        words = no_goal if goal is None else condition_words(goal, start.task)
        self.task = words or "do nothing: the goal always holds"  # (and), the empty goal, has no words
        self.judged = goal is not None
        self._start = self.facts = start
        self.scene = ""
        self.had_effect, self.done = True, self._goal_holds()

    def reset(self) -> str:
        """Start at the first facts; the observation names objects, known facts and goal."""
        self.facts, self.had_effect = self._start, True
        self.done = self._goal_holds()
        self.scene = "\n".join(self.lines())
        return f"{self.scene}\n{self.TASK_LINE.format(self.task)}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do an action; an impossible one changes nothing. The reward is 1.0 if the goal holds after it, else 0.0."""
        self.had_effect = action in self.facts.actions
        answer = self.do(action)
        self.done = self._goal_holds()
        return answer, float(self.done), self.done

    @abstractmethod
    def do(self, action: str) -> str:
        """Change the facts by an action, if it is possible (`had_effect`), and return the answer to it."""

    def facts_now(self) -> WorldState:
        """What the player knows, and what may be: here all that holds."""
        return self.facts

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """The objects and the known facts, in words."""

    @abstractmethod
    def twin(self, problem: Problem, task: str) -> FactsEnvironment:
        """An environment of another problem of the same domain; `task` asks for the problem's goal."""

    def _goal_holds(self) -> bool:
        return self.facts.task.reached_goal(self.facts.state)

    def outcome(self) -> dict[str, float]:
        """Success: whether the goal holds; empty if there is none."""
        return {"success": float(self.done)} if self.judged else {}

    def memory(self, first_observation: str) -> FactsMemory:
        """A memory of the facts known now."""
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
        """The known facts, with the task and the last action."""
        return "\n".join([f"Task: {self._environment.task}", *self._environment.lines(), f"Last: {self._last}"])

    def situation(self) -> Hashable:
        """The facts: equal facts mean that nothing has changed."""
        return self._environment.facts_now().state
