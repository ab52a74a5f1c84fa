"""What every text environment here answers to, in Gymnasium's vocabulary.

`reset` and `step` follow Farama Gymnasium's names for episodes, observations
and rewards, reduced to what a text agent needs: text in, text out.  `view` is
what makes masks possible: the values that the slots of an action grammar may
take right now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Union, runtime_checkable

# One slot's values now: a list, or for a slot that depends on another slot's
# value, a list for each of those values.
Binding = Union[Sequence[str], Mapping[str, Sequence[str]]]

IN_ON = "in/on"
"""The relation between a thing and where it is, in triples that an environment reads by rule."""


class Memory(Protocol):
    """What an agent may remember of an episode, built from its texts alone.

    One that can tell has ``of_use(actions)``: the possible actions less those that are known to be of no use, in the
    same order and never none; with masks on, only these are admitted. One that can keep what it learned when the same
    episode begins anew has ``again(first_observation) -> Memory``. One that serves WESE has ``to_explore(actions)``,
    those of the actions that show something new, and ``know(places, looked)``, what others found. Slots for what was
    shown so far are bound from ``slots()``, which is as an environment's ``view()``.
    """

    def update(self, action: str, observation: str) -> None:
        """Take in one action and the answer to it."""
        ...

    def text(self) -> str:
        """The facts as lines, for a prompt."""
        ...

    def situation(self) -> str:
        """The facts without how one came to know them: equal where nothing has changed."""
        ...


@runtime_checkable
class TextEnvironment(Protocol):
    """A world that answers written actions with written observations.

    One that can list the actions that would have an effect now also has ``admissible() -> list[str]``. One whose
    slots depend on what has been seen may have ``imagined(first_observation) -> TextEnvironment``: the world as far
    as that text lets one guess, to plan in before anything is seen. One where some actions only look names them, as
    its knowledge does, in ``exploring: tuple[str, ...]``. One whose texts have a known form has ``triples(observation)
    -> list of (head, relation, tail)`` and ``entities(names) -> list[str]``: those of the names that the task is about.
    """

    task: str
    """The task sentence, as the first observation states it."""

    had_effect: bool
    """Whether the last step's action was understood and possible."""

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

    def view(self) -> dict[str, Binding]:
        """Return what each slot of the action grammar may be bound to now."""
        ...

    def outcome(self) -> dict[str, float]:
        """Return "success" (0 or 1), then the environment's own measures, such as "f1" or "score" (0 to 1)."""
        ...

    def memory(self, first_observation: str) -> Memory | None:
        """Return a fresh memory that a prompt may hold instead of the whole history; None if there is none."""
        ...

    def close(self) -> None:
        """Free what the environment holds: processes, databases. Safe to call twice."""
        ...
