"""What every text environment here answers to, in Gymnasium's vocabulary.

`reset` and `step` follow Farama Gymnasium's names for episodes, observations
and rewards, reduced to what a text agent needs: text in, text out.  `view` and
`admissible` are what makes masks possible: the values that the slots of an
action grammar may take right now.
"""

from __future__ import annotations

from typing import Mapping, Protocol, Sequence, Union, runtime_checkable

# One slot's values now: a list, or for a slot that depends on another slot's
# value, a list for each of those values.
Binding = Union[Sequence[str], Mapping[str, Sequence[str]]]


@runtime_checkable
class TextEnvironment(Protocol):
    """A world that answers written actions with written observations."""

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
            1.0 on the step that reaches the goal, else 0.0.
        done : bool
            True once the goal is reached; the episode is then over.
        """
        ...

    def view(self) -> dict[str, Binding]:
        """Return what each slot of the action grammar may be bound to now."""
        ...

    def admissible(self) -> list[str]:
        """Return every action that would have an effect now, and no other."""
        ...
