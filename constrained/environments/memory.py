"""The memory of a world that only its answers tell of: facts, told by the `shows` lines of the world's `.lark` file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from constrained.environments.base import IN_ON, Binding
from constrained.knowledge.world import World
from constrained.knowledge.world.known import Known
from constrained.knowledge.world.shown import Shown
from constrained.knowledge.world_state import WorldState

TASK = re.compile(r"Your task is to: ([^\n]+)")
"""How a first observation says the task."""


class WorldMemory:
    """What an agent has read so far of a world that only its answers tell of.

    Parameters
    ----------
    world : World
        What answers tell, what actions change, and how what is known is told.
    first_observation : str
        The text that opens the episode, with the task.

    Attributes
    ----------
    task : str
        The task sentence, without its full stop.
    known : Known
        The facts.
    shown : Shown
        What follows from them, and how they are told.
    had_effect : bool
        Whether the last action was possible, as far as the answer says.
    """

    def __init__(self, world: World, first_observation: str):
        task = TASK.search(first_observation)
        self.task = task[1].strip().rstrip(".") if task else ""
        self.known = Known(world, self.task)
        self.known.read(first_observation)
        self.shown = Shown(self.known)
        self.last, self.had_effect = "", True

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        self.last = action.strip()
        self.had_effect = self.known.update(self.last, observation)
        self.shown = Shown(self.known)

    def facts_now(self) -> WorldState | None:
        """Return what is known, and what may be, as a planning task."""
        return self.known.facts_now()

    def slots(self) -> dict[str, Binding]:
        """Return values for slots that are named after things' properties that follow (`means` lines)."""
        return self.shown.slots()

    def text(self) -> str:
        """Return the facts for a prompt, a line for each line of the file that says how to tell them."""
        return f"{self.situation()}\nLast: {self.last or 'none'}{'' if self.had_effect else ', no effect'}"

    def situation(self) -> str:
        """Return the same without the last action: equal texts mean that nothing has changed."""
        return f"Task: {self.known.sentence or self.task}\n{self.shown.text}"

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """Return those of the actions that show something new."""
        new = set(self.shown.explores())
        return [action for action in actions if action in new]

    def learn(self, locations: Iterable[tuple[str, str]] = (), searched: Iterable[str] = ()) -> None:
        """Take in, before the first action, what another agent found.

        Parameters
        ----------
        locations : iterable of (thing, place)
            Where things are. Pairs with a place that isn't known to be there are ignored.
        searched : iterable of str
            Places that were looked into, so that one without a thing in `locations` is known to be empty.
        """
        for thing, place in [*(("nothing", place) for place in searched), *locations]:
            self.known.read(f"Found: {thing} {IN_ON} {place}.")
        self.shown = Shown(self.known)

    def restart(self, first_observation: str) -> WorldMemory:
        """Return a memory for the same episode started anew, with the facts that still hold (`again` lines)."""
        other = self._anew(first_observation)
        for predicate, *terms in self.shown.again():
            for term, parameter in zip(terms, self.known.world.domain.predicates[predicate]):
                other.known.add_object(self.known.spell(term), parameter.type)
            other.known.hold(predicate, *terms)
        return other

    def _anew(self, first_observation: str) -> WorldMemory:
        return WorldMemory(self.known.world, first_observation)
