"""ScienceWorld (Wang et al., *Is your Agent Smarter than a 5th Grader?*, 2022) as a text environment, and its suite."""

from __future__ import annotations

import re
import weakref
from functools import cache, partial
from itertools import zip_longest

from constrained.environments.base import Binding
from constrained.environments.scienceworld.process import ANSWER_SECONDS
from constrained.environments.scienceworld.reading import ScienceWorldMemory, names_of, scienceworld
from constrained.environments.scienceworld.scene import answers, choices_of, slots
from constrained.environments.scienceworld.simulator import SPLITS, Simulator, borrow, give_back
from constrained.environments.suite import Suite, Task, check_split
from constrained.errors import GameError
from constrained.knowledge.demonstration import Demonstrated, Demonstration

MAX_STEPS = 50
"""WESE's limit (its section 4.1); the package's own is 100."""


EXAMPLE_STEPS = 25
"""Most actions of a worked example: about the half of `MAX_STEPS`, and what a prompt has room for."""

EXAMPLES_TRIED = 3
"""Training variations of a task of which worked examples are made, at most: a gold path takes up to 10 seconds."""


class ScienceWorldEnv:
    """Play one task, in a Java process that later tasks reuse.

    Parameters
    ----------
    name : str
        The task's name, such as "boil".
    variation : int, optional
        The number of the variation, with its own things, rooms and questions.
    simplifications : str, optional
        Such as "easy" or "openDoors,teleportAction"; the grammar has no teleporting.
    answer_seconds : float, optional
        Time limit for one request; a simulator that takes longer is ended.

    Attributes
    ----------
    task : str
        The task's description.
    had_effect : bool
        Whether the last action was understood and possible, or led to a question.
    score : float
        The points for the goals reached so far, 0 to 1; -1 after focusing on the wrong thing.
    done : bool
        Whether the task is over: solved or failed.

    Raises
    ------
    GameError
        Java or the package is missing, or there is no such task or variation.
    """

    # "open" opens doors and shows what is inside; "answer" is the only action after a question.
    exploring = ("look_around", "look_at", "look_in", "read", "inventory", "go", "open", "answer")

    def __init__(
        self, name: str, variation: int = 0, *, simplifications: str = "", answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self.name = f"{name}/{variation}"
        self._arguments, self._answer_seconds = (name, variation, simplifications), answer_seconds
        self._simulator: Simulator | None = None
        self._view: dict[str, Binding] | None = None
        self._focused: dict[str, str] = {}  # things already focused on -> the simulator's answer
        self._choices: list[str] = []  # possible answers to the question that the last action led to
        self._fresh, self.had_effect, self.score, self.done = True, True, 0.0, False
        self._open()

    def reset(self) -> str:
        """Start the task anew, in a new process if the last one died; return the task and the room."""
        simulator = self._simulator
        if simulator is None or not self._fresh or not simulator.process.usable:
            simulator = self._open()
        self._fresh = False
        return f"{self.task}\n\n{simulator.look().strip()}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action, or answer the question that the last one led to.

        Returns
        -------
        observation : str
        reward : float
            The increase of the score.
        done : bool

        Raises
        ------
        GameError
            The task is over or was closed, or the simulator died or took too long.
        """
        simulator = self._playing()
        if self.done:
            raise GameError(f"the task {self.name} is over", hint="call reset() to play it again")
        self._fresh, self._view = False, None
        observation, score, self.done = simulator.step(action.strip())
        self._choices = choices_of(observation)
        if observation.startswith("You focus on"):
            self._focused[re.sub(r"^focus (?:on )?", "", action.strip())] = observation
        self.had_effect = not refused(observation)
        reward, self.score = score - self.score, score
        return observation.strip(), reward, self.done

    def view(self) -> dict[str, Binding]:
        """What each slot of ``grammars/scienceworld.lark`` may be bound to now."""
        if self._view is None:
            simulator = self._playing()
            if self._choices:
                self._view = answers(self._choices)
            else:
                scene = simulator.scene()
                self._view = slots(scene, names_of(scene, *self._look()), self.task, self._focused)
        return dict(self._view)

    def memory(self, first_observation: str) -> ScienceWorldMemory:
        """A memory that shows changes in the room and the inventory, and the facts known about other places."""
        return ScienceWorldMemory(self.task, self._look)

    def _look(self) -> tuple[str, str]:
        simulator = self._playing()
        return simulator.look(), simulator.inventory()

    def demonstrations(self, count: int) -> list[Demonstration]:
        """Up to `count` other variations of the task, from the training split, as the package's own agent solves them.

        Variations that take more than `EXAMPLE_STEPS` actions aren't shown.
        """
        task, variation = self.name.split("/")
        return [example for number, example in _solved(task) if number != int(variation)][:count]

    def outcome(self) -> dict[str, float]:
        """Success (the task is solved) and the score, 0 if the task failed."""
        return {"success": float(self.score == 1.0), "score": max(0.0, self.score)}

    def close(self) -> None:
        """Leave the simulator to the next task of this process; safe to call twice."""
        if self._simulator is not None:
            self._simulator = None
            self._release()

    def _open(self) -> Simulator:
        self.close()
        simulator = self._simulator = borrow(self._answer_seconds)
        self._release = weakref.finalize(self, give_back, simulator)
        self._release.atexit = False  # at exit the simulator's process ends by itself
        self.task = simulator.load(*self._arguments)
        self._view, self._choices, self._focused = None, [], {}
        self._fresh, self.had_effect, self.score, self.done = True, True, 0.0, False
        return simulator

    def _playing(self) -> Simulator:
        if self._simulator is None:
            raise GameError(f"the task {self.name} was closed", hint="call reset() to play it again")
        return self._simulator


@cache
def _solved(task: str) -> list[tuple[int, Demonstration]]:
    """The first training variations of a task that are solved in a few actions, with their numbers."""
    simulator = borrow()
    try:
        variations = simulator.variations(task, "train")[:EXAMPLES_TRIED]
        golds = {number: simulator.gold(task, number) for number in variations}
    finally:
        give_back(simulator)
    played = ((number, _played(task, number, gold)) for number, gold in golds.items() if len(gold) <= EXAMPLE_STEPS)
    return [(number, example) for number, example in played if example]


def _played(task: str, variation: int, gold: list[str]) -> Demonstration | None:
    """A gold path in an environment of its own; None if it doesn't solve the variation there."""
    env, steps = ScienceWorldEnv(task, variation), list[Demonstrated]()
    try:
        first = env.reset()
        for action in gold:
            if env.done:
                break
            observation, _, _ = env.step(action)
            if env.had_effect:
                steps.append(Demonstrated(action, observation))
        return Demonstration(env.task, tuple(steps), first) if env.outcome()["success"] else None
    finally:
        env.close()


def refused(observation: str) -> bool:
    """Whether an observation says that the action wasn't understood, wasn't possible, or changed nothing."""
    return any(pattern.found_in(observation) for pattern in scienceworld().fails)


def suite(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """The variations of all 30 tasks in one of the package's splits; `seed` has no effect.

    The first variation of each task comes first, then the second of each, so that a limit includes all tasks.

    Parameters
    ----------
    split : {"dev", "test", "train"}, optional
        Default: "test".
    limit : int, optional
    seed : int

    Raises
    ------
    DataError
        There is no such split.
    GameError
        Java or the package is missing.
    """
    split = check_split("scienceworld", split, tuple(SPLITS))
    simulator = borrow()
    try:
        columns = [[(name, i) for i in simulator.variations(name, split)] for name in simulator.tasks]
    finally:
        give_back(simulator)
    chosen = [task for row in zip_longest(*columns) for task in row if task is not None]
    tasks = [Task(f"{name}/{i}", name, partial(ScienceWorldEnv, name, i)) for name, i in chosen[:limit]]
    return Suite(f"scienceworld/{split}", "scienceworld", tasks, MAX_STEPS, ("success", "score"))
