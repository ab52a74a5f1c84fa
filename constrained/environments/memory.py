"""The memory of a world that is known only by its answers: facts, written by the `shows` lines of its `.lark` file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from constrained.environments.base import IN_ON, Binding
from constrained.knowledge.commands import on_one_line
from constrained.knowledge.world import World
from constrained.knowledge.world.belief_state import BeliefState
from constrained.knowledge.world.shown import Shown
from constrained.knowledge.world_state import WorldState

TASK = re.compile(r"Your task is to: ([^\n]+)")
"""The task in a first observation."""


class WorldMemory:
    """An agent's memory of a world that is known only by its answers.

    Parameters
    ----------
    world : World
        Defines what answers mean, what actions change, and how facts are written.
    first_observation : str
        The text that opens the episode, with the task.

    Attributes
    ----------
    task : str
        The task sentence, without its full stop.
    known : BeliefState
        The known facts.
    shown : Shown
        What follows from the facts, and how they are written.
    had_effect : bool
        Whether the last action was possible, as far as the answer says.
    """

    def __init__(self, world: World, first_observation: str):
        task = TASK.search(first_observation)
        self.task = task[1].strip().rstrip(".") if task else ""
        self.known = BeliefState(world, self.task)
        self.known.read(first_observation)
        self.shown = Shown(self.known)
        self.last, self.had_effect = "", True

    def update(self, action: str, observation: str) -> None:
        """Add one action and the answer to it."""
        self.last = action.strip()
        self.had_effect = self.known.update(self.last, observation)
        self.shown = Shown(self.known)

    def facts_now(self) -> WorldState | None:
        """What is known and what may be, as the state of a planning task."""
        return self.known.facts_now()

    def slots(self) -> dict[str, Binding]:
        """Values of the slots that are named after derived properties of things (`means` lines)."""
        return self.shown.slots()

    def text(self) -> str:
        """The facts for a prompt, a line for each `shows` line of the file, and the last action."""
        return f"{self.situation()}\nLast: {on_one_line(self.last or 'none')}{'' if self.had_effect else ', no effect'}"

    def situation(self) -> str:
        """The same text without the last action: equal texts mean that nothing has changed."""
        return f"Task: {self.known.sentence or self.task}\n{self.shown.text}"

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """The actions that would show something new."""
        new = set(self.shown.explores())
        return [action for action in actions if action in new]

    def learn(self, locations: Iterable[tuple[str, str]] = (), searched: Iterable[str] = ()) -> None:
        """Add, before the first action, what another agent found.

        Parameters
        ----------
        locations : iterable of (thing, place)
            Where things are. Pairs with an unknown place are ignored.
        searched : iterable of str
            Places that were searched: those without a thing in `locations` are known to be empty.
        """
        for thing, place in [*(("nothing", place) for place in searched), *locations]:
            self.known.read(f"Found: {thing} {IN_ON} {place}.")
        self.shown = Shown(self.known)

    def restart(self, first_observation: str) -> WorldMemory:
        """A memory for the same episode started anew, with the facts that still hold (`again` lines)."""
        fresh = self._fresh(first_observation)
        for predicate, *terms in self.shown.again():
            for term, parameter in zip(terms, self.known.world.domain.predicates[predicate]):
                fresh.known.add_object(self.known.spell(term), parameter.type)
            fresh.known.hold(predicate, *terms)
        return fresh

    def _fresh(self, first_observation: str) -> WorldMemory:
        return WorldMemory(self.known.world, first_observation)
