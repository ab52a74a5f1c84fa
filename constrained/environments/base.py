"""Protocols of text environments and of the memories that summarise an episode.

`Environment` is all that an agent needs: `reset` and `step`, named as in Farama Gymnasium, with text in and text out.
Each of the other protocols adds one ability. Agents test for them with ``isinstance``: an environment of your own
implements those that it needs, and inherits from none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from constrained.knowledge import Knowledge
from constrained.knowledge.demonstration import Demonstration
from constrained.knowledge.world_state import WorldState

Binding: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
"""The values of one slot: a list; or, for a slot that depends on another slot, a list for each value of that slot."""

IN_ON = "in/on"
"""The relation between a thing and its place, in the triples of `WithTriples`."""


@runtime_checkable
class Environment(Protocol):
    """A world that answers written actions with written observations."""

    def reset(self) -> str:
        """Start the episode anew and return the first observation, which includes the task."""
        ...

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action.

        Returns
        -------
        observation : str
        reward : float
            The reward of this step.
        done : bool
            Whether the episode is over.
        """
        ...


@runtime_checkable
class TaskEnvironment(Environment, Protocol):
    """An environment with a task, as in a suite."""

    task: str
    """The task sentence."""


@runtime_checkable
class WithView(Protocol):
    """An environment with slots to bind."""

    def view(self) -> Mapping[str, Binding]:
        """The current values of each slot of the action grammar."""
        ...


@runtime_checkable
class WithCommands(Protocol):
    """An environment that lists what can be done, as TextWorld and Jericho do; a view is then ignored."""

    def admissible(self) -> Sequence[str]:
        """Exactly the commands that would have an effect now."""
        ...


@runtime_checkable
class WithForm(Protocol):
    """An environment that offers knowledge of only the form of its actions, for the level "form"."""

    def form(self, knowledge: Knowledge) -> Knowledge:
        """`knowledge` without conditions on the state; unchanged if it has none."""
        ...


@runtime_checkable
class WithEffect(Protocol):
    """An environment in which an action can fail."""

    had_effect: bool
    """Whether the last action was understood and possible; if not, it doesn't count as part of the path."""


@runtime_checkable
class WithOutcome(Protocol):
    """An environment with its own measures; in others, a positive reward on the last step counts as success."""

    def outcome(self) -> Mapping[str, float]:
        """ "success" (0 or 1) and further measures, such as "f1" or "score" (0 to 1)."""
        ...


@runtime_checkable
class WithMemory(Protocol):
    """An environment that offers a summary of the episode, which prompts show instead of the whole history."""

    def memory(self, first_observation: str) -> AgentMemory | None:
        """A fresh memory, or None if this episode has none."""
        ...


@runtime_checkable
class WithPrior(Protocol):
    """An environment that can make an imagined one from its first observation, in which a whole plan is written."""

    def prior(self, first_observation: str) -> Environment:
        """An imagined environment, made from the first observation and general knowledge."""
        ...


@runtime_checkable
class WithExploration(Protocol):
    """An environment in which some actions only observe."""

    exploring: Sequence[str]
    """The names of these actions in the action knowledge."""


@runtime_checkable
class WithDemonstrations(Protocol):
    """An environment that can show how tasks like its own are done."""

    def demonstrations(self, count: int) -> Sequence[Demonstration]:
        """Up to `count` worked examples of other tasks."""
        ...


@runtime_checkable
class WithSupport(Protocol):
    """An environment that knows the sentences on which the right answer rests."""

    def supporting(self) -> Sequence[str]:
        """These sentences, in order; empty if they aren't known."""
        ...


@runtime_checkable
class WithTriples(Protocol):
    """An environment whose observations have a known form, so that rules can read them."""

    def triples(self, observation: str) -> Sequence[tuple[str, str, str]]:
        """The facts in an observation, as (head, relation, tail)."""
        ...

    def entities(self, names: Iterable[str]) -> Sequence[str]:
        """The names that the task is about."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An environment that holds processes, files or connections."""

    def close(self) -> None:
        """Release them; safe to call twice."""
        ...


@runtime_checkable
class AgentMemory(Protocol):
    """An agent's memory of an episode, built from the episode's texts alone."""

    def update(self, action: str, observation: str) -> None:
        """Add one action and the answer to it."""
        ...

    def text(self) -> str:
        """The memory as lines, for a prompt."""
        ...

    def situation(self) -> Hashable:
        """The memory without the last action, in any form: equal values mean that nothing has changed."""
        ...


@runtime_checkable
class MemoryWithSlots(Protocol):
    """A memory that slots can be bound from."""

    def slots(self) -> Mapping[str, Binding]:
        """Values of slots, as `WithView.view` does, from what the episode has shown so far."""
        ...


@runtime_checkable
class WithFacts(Protocol):
    """An environment, or a memory, that knows facts."""

    def facts_now(self) -> WorldState | None:
        """The facts known now; None if this episode has none."""
        ...


@runtime_checkable
class LearningMemory(Protocol):
    """A memory that can hold what was found before the episode began."""

    def filter_exploration(self, actions: Iterable[str]) -> list[str]:
        """The actions that would show something new, for an explorer (WESE)."""
        ...

    def learn(self, locations: Iterable[tuple[str, str]] = (), searched: Iterable[str] = ()) -> None:
        """Add what another agent found: pairs of (thing, place), and the places that it searched."""
        ...

    def restart(self, first_observation: str) -> AgentMemory:
        """A memory for the same episode started anew, which keeps what was learned (Reflexion)."""
        ...
