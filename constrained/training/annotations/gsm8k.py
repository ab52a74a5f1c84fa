"""GSM8K's solutions as Lumos annotations: from calculator marks, or from prose and algebra if marks are missing.

Each line of a solution becomes a subgoal. Its calculations, in marks such as ``<<48/2=24>>`` or else in its text, are
the subgoal's actions, which refer to earlier results by name. The published answer only decides between the readings of
a solution and is never used as one of its numbers: a reading must produce the answer when executed from its own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrained.environments.maths.problems import WordProblem
from constrained.training.annotations.algebra import algebra_readings
from constrained.training.annotations.annotation import Annotation
from constrained.training.annotations.compose import ReadLine, compose, numbers_in
from constrained.training.annotations.prose import Calculation, calculations, value_of

_MARK = re.compile(r"<<([^<>]*)=([^<>=]*)>>")

Mark = tuple[str, str, int]
"""Formula, result, and position in the text without marks."""


def convert(problem: WordProblem) -> Annotation | str:
    """The first reading of a solution that produces its answer; else why there is none.

    A reading whose last result is the answer is preferred to one whose last result must still be rounded, for example.
    """
    calculates, unfinished = False, None
    for name, readings in _readings(problem):
        calculates = calculates or any(reading.found for reading in readings)
        if composed := compose(problem.question, readings, problem.answer):
            steps, finish = composed
            how = f"{name}, {finish}" if finish else name
            annotation = Annotation(problem.name, "maths", problem.question, tuple(steps), str(problem.answer), how)
            if not finish:
                return annotation
            if name != "algebra":  # among many equations, one is likely to come close to the answer by chance
                unfinished = unfinished or annotation
    if unfinished:
        return unfinished
    if not calculates:
        return "no calculation can be read in it"
    if problem.answer in numbers_in(_MARK.sub("", problem.solution)):
        return "its text tells the answer, but no calculation that is right and can be read gives it"
    return "its text doesn't come to the published answer"


def _readings(problem: WordProblem) -> Iterator[tuple[str, list[ReadLine]]]:
    lines = [line for line in problem.solution.splitlines() if line.strip()]
    yield "marks", [by_marks(line) for line in lines]
    read = [by_text(line) for line in lines]
    yield "text", read
    for readings in algebra_readings(read, by_text):
        yield "algebra", readings


def by_marks(line: str) -> ReadLine:
    """Read only the line's marks; its text, if a mark only repeats the result, as ``<<72=72>>`` does."""
    text, marks = _split_marks(line)
    if any(not re.search(r"[-+*/]", formula) for formula, _, _ in marks):
        return by_text(line)
    return ReadLine(text, tuple(_marked(text, mark) for mark in marks))


def by_text(line: str) -> ReadLine:
    """Read the calculations in the line's text, and marks that none of them covers."""
    text, marks = _split_marks(line)
    marked = list(calculations(text))
    marked += [_marked(text, mark) for mark in marks if not any(c.begin <= mark[2] <= c.end for c in marked)]
    return ReadLine(text, tuple(sorted(marked, key=lambda calculation: calculation.begin)))


def _split_marks(line: str) -> tuple[str, list[Mark]]:
    """The line's text without marks, and those marks that hold a formula."""
    text, marks, last = "", [], 0
    for mark in _MARK.finditer(line):
        text += line[last : mark.start()]
        if value_of(mark[1].lstrip("+")) is not None:
            marks.append((mark[1].lstrip("+"), mark[2], len(text)))
        last = mark.end()
    return text + line[last:], marks


def _marked(text: str, mark: Mark) -> Calculation:
    """A mark as a calculation; its span in the text is the formula before the mark and the result after it."""
    formula, stated, position = mark
    value = value_of(formula)
    result = re.compile(r"[\d.,]*\d").match(text, position)
    begin = re.search(r"[-+*/xX×÷().,%$\d=][-+*/xX×÷().,%$\d\s=]*$|$", text[:position])
    assert value is not None and begin is not None  # `_split_marks` keeps formulas only; `$` matches anywhere
    return Calculation(formula, value, value_of(stated) or value, begin.start(), result.end() if result else position)
