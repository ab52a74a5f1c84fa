"""A word problem as a text environment: actions compute, and the last result or a given answer is judged.

It takes the actions of ``grammars/word_problems.lark`` (Calculator, Finish) and those of Lumos's action space for
mathematics, ``grammars/lumos/maths.lark``; both are computed by Lumos's executor.
"""

from __future__ import annotations

import re
from fractions import Fraction

from constrained.environments.base import Binding
from constrained.environments.executor.executor import Executor, Tools
from constrained.environments.maths.numbers import numbers_given, same_number
from constrained.errors import ActionError, GameError

_CALCULATOR = re.compile(r"Calculator\[(.*)\]", re.DOTALL)
_FINISH = re.compile(r"Finish\[(.*)\]", re.DOTALL)


class MathsEnv:
    """Solve one problem.

    Parameters
    ----------
    question : str
    answer : Fraction, optional
        Without one nothing is ever judged right.
    tools : Tools, optional
        What Lumos's action Code is carried out with; default: it is off.

    Attributes
    ----------
    task : str
        The question.
    had_effect : bool
        Whether the last action could be carried out.
    done : bool
        Whether an answer was given with Finish.
    """

    def __init__(self, question: str, answer: Fraction | None = None, *, tools: Tools = Tools()):
        self.task = question
        self._right, self._tools = answer, tools
        self.reset()

    def reset(self) -> str:
        """Forget all results, and return the question."""
        self._executor = Executor("maths", self._tools)
        self._given: str | None = None
        self.had_effect = True
        self.done = False
        return self.task

    @property
    def answer(self) -> str:
        """What was given as the answer; without that the last result, which is Lumos's; empty if there is none."""
        if self._given is None and self._executor.actions:
            return self._executor.texts[self._executor.actions[-1].results[-1]]
        return self._given or ""

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; one that can't be carried out is answered with the reason, and changes nothing.

        Returns
        -------
        observation : str
        reward : float
            1.0 for the right answer given with Finish, else 0.0.
        done : bool
            Whether an answer was given so.

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
        """Return the numbers given, the results so far, and what each can be used for: the slots of the grammars."""
        return {"GIVEN": numbers_given(self.task), **self._executor.slots()}

    def outcome(self) -> dict[str, float]:
        """Return success: whether `answer` is the right number, exactly."""
        return {"success": float(self._right is not None and same_number(self.answer, self._right))}

    def memory(self, first_observation: str) -> None:
        """Return None: the results are the history."""
        return

    def close(self) -> None:
        """Nothing to free: the process that computes serves others, too."""
