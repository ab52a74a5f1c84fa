"""Suites as Lumos plays them: in its own action spaces (section 4.1), within the released limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from benchmarks.lumos.pages import GroundedShop, GroundedWeb
from constrained.agents.strategies.lumos.grounder import Unanswered
from constrained.environments.base import Binding, TaskEnvironment
from constrained.environments.executor.actions import action_space, read_turn
from constrained.environments.executor.executor import Executor, Tools
from constrained.environments.question.env import MEASURES, QuestionEnv, exact_match
from constrained.environments.suite import Suite, Task
from constrained.errors import ActionError

STRATEGIES = ("lumos", "lumos_onetime")
"""Strategies that play a suite in Lumos's own action space, if it has one."""

MOST_SUBGOALS = {"gsm8k": 8, "svamp": 2, "strategyqa": 5, "hotpotqa": 5, "mind2web": 15, "webshop": 5}
"""Subgoals after which the released agents stop planning, by dataset."""

MATHS = ("gsm8k", "svamp")
QUESTIONS = ("hotpotqa", "strategyqa")
PAGES: dict[str, type[GroundedWeb] | type[GroundedShop]] = {"mind2web": GroundedWeb, "webshop": GroundedShop}
"""Dataset -> what carries out Lumos's actions there."""

ACTIONS = 4
"""Actions for each subgoal that a plan may have, on average: equations take as many."""


def grounded(suite: Suite) -> Suite:
    """`suite` in the action space that Lumos has for it; unchanged if it has none."""
    family = _family(suite)
    most = MOST_SUBGOALS.get(family, 0) * ACTIONS
    if family in MATHS:
        return replace(suite, knowledge="lumos/maths", max_steps=most)
    if family in QUESTIONS:
        tasks = [Task(task.name, task.kind, partial(GroundedQuestion, task.make)) for task in suite.tasks]
        return replace(suite, knowledge="lumos/qa", max_steps=most, tasks=tasks)
    if family in PAGES:
        page = PAGES[family]
        tasks = [Task(task.name, task.kind, partial(page, task.make)) for task in suite.tasks]
        return replace(suite, knowledge=f"lumos/{page.space}", max_steps=most, tasks=tasks)
    return suite


def most_subgoals(suite: Suite) -> int | None:
    """Subgoals after which the released agents stop planning; None if none is known."""
    return MOST_SUBGOALS.get(_family(suite))


def _family(suite: Suite) -> str:
    return suite.name.partition("/")[0]


_TRUTH = {"True": "yes", "False": "no"}  # the value of a comparison -> the answer to a question


class GroundedQuestion:
    """Answer one question; the last result is the answer.

    Parameters
    ----------
    make : callable
        Opens the `QuestionEnv` whose question, index and measures these are.

    `task` (the question) and `had_effect` are those of `MathsEnv`.
    """

    def __init__(self, make: Callable[[], TaskEnvironment]):
        environment = make()
        assert isinstance(environment, QuestionEnv), "other environments have no questions"
        self._env = environment
        self.task = self._env.task
        self.reset()

    def reset(self) -> str:
        """Forget all results, and return the question."""
        self._executor = Executor("qa", Tools(search=self._env.index.search, answer=self._answered))
        self._answer: str | None = None
        self.had_effect = True
        return self._env.reset()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; one that can't be carried out is answered with the reason, and changes nothing.

        Raises Unanswered: a model must answer a question first: give its answer to `answer`, and do the action again.
        """
        try:
            actions = read_turn("qa", action.strip())
            if len(actions) != 1:
                raise ActionError(f"{len(actions)} actions where one is to be done")
            observation, self.had_effect = self._executor.perform(actions[0]), True
        except ActionError as error:
            observation, self.had_effect = f"Error: {error.message}", False
        self._answer = None
        return observation, 0.0, False

    def answer(self, text: str) -> None:
        """Take the answer to the question that the last action asked."""
        self._answer = " ".join(text.split())

    def view(self) -> Mapping[str, Binding]:
        """Which results there are, and what each can be used for."""
        return {**dict.fromkeys(action_space("qa").slots, ()), **self._executor.slots()}

    def outcome(self) -> dict[str, float]:
        """Success (an exact match) and the question's measures, of the last result."""
        last, gold = self._executor.last_text, self._env.question.answer
        given = _TRUTH.get(last, last)
        return {"success": exact_match(given, gold), **{m: MEASURES[m](given, gold) for m in self._env.measures}}

    def _answered(self, question: str, texts: list[str]) -> str:
        if self._answer is None:
            raise Unanswered(question, texts)
        return self._answer
