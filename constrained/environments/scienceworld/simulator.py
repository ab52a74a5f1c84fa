"""ScienceWorld's simulator: load a task, do actions, read the score; a pool keeps idle simulators for later tasks."""

from __future__ import annotations

import os
from typing import Any

from constrained.environments.scienceworld.process import ANSWER_SECONDS, JavaProcess
from constrained.environments.scienceworld.scene import Observer, Scene
from constrained.errors import GameError

SPLITS = {"test": "getVariationsTest", "dev": "getVariationsDev", "train": "getVariationsTrain"}
"""Split of a task's variations -> the simulator's method that lists it."""

IDLE = os.cpu_count() or 1
"""Most idle processes that are kept for later tasks."""

_idle: list[Simulator] = []


class Simulator:
    """One simulator in a Java process of its own.

    The package's own class isn't used: at each step it computes every possible action, which takes ten times as long
    as the step, and draws random numbers from the same source as the world, so that listing actions changes the game.

    Parameters
    ----------
    answer_seconds : float, optional
        Time limit for one request; a process that takes longer is ended.

    Raises
    ------
    GameError
        Java or the package is missing.
    """

    def __init__(self, answer_seconds: float = ANSWER_SECONDS):
        self.process = JavaProcess(answer_seconds)
        with self.process.answering("start"):
            gateway = self.process.gateway
            self._interface = gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
            self._observer = Observer(gateway)
            self.tasks = tuple(self._interface.getTaskNames())

    def load(self, task: str, variation: int = 0, simplifications: str = "", *, gold: bool = False) -> str:
        """Start a task and return its description; with `gold`, let the package's own agent solve it first.

        Raises
        ------
        GameError
            There is no such task, variation or simplification, or the process failed.
        """
        self._check(task, variation)
        with self.process.answering(f"load {task}, variation {variation}"):
            wrong = self._interface.load(task, variation, simplifications, gold)
            if wrong:
                raise GameError(f"ScienceWorld can't load {task}, variation {variation}: {wrong}")
            if self.world().isInErrorState():
                why, known = self.world().getErrorStateMessage(), self._interface.getPossibleSimplifications()
                raise GameError(
                    f"ScienceWorld can't load {task} with {simplifications!r}: {why}",
                    hint=f"simplifications are, with commas between: easy, {known}",
                )
            return self._interface.getTaskDescription()

    def gold(self, task: str, variation: int = 0) -> list[str]:
        """Start a task and return the actions with which the package's own agent solved it."""
        self.load(task, variation, gold=True)
        with self.process.answering("tell the gold actions"):
            return list(self._interface.getGoldActionSequence())

    def variations(self, task: str, split: str) -> list[int]:
        """The numbers of a task's variations in a split of `SPLITS`."""
        self._check(task, 0)
        with self.process.answering(f"list the variations of {task}"):
            getattr(self._interface, "taskStr_$eq")(task)  # the split's method is about the task set here
            return [int(number) for number in getattr(self._interface, SPLITS[split])()]

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action and return the observation, the score so far (0 to 1; -1: failed) and whether it is over."""
        with self.process.answering(action):
            observation = self._interface.step(action)
            score = self._interface.getScore()
            return observation, score, self._interface.getCompleted() or score < 0

    def look(self) -> str:
        """The room's description, which takes no time in the world."""
        with self.process.answering("look around"):
            return self._interface.freeActionLook()

    def inventory(self) -> str:
        """What is carried, which takes no time in the world."""
        with self.process.answering("inventory"):
            return self._interface.freeActionInventory()

    def scene(self) -> Scene:
        """The things that can be named now."""
        with self.process.answering("tell what is there"):
            return self._observer.observe(self.world())

    def world(self) -> Any:
        """The simulator's own AgentInterface, which knows the whole state."""
        return self._interface.agentInterface().get()

    def close(self) -> None:
        """End the process; safe to call twice."""
        self.process.close()

    def _check(self, task: str, variation: int) -> None:
        if task not in self.tasks:
            raise GameError(f"ScienceWorld has no task {task!r}", hint=f"there are: {', '.join(self.tasks)}")
        with self.process.answering("count the variations"):
            number = self._interface.getTaskMaxVariations(task)
        if not 0 <= variation < number:
            raise GameError(f"the task {task} has no variation {variation}", hint=f"it has 0 to {number - 1}")


def borrow(answer_seconds: float = ANSWER_SECONDS) -> Simulator:
    """An idle simulator of this process, or a new one.

    A new Java process takes a second to start, and is slow for its first hundreds of steps; a task plays the same in an
    old process as in a new one.
    """
    while _idle:
        simulator = _idle.pop()
        if simulator.process.usable:
            simulator.process.answer_seconds = answer_seconds
            return simulator
        simulator.close()
    return Simulator(answer_seconds)


def give_back(simulator: Simulator) -> None:
    """Keep a simulator for the next task, until `close_idle` or the end of this process."""
    if simulator.process.usable and len(_idle) < IDLE:
        _idle.append(simulator)
    else:
        simulator.close()


def close_idle() -> None:
    """End the Java processes that no environment uses."""
    while _idle:
        _idle.pop().close()
