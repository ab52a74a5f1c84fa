"""Protocols of text environments and of the memories that summarise an episode.

`Environment` is all that an agent needs: `reset` and `step`, named as in Farama Gymnasium, with text in and text out.
The other protocols each add one ability. Agents test for them with ``isinstance``, so that an environment of your own
implements only what it has; there is nothing to inherit from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from constrained.knowledge import ActionKnowledge
from constrained.knowledge.world_state import KnownFacts
from constrained.planning import GroundAction

Binding: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
"""The values of one slot: a list, or for a slot that depends on another slot's value, a list for each such value."""

IN_ON = "in/on"
"""The relation between a thing and where it is, in the triples of `WithTriples`."""


@runtime_checkable
class Environment(Protocol):
    """A world that answers written actions with written observations."""

    def reset(self) -> str:
        """Start the episode anew and return the first observation, task included."""
        ...

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action.

        Returns
        -------
        observation : str
        reward : float
            Of this step.
        done : bool
            True once the episode is over.
        """
        ...


@runtime_checkable
class TaskEnvironment(Environment, Protocol):
    """An environment that knows its task, as those of a suite do."""

    task: str
    """The task sentence."""


@runtime_checkable
class WithView(Protocol):
    """An environment with slots to bind."""

    def view(self) -> Mapping[str, Binding]:
        """Return what each slot of the action grammar may be bound to now."""
        ...


@runtime_checkable
class WithCommands(Protocol):
    """An environment that lists what can be done, as TextWorld and Jericho do; they go before a view, if it has one."""

    def admissible(self) -> Sequence[str]:
        """Return every command that would have an effect now, and no other."""
        ...


@runtime_checkable
class WithForm(Protocol):
    """An environment with knowledge of the form of its actions alone, for the level "form"."""

    def form(self, knowledge: ActionKnowledge) -> ActionKnowledge:
        """Return `knowledge` without what it knows of the state; itself if it knows nothing of that."""
        ...


@runtime_checkable
class WithEffect(Protocol):
    """An environment in which an action can fail."""

    had_effect: bool
    """Whether the last action was understood and possible; if not, the agent stays where it was on its path."""


@runtime_checkable
class WithOutcome(Protocol):
    """An environment with measures of its own; without it, a positive reward on the last step is a success."""

    def outcome(self) -> Mapping[str, float]:
        """Return "success" (0 or 1), then further measures, such as "f1" or "score" (0 to 1)."""
        ...


@runtime_checkable
class WithMemory(Protocol):
    """An environment that offers a summary, which the prompt then shows instead of the whole history."""

    def memory(self, first_observation: str) -> Memory | None:
        """Return a fresh memory, or None if there is none for this episode."""
        ...


@runtime_checkable
class WithPrior(Protocol):
    """An environment that can be assumed before it is seen, to write a whole plan in."""

    def prior(self, first_observation: str) -> Environment:
        """Return an environment like this one, as far as the first observation and general knowledge tell."""
        ...


@runtime_checkable
class WithExploration(Protocol):
    """An environment some of whose actions only look."""

    exploring: Sequence[str]
    """The names of these actions in the action knowledge."""


@runtime_checkable
class WithTriples(Protocol):
    """An environment whose observations have a known form, so that no model need read them."""

    def triples(self, observation: str) -> Sequence[tuple[str, str, str]]:
        """Return what an observation says as (head, relation, tail)."""
        ...

    def entities(self, names: Iterable[str]) -> Sequence[str]:
        """Return those of the names that the task is about."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An environment that holds processes, files or connections."""

    def close(self) -> None:
        """Free them. Safe to call twice."""
        ...


@runtime_checkable
class Memory(Protocol):
    """What an agent remembers of an episode, built from the episode's texts alone."""

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        ...

    def text(self) -> str:
        """Return the facts as lines, for a prompt."""
        ...

    def situation(self) -> Hashable:
        """Return the facts without the last action, as text or otherwise: equal ones mean that nothing has changed."""
        ...


@runtime_checkable
class MemoryWithSlots(Protocol):
    """A memory that slots can be bound from."""

    def slots(self) -> Mapping[str, Binding]:
        """Return values for slots, as `WithView.view` does, from what the episode has shown so far."""
        ...


class Facts(KnownFacts, Protocol):
    """What is known of a planning world at one moment."""

    @property
    def actions(self) -> Mapping[str, Sequence[GroundAction]]:
        """The possible actions' texts, each with the ground actions that it may stand for."""
        ...


@runtime_checkable
class WithFacts(Protocol):
    """An environment, or a memory, that knows facts."""

    def facts_now(self) -> Facts | None:
        """Return what is known now; None if this episode has no facts."""
        ...


@runtime_checkable
class LearningMemory(Protocol):
    """A memory that takes in what was found before the episode began."""

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """Return those of the actions that show something new, for an explorer (WESE)."""
        ...

    def learn(self, locations: Iterable[tuple[str, str]] = (), searched: Iterable[str] = ()) -> None:
        """Take in what another agent found: (thing, where it is), and where it looked."""
        ...

    def restart(self, first_observation: str) -> Memory:
        """Return a memory for the same episode started anew, which keeps what it learned (Reflexion)."""
        ...
