"""A word problem as a text environment, and the suites GSM8K and SVAMP.

Actions compute; the answer given with Finish, or else the last result, is judged. The environment takes the actions of
``grammars/word_problems.lark`` (Calculator, Finish) and those of Lumos's action space for mathematics,
``grammars/lumos/maths.lark``; Lumos's executor computes both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from constrained.environments.base import Binding
from constrained.environments.executor.executor import Executor
from constrained.environments.maths.problems import (
    WordProblem,
    is_held_out,
    load_gsm8k,
    load_svamp,
    numbers_given,
    same_number,
    svamp_parts,
)
from constrained.environments.suite import Suite, Task, check_split
from constrained.errors import ActionError, GameError

MAX_STEPS = 12
"""Most actions for one problem: the longest solutions of GSM8K have 9 calculations, and then Finish."""

SPLITS = ("held_out", "train")
"""GSM8K: a tenth of its training part, and the rest (`problems.is_held_out`). SVAMP: a sixth of its families of
variations, and the rest (`problems.svamp_parts`)."""

_CALCULATOR = re.compile(r"Calculator\[(.*)\]", re.DOTALL)
_FINISH = re.compile(r"Finish\[(.*)\]", re.DOTALL)


class MathsEnv:
    """Solve one problem.

    Parameters
    ----------
    answer : Fraction, optional
        Without it, no answer is right.

    Attributes
    ----------
    task : str
        The question.
    had_effect : bool
        Whether the last action could be carried out.
    done : bool
        Whether an answer was given with Finish.
    """

    def __init__(self, question: str, answer: Fraction | None = None):
        self.task = question
        self._right_answer = answer
        self.reset()

    def reset(self) -> str:
        """Forget all results, and return the question."""
        self._executor = Executor("maths")
        self._given: str | None = None
        self.had_effect = True
        self.done = False
        return self.task

    @property
    def answer(self) -> str:
        """The answer given with Finish, or else the last result, as in Lumos; empty if there is neither."""
        return self._executor.last_text if self._given is None else self._given

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; if it can't be carried out, the observation says why, and nothing changes.

        Returns
        -------
        reward : float
            1.0 for the right answer given with Finish, else 0.0.
        done : bool
            Whether an answer was given with Finish.

        Raises
        ------
        GameError
            The answer has been given.
        """
        if self.done:
            raise GameError("the answer has been given", hint="call reset() to solve the problem again")
        action = action.strip()
        if finish := _FINISH.fullmatch(action):
            self._given = finish[1].strip()
            self.done = self.had_effect = True
            right = self.outcome()["success"]
            return f"Answer is {'CORRECT' if right else 'INCORRECT'}", right, True
        # A calculation without a name gets the next result's, which its answer then shows.
        calculator, label = _CALCULATOR.fullmatch(action), ""
        if calculator:
            label = f"R{self._executor.slots()['N'][0]} = "
            action = f"{label}Calculator({calculator[1]})"
        try:
            result = self._executor.execute(action)
        except ActionError as error:
            self.had_effect = False
            return f"Error: {error.message}", 0.0, False
        self.had_effect = True
        return f"{label}{result}", 0.0, False

    def view(self) -> dict[str, Binding]:
        """The slots of the grammars: the numbers in the problem, and the results so far by their uses."""
        return {"GIVEN": numbers_given(self.task), **self._executor.slots()}

    def outcome(self) -> dict[str, float]:
        """Success: whether `answer` is exactly the right number."""
        return {"success": float(self._right_answer is not None and same_number(self.answer, self._right_answer))}


def gsm8k(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """GSM8K's problems as a suite, by default those that are held out; `seed` has no effect."""
    split = check_split("gsm8k", split, SPLITS)
    problems = [problem for problem in load_gsm8k() if is_held_out(problem) == (split == "held_out")]
    return _suite(f"gsm8k/{split}", problems[:limit])


def svamp(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """SVAMP's first 700 problems as a suite (Lumos was tuned on none of them), or a split; `seed` has no effect."""
    problems = load_svamp()
    if split is None:
        return _suite("svamp", problems[:limit])
    train, held_out = svamp_parts(problems)
    return _suite(f"svamp/{split}", (held_out if check_split("svamp", split, SPLITS) == "held_out" else train)[:limit])


def _suite(name: str, problems: Sequence[WordProblem]) -> Suite:
    tasks = [Task(p.name, p.kind, partial(MathsEnv, p.question, p.answer)) for p in problems]
    return Suite(name, "word_problems", tasks, MAX_STEPS)
