"""Mind2Web as a text environment, which shows the recorded page at every step, and its suite."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import islice
from pathlib import Path

from constrained.environments.base import Binding
from constrained.environments.data import data_folder
from constrained.environments.mind2web.page import Element, elements, read_page
from constrained.environments.mind2web.tasks import (
    OPERATIONS,
    Operation,
    RecordedStep,
    StepScore,
    WebTask,
    read_tasks,
    score_step,
    score_task,
)
from constrained.environments.suite import Suite, Task, check_split
from constrained.environments.text_search import TextIndex
from constrained.errors import DataError, GameError

CANDIDATES = 50
"""Elements offered at each step: as many as the paper takes from its ranker (section 3.1)."""
SHOWN_CHOICES = 10
"""Most choices of a menu that an observation lists."""
SPLITS = ("test_domain", "test_website", "test_task", "train")
MAX_STEPS = 40
"""More steps than the longest task has; after a failed action the next page is shown, too."""


class Mind2WebEnv:
    """Do one recorded task.

    Each action is judged against the recorded one; then the next recorded page is shown with the true actions so far,
    as in the paper's evaluation.

    Parameters
    ----------
    candidates : int, optional
        Number of elements offered at each step. The paper ranks them with a tuned DeBERTa; here elements that share
        words with the task and the actions so far come first, then the others in the order of the page.

    Attributes
    ----------
    had_effect : bool
        Whether the page admits the last action.
    scores : list of StepScore
        The scores of the steps so far.
    """

    def __init__(self, task: WebTask, *, candidates: int = CANDIDATES):
        self.task = task.task
        self.recorded = task
        self._limit = candidates
        self.reset()

    def reset(self) -> str:
        """Go to the first page."""
        self.scores: list[StepScore] = []
        self._steps_with_target = 0
        self.had_effect = True
        self._offered = self._candidates()
        return f"Website: {self.recorded.website}\nTask: {self.task}\n{self._page()}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action, ``ELEMENT -> CLICK``, ``FIELD -> TYPE: text`` or ``MENU -> SELECT: choice``.

        Returns
        -------
        observation : str
            The next page.
        reward : float
            1.0 if element and operation are the recorded ones.
        done : bool
            Whether this was the last step.

        Raises
        ------
        GameError
            The last step was done before.
        """
        # Scored against the recorded step, whatever the page admits; then the recorded page follows.
        step = self._step()
        element, operation, self.had_effect = self._read(action)
        self._steps_with_target += any(offered.node in step.targets for offered in self._offered)
        self.scores.append(score_step(step, element.node if element else None, operation))
        self._offered = self._candidates()
        reward = self.scores[-1].success
        if self._done():
            return "That was the last step.", reward, True
        return self._page(), reward, False

    def view(self) -> dict[str, Binding]:
        """What each slot of ``grammars/mind2web.lark`` may be bound to now."""
        menus = {element.label: list(element.choices) for element in self._offered if element.choices}
        return {
            "ELEMENT": [element.label for element in self._offered] or {},
            "FIELD": [element.label for element in self._offered if element.editable] or {},
            "MENU": list(menus) or {},
            "CHOICE": menus,
        }

    def outcome(self) -> dict[str, float]:
        """The paper's scores of the task, and "recall": the share of steps that offered a right element."""
        steps = len(self.recorded.steps)
        return {**score_task(self.scores, steps), "recall": self._steps_with_target / steps}

    def _done(self) -> bool:
        return len(self.scores) == len(self.recorded.steps)

    def _step(self) -> RecordedStep:
        if self._done():
            raise GameError("the task is over: its last step was done", hint="call reset() to do it again")
        return self.recorded.steps[len(self.scores)]

    def _candidates(self) -> list[Element]:
        """The elements of this step, ordered by their node ids, which don't reveal the right ones."""
        if self._done():
            return []
        step = self._step()
        page = read_page(step.html)
        nodes = sorted((node for node in step.candidates if node in page), key=lambda node: (len(node), node))
        texts = ((node, " ".join([page[node].role, page[node].text, *page[node].choices])) for node in nodes)
        best = TextIndex(texts).search(" ".join([self.task, *self._actions_so_far()]), self._limit)
        kept = set(list(dict.fromkeys([*best, *nodes]))[: self._limit])
        return elements(page, (node for node in nodes if node in kept))

    def _actions_so_far(self) -> list[str]:
        return [step.action for step in self.recorded.steps[: len(self.scores)]]

    def _page(self) -> str:
        lines = ["Actions so far:", *(self._actions_so_far() or ["none"]), "The page has:"]
        for element in self._offered:
            choices = " | ".join(element.choices[:SHOWN_CHOICES])
            more = len(element.choices) - SHOWN_CHOICES
            lines.append(element.label + (f" (choices: {choices}{f' +{more}' if more > 0 else ''})" if choices else ""))
        return "\n".join(lines)

    def _read(self, action: str) -> tuple[Element | None, Operation | None, bool]:
        """The element and the operation that an action names, and whether the page admits the action."""
        named = None
        action = action.strip()
        for element in sorted(self._offered, key=lambda element: -len(element.label)):
            if action.startswith(f"{element.label} -> "):
                name, value = _operation(action[len(element.label) + 4 :])
                if _admits(element, name, value):
                    return element, Operation(name, value), True
                named = named or element
        name, value = _operation(action.rpartition(" -> ")[2])
        return named, Operation(name, value) if name in OPERATIONS else None, False


def _operation(text: str) -> tuple[str, str]:
    name, _, value = text.partition(": ")
    return name, " ".join(value.split())


def _admits(element: Element, name: str, value: str) -> bool:
    if name == "CLICK":
        return not value
    if name == "TYPE":
        return element.editable and bool(value)
    return name == "SELECT" and value in element.choices


def mind2web(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """The tasks of a split as a suite, in the files' order; by default "test_domain", as AgentBench and Lumos report.

    Raises DataError: there is no such split, its files are missing, or a row is malformed.
    """
    split = check_split("mind2web", split, SPLITS)
    folder = data_folder() / "mind2web" / split
    files = sorted(path for path in folder.glob(f"{split}_*.json*") if path.is_file())
    if not files:
        raise DataError(
            f"no Mind2Web data: no {split}_0.json in {folder}",
            hint="huggingface.co/datasets/osunlp/Mind2Web has the training files, and says where the test files are",
        )
    found = ((path, number, task) for path in files for number, task in enumerate(_tasks(path)))
    tasks = [Task(t.name, t.domain, partial(_open, path, number)) for path, number, t in islice(found, limit)]
    measures = ("success", "step_success", "element_accuracy", "operation_f1", "recall")
    return Suite(f"mind2web/{split}", "mind2web", tasks, MAX_STEPS, measures)


@lru_cache(maxsize=1)  # a file has about 100 MB, and its tasks are played one after another
def _tasks(path: Path) -> tuple[WebTask, ...]:
    return tuple(read_tasks(path))


def _open(path: Path, number: int) -> Mind2WebEnv:
    return Mind2WebEnv(_tasks(path)[number])
