"""Mind2Web as a text environment: at every step the recorded page, whatever was done before."""

from __future__ import annotations

from constrained.environments.base import Binding
from constrained.environments.mind2web.page import Element, elements, read_page
from constrained.environments.mind2web.score import StepScore, score_step, score_task
from constrained.environments.mind2web.tasks import OPERATIONS, Operation, Step, WebTask
from constrained.environments.text_index import TextIndex
from constrained.errors import GameError

CANDIDATES = 50
"""Elements put forward at a step, as many as the paper takes from its ranker (section 3.1)."""
SHOWN_CHOICES = 10
"""Choices of a menu that an observation lists."""


class Mind2WebEnv:
    """Do one recorded task.

    A step's action is judged against the recorded one; then the next recorded page is shown with
    the true actions so far, as in the paper's evaluation.

    Parameters
    ----------
    task : WebTask
    candidates : int, optional
        Elements put forward at each step. The paper ranks them with a tuned DeBERTa; here those
        come first that share words with the task and the actions so far, then the first on the page.

    Attributes
    ----------
    task : str
    had_effect : bool
        Whether the last action was one that the page admits.
    scores : list of StepScore
        Of the steps so far.
    """

    def __init__(self, task: WebTask, *, candidates: int = CANDIDATES):
        self.task = task.task
        self.recorded = task
        self._limit = candidates
        self.reset()

    def reset(self) -> str:
        """Go to the first page."""
        self.scores: list[StepScore] = []
        self._within_reach = 0
        self.had_effect = True
        self._shown = self._put_forward()
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
            Whether that was the last step.

        Raises
        ------
        GameError
            When the last step was done already.
        """
        step = self._step()
        element, operation, self.had_effect = self._read(action)
        self._within_reach += any(shown.node in step.targets for shown in self._shown)
        self.scores.append(score_step(step, element and element.node, operation))
        self._shown = self._put_forward()
        reward = self.scores[-1].success
        if self._done():
            return "That was the last step.", reward, True
        return self._page(), reward, False

    def view(self) -> dict[str, Binding]:
        """Return what each slot of ``grammars/mind2web.lark`` may be bound to now."""
        menus = {element.label: list(element.choices) for element in self._shown if element.choices}
        return {
            "ELEMENT": [element.label for element in self._shown] or {},
            "FIELD": [element.label for element in self._shown if element.editable] or {},
            "MENU": list(menus) or {},
            "CHOICE": menus,
        }

    def outcome(self) -> dict[str, float]:
        """Return the paper's scores of the task, and "recall": steps with a right element among those put forward."""
        steps = len(self.recorded.steps)
        return {**score_task(self.scores, steps), "recall": self._within_reach / steps}

    def memory(self, first_observation: str) -> None:
        """There is none: every page shows the actions so far."""
        return

    def close(self) -> None:
        """Nothing is held."""

    def _done(self) -> bool:
        return len(self.scores) == len(self.recorded.steps)

    def _step(self) -> Step:
        if self._done():
            raise GameError("the task is over: its last step was done", hint="call reset() to do it again")
        return self.recorded.steps[len(self.scores)]

    def _put_forward(self) -> list[Element]:
        """The elements of this step, in the order of their node ids, which doesn't tell right from wrong."""
        if self._done():
            return []
        step = self._step()
        page = read_page(step.html)
        there = sorted((node for node in step.candidates if node in page), key=lambda node: (len(node), node))
        described = ((node, " ".join([page[node].role, page[node].text, *page[node].choices])) for node in there)
        best = TextIndex(described).search(" ".join([self.task, *self._before()]), self._limit)
        kept = set(list(dict.fromkeys([*best, *there]))[: self._limit])
        return elements(page, (node for node in there if node in kept))

    def _before(self) -> list[str]:
        return [step.written for step in self.recorded.steps[: len(self.scores)]]

    def _page(self) -> str:
        lines = ["Actions so far:", *(self._before() or ["none"]), "The page has:"]
        for element in self._shown:
            offered = " | ".join(element.choices[:SHOWN_CHOICES])
            more = len(element.choices) - SHOWN_CHOICES
            lines.append(element.label + (f" (choices: {offered}{f' +{more}' if more > 0 else ''})" if offered else ""))
        return "\n".join(lines)

    def _read(self, action: str) -> tuple[Element | None, Operation | None, bool]:
        """The element and the operation that an action names, and whether the page admits it."""
        named = None
        action = action.strip()
        for element in sorted(self._shown, key=lambda element: -len(element.label)):
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
