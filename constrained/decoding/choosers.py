"""Choosers: objects that choose an action, in the place of a language model that would write it.

A chooser is given the admitted actions and returns one of them. It needs no tokenizer, so it also works in domains
that no text model knows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from constrained.errors import KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.world_state import WorldState

MAX_SHORTEST = 200
"""Longest path that `Shortest` looks for, in steps."""


@dataclass(frozen=True)
class Choice:
    """One choice among admitted actions.

    Attributes
    ----------
    task : str
        The task sentence.
    actions : tuple of str
        The admitted actions, whole, each once.
    stop : str or None
        The action that ends a plan written ahead; None: it can't end here.
    path : tuple of str
        The actions so far that had an effect.
    observation : str
        The last answer of the environment.
    remembered : str
        The memory's text, in lines.
    knowledge : Knowledge or None
        At the present position on the path.
    facts : WorldState or None
        The facts, where they are known.
    been : collection
        The situations in which actions were done; states, where the facts are known.
    temperature : float
        Above 0, a chooser that scores actions draws one; its scores are divided by this.
    random : random.Random
        Depends on seed, task and step alone, so that an interrupted run can be continued.
    """

    task: str
    actions: tuple[str, ...]
    stop: str | None = None
    path: tuple[str, ...] = ()
    observation: str = ""
    remembered: str = ""
    knowledge: Knowledge | None = None
    facts: WorldState | None = None
    been: Collection[Hashable] = ()
    temperature: float = 0.0
    random: random.Random = field(default_factory=random.Random)


@runtime_checkable
class Chooser(Protocol):
    """Chooses among whole actions.

    Attributes
    ----------
    name : str
        For tables and records.
    digest : str
        A digest of its weights, recorded with runs; "" without weights.
    """

    name: str
    digest: str

    def choose(self, choice: Choice) -> str:
        """One of the choice's actions."""
        ...


class Uniform:
    """Chooses uniformly at random: each admitted action is equally likely, however long its text."""

    name: ClassVar[str] = "random"
    digest: ClassVar[str] = ""

    def choose(self, choice: Choice) -> str:
        """One of the actions, at random."""
        return choice.random.choice(choice.actions)


class Shortest:
    """Follows the shortest path that the action knowledge admits; of several, the first in alphabetical order."""

    name: ClassVar[str] = "none"
    digest: ClassVar[str] = ""

    def choose(self, choice: Choice) -> str:
        """An action after which the path ends soonest; the first action if none is found."""
        if choice.stop is not None:
            return choice.stop
        actions, knowledge = sorted(choice.actions), choice.knowledge
        if knowledge is None:
            return actions[0]
        for steps in range(1, MAX_SHORTEST):
            try:
                ending = knowledge.next_action(steps)
            except KnowledgeError:  # no path ends within `steps` actions
                continue
            action = next(filter(ending.matches, actions), None)
            if action is not None:
                return action
        return actions[0]


CHOOSERS: dict[str, type] = {kind.name: kind for kind in (Uniform, Shortest)}
"""Name, given instead of a model -> the chooser."""
