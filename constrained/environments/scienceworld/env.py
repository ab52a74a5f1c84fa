"""ScienceWorld (Wang et al., *Is your Agent Smarter than a 5th Grader?*, 2022) as a text environment."""

from __future__ import annotations

import weakref

from constrained.environments.base import Binding
from constrained.environments.scienceworld.answers import refused
from constrained.environments.scienceworld.process import ANSWER_SECONDS
from constrained.environments.scienceworld.simulator import borrow, give_back
from constrained.environments.scienceworld.slots import asked, bindings
from constrained.errors import GameError


class ScienceWorldEnv:
    """Play one task, in a Java process that the next one may use again.

    Parameters
    ----------
    name : str
        Of the task, such as "boil".
    variation : int, optional
        Which of the task's variations: other things, rooms, questions.
    simplifications : str, optional
        Such as "easy" or "openDoors,teleportAction"; the grammar has no teleporting.
    answer_seconds : float, optional
        How long the simulator may take over one request before it is ended.

    Attributes
    ----------
    task : str
        The task's description.
    had_effect : bool
        Whether the last action was understood and possible, or led to a question.
    score : float
        What the task's goals reached so far are worth, 0 to 1; -1 after focusing on the wrong thing.
    done : bool
        Whether the task is over: solved, or failed.

    Raises
    ------
    GameError
        When Java or the package is missing, or there is no such task or variation.
    """

    # "open" shows what is inside and leads through doors; "answer" is all there is after a question
    exploring = ("look_around", "look_at", "look_in", "read", "inventory", "go", "open", "answer")

    def __init__(
        self, name: str, variation: int = 0, *, simplifications: str = "", answer_seconds: float = ANSWER_SECONDS
    ):
        self.name = f"{name}/{variation}"
        self._which = name, variation, simplifications
        self._answer_seconds = answer_seconds
        self._simulator = None
        self._open()

    def reset(self) -> str:
        """Start the task anew, in a new process if the last one died; return the task and the room."""
        if not self._fresh or self._simulator is None or not self._simulator.process.usable:
            self._open()
        self._fresh = False
        return f"{self.task}\n\n{self._simulator.look().strip()}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action, or answer the question that the last one led to.

        Returns
        -------
        observation : str
        reward : float
            By how much the score has risen.
        done : bool

        Raises
        ------
        GameError
            When the task is over or was closed, or the simulator dies or takes too long.
        """
        simulator = self._playing()
        if self.done:
            raise GameError(f"the task {self.name} is over", hint="call reset() to play it again")
        self._fresh, self._view = False, None
        observation, score, self.done = simulator.step(action.strip())
        self._choices = asked(observation)
        self.had_effect = not refused(observation)
        reward, self.score = score - self.score, score
        return observation.strip(), reward, self.done

    def view(self) -> dict[str, Binding]:
        """Return what each slot of ``grammars/scienceworld.lark`` may be bound to now."""
        simulator = self._playing()
        if self._view is None:
            self._view = bindings(simulator, self._choices)
        return dict(self._view)

    def outcome(self) -> dict[str, float]:
        """Return whether the task is solved, and the score, 0 where it failed."""
        return {"success": float(self.score == 1.0), "score": max(0.0, self.score)}

    def memory(self, first_observation: str) -> None:
        """There is no summary of a science task: a prompt holds the history."""
        return

    def close(self) -> None:
        """Leave the simulator to the next task of this process; safe to call twice."""
        if self._simulator is not None:
            self._simulator = None
            self._release()

    def _open(self) -> None:
        self.close()
        self._simulator = borrow(self._answer_seconds)
        self._release = weakref.finalize(self, give_back, self._simulator)
        self._release.atexit = False  # then the process ends by itself
        self.task = self._simulator.load(*self._which)
        self._fresh, self._view, self._choices = True, None, []
        self.had_effect, self.score, self.done = True, 0.0, False

    def _playing(self):
        if self._simulator is None:
            raise GameError(f"the task {self.name} was closed", hint="call reset() to play it again")
        return self._simulator
