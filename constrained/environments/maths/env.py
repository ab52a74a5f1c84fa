"""A word problem as a text environment, and the suites GSM8K and SVAMP.

Actions compute; the answer given with Finish, or else the last result, is judged. The environment takes the actions of
``grammars/word_problems.lark`` (Calculator, Finish) and those of Lumos's action space for mathematics,
``grammars/lumos/maths.lark``; Lumos's executor computes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import islice

from constrained.environments.base import Binding
from constrained.environments.data import data_folder
from constrained.environments.executor.executor import Executor
from constrained.environments.maths.problems import (
    GSM8K,
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
from constrained.knowledge.demonstration import Demonstrated, Demonstration

MAX_STEPS = 12
"""Most actions for one problem: the longest solutions of GSM8K have 9 calculations, and then Finish."""

SPLITS = ("held_out", "train")
"""GSM8K: a tenth of its training part, and the rest (`problems.is_held_out`). SVAMP: a sixth of its families of
variations, and the rest (`problems.svamp_parts`)."""

CALCULATIONS = range(2, 5)
"""Numbers of calculations that a worked example may have."""

EXAMPLES = 8
"""Most worked examples."""

_MARK = re.compile(r"<<([^<>=]*)=[^<>=]*>>")
_NUMBER = re.compile(r"(?<![\w.])[0-9]*\.?[0-9]+(?![\w.])")
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

    def demonstrations(self, count: int) -> list[Demonstration]:
        """Up to `count` training problems of GSM8K, solved as their authors do; none if they aren't in the data folder.

        Raises DataError: the file is damaged.
        """
        if not (data_folder() / GSM8K).is_file():
            return []
        return [example for example in _solved() if example.task != self.task][:count]

    def outcome(self) -> dict[str, float]:
        """Success: whether `answer` is exactly the right number."""
        return {"success": float(self._right_answer is not None and same_number(self.answer, self._right_answer))}


@cache
def _solved() -> list[Demonstration]:
    """The first training problems of GSM8K whose calculator marks, done one by one, give the answer."""
    training = (problem for problem in load_gsm8k() if not is_held_out(problem))
    return list(islice(filter(None, map(solved, training)), EXAMPLES + 1))


def solved(problem: WordProblem) -> Demonstration | None:
    """A problem of GSM8K as its calculator marks solve it; None if they are many or few, or don't give the answer."""
    formulas = _MARK.findall(problem.solution)
    if len(formulas) not in CALCULATIONS:
        return None
    env, steps = MathsEnv(problem.question, problem.answer), list[Demonstrated]()
    for action in _actions(formulas, env):
        observation, _, _ = env.step(action)
        if not env.had_effect:
            return None
        steps.append(Demonstrated(action, observation))
    return Demonstration(problem.question, tuple(steps)) if env.outcome()["success"] else None


def _actions(formulas: Sequence[str], env: MathsEnv) -> Iterator[str]:
    """The actions that compute formulas, each naming the earlier results that it takes; then the answer."""
    results: dict[str, str] = {given: given for given in numbers_given(env.task)}
    for number, formula in enumerate(formulas, 1):
        yield f"Calculator[{_NUMBER.sub(lambda found: results.get(found[0], found[0]), formula.replace(' ', ''))}]"
        results.setdefault(env.answer, f"R{number}")
    yield f"Finish[{env.answer}]"


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
