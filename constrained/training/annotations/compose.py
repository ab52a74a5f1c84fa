"""Turn the calculations in a solution's lines into subgoals and actions, and execute the actions on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from constrained.environments.executor.executor import Executor
from constrained.errors import ActionError
from constrained.training.annotations.annotation import AnnotatedStep, subgoal_text
from constrained.training.annotations.prose import Calculation, rational

_LITERAL = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?![\d%]|\.\d)")
_ASKS_PERCENTAGE = re.compile(r"percent|%|probability|chance|odds|likel")


@dataclass(frozen=True)
class Solving:
    """Equations to solve for unknowns; `begin` and `end` are their span in the line."""

    equations: tuple[tuple[str, str], ...]
    unknowns: tuple[str, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class ReadLine:
    """A line of a solution: its text without marks, and the calculations in it."""

    text: str
    found: tuple[Calculation | Solving, ...]


class Composition:
    """Steps being composed, with the executor that runs each turn.

    Parameters
    ----------
    question : str
        The numbers in it are given: an earlier result with the same value is named only once.
    solution : str
        The solution's text.
    naming : bool
        Whether to refer to earlier results by name, not by their values.
    """

    def __init__(self, question: str, solution: str, naming: bool = True):
        self.question, self.solution, self.naming = question, solution, naming
        self.steps: list[AnnotatedStep] = []
        self.executor = Executor("maths")
        self._given = set(numbers_in(question))
        self._results: dict[Fraction, int] = {}  # a value, computed or stated -> its latest result
        self._used: set[int] = set()
        self._next = 1

    def add(self, reading: ReadLine) -> None:
        """Add a step for a line if it calculates anything."""
        actions = [action for found in reading.found for action in self._actions(found)]
        if actions:
            self._write(_subgoal(reading), actions)

    def _write(self, subgoal: str, actions: list[str]) -> None:
        turn = "; ".join(actions)
        self.executor.execute(turn)
        self.steps.append(AnnotatedStep(subgoal_text(subgoal), turn))

    def _actions(self, found: Calculation | Solving) -> list[str]:
        if isinstance(found, Solving):
            return self._solving_actions(found)
        literal = _LITERAL.fullmatch(found.formula)
        if literal and found.value in self._results:
            return []
        action = f"Define({found.formula})" if literal else f"Calculator({self._with_names(found.formula)})"
        number = self._new_result()
        self._results[found.value] = self._results[found.stated] = number
        return [f"R{number} = {action}"]

    def _solving_actions(self, found: Solving) -> list[str]:
        actions = [f"R{self._new_result()} = Define({unknown})" for unknown in found.unknowns]
        equations = []
        for left, right in found.equations:
            equations.append(f"R{self._new_result()}")
            actions.append(f"{equations[-1]} = SetEquation({self._with_names(left)} = {self._with_names(right)})")
        results = ", ".join(f"R{self._new_result()}" for _ in found.unknowns)
        return [*actions, f"{results} = SolveEquation({', '.join(equations)})"]

    def _new_result(self) -> int:
        self._next += 1
        return self._next - 1

    def _with_names(self, formula: str) -> str:
        """The formula with earlier results replaced by their names."""
        return _LITERAL.sub(lambda found: self._name(found[0]), formula) if self.naming else formula

    def _name(self, literal: str) -> str:
        # A number that the question gives may equal a result by chance: then the result is named only once.
        number = self._results.get(Fraction(literal))
        if number is None or (Fraction(literal) in self._given and number in self._used):
            return literal
        self._used.add(number)
        return f"R{number}"

    def learn_solutions(self) -> None:
        """Record the solutions of equations, so that later lines can name them."""
        for number, value in self.values().items():
            self._results.setdefault(value, number)

    def values(self) -> dict[int, Fraction]:
        """The results that are rational numbers."""
        values = {number: rational(value) for number, value in self.executor.values.items()}
        return {number: value for number, value in values.items() if value is not None}

    def finish(self, answer: Fraction) -> str | None:
        """Turn the last result into the answer, in the form that the question asks for.

        Returns the step that had to be added: "" for none, "percentage", "cents", "rounding", or "choice" of an earlier
        result; None if the results don't give the answer.
        """
        values = self.values()
        last = self._next - 1
        if last not in values or self.executor.actions[-1].kind == "define":
            return None  # a number that is only written down is not a solution
        value, question = values[last], self.question.casefold()
        if value == answer:
            return ""
        # The forms in which a solution may leave its answer, the likeliest first; the first that gives it is taken.
        percent = _ASKS_PERCENTAGE.search(question)
        near = percent and answer.denominator == 1 and abs(value * 100 - answer) <= Fraction(1, 2)
        stated = answer in numbers_in(self.solution)
        same = next((number for number in reversed(values) if values[number] == answer), None)
        for applies, what, formula, subgoal in (
            (value * 100 == answer and percent, "percentage", f"R{last} * 100", "Give it as a percentage."),
            (near, "percentage", f"round(R{last} * 100)", "Give it as a percentage, rounded to a whole number."),
            (value * 100 == answer and "cent" in question, "cents", f"R{last} * 100", "Give it in cents."),
            (stated and math.ceil(value) == answer, "rounding", f"ceil(R{last})", "Round it up to a whole number."),
            (stated and math.floor(value) == answer, "rounding", f"floor(R{last})", "Round it down to a whole number."),
            (same is not None, "choice", f"R{same}", "Choose the result that is asked for."),
        ):
            if applies:
                self._write(subgoal, [f"R{self._new_result()} = Calculator({formula})"])
                return what
        return None


def numbers_in(text: str) -> list[Fraction]:
    """The numbers in a text."""
    return [Fraction(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.\d+|\d[\d,]*\d|\d", text)]


def solve(solving: Solving) -> dict[str, Fraction]:
    """The unknowns' values if the equations determine them as rational numbers, else an empty dict."""
    alone = Composition("", "", naming=False)
    try:
        alone.add(ReadLine("", (solving,)))
    except ActionError:
        return {}
    values = alone.values()
    numbers = alone.executor.actions[-1].results
    return dict(zip(solving.unknowns, (values[n] for n in numbers))) if all(n in values for n in numbers) else {}


def compose(question: str, readings: Sequence[ReadLine], answer: Fraction) -> tuple[list[AnnotatedStep], str] | None:
    """The steps of a solution in this reading, and what `Composition.finish` had to add.

    None if executing the steps doesn't give the answer. Earlier results are named if that leads to the answer; if a
    solution continues with a rounded number, numbers are written out instead.
    """
    solution = "\n".join(reading.text for reading in readings)
    for naming in (True, False):
        composition = Composition(question, solution, naming)
        try:
            for reading in readings:
                composition.add(reading)
                composition.learn_solutions()
            finish = composition.finish(answer)
        except ActionError:
            continue
        if finish is not None:
            return composition.steps, finish
    return None


def _subgoal(reading: ReadLine) -> str:
    """The line with a blank for the result; only the formula if there are no words."""
    text, words = reading.text, reading.text
    for calculation in reversed(reading.found):
        words = f"{words[: calculation.begin]} ___ {words[calculation.end :]}"
    if re.search(r"[^\W\d_]{3,}", words):
        return f"Find what belongs in the blank: {words}"
    formulas = (f.formula if isinstance(f, Calculation) else " = ".join(f.equations[0]) for f in reading.found)
    return f"Work out {' and '.join(formulas) or text}"
