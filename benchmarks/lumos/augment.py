"""SVAMP's problems with fresh numbers: the same text and equation, the answer computed anew by the executor."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from constrained.environments.maths.problems import WordProblem
from constrained.training.annotations.prose import value_of
from constrained.training.annotations.svamp import formula_of

TRIES = 200
"""Draws after which a problem is left as it is: few numbers can be divided by a large one."""

_NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w,]|\.\d)")
_OPERAND = re.compile(r"\d+\.\d+")


def augment(problem: WordProblem, rng: random.Random) -> WordProblem | None:
    """The problem with other numbers, so that it stays as sensible as it was.

    A number keeps its digits' count and its place in the order of size; 0 and 1 stay, as the words around them agree
    with them. The answer stays a whole number where it was one, and doesn't become negative.

    Returns
    -------
    WordProblem or None
        None where no such numbers were found.
    """
    old = sorted({int(number) for number in _NUMBER.findall(problem.question)} - {0, 1})
    for _ in range(TRIES if old else 0):
        new = [rng.randint(max(10 ** (len(str(n)) - 1), 2), 10 ** len(str(n)) - 1) for n in old]
        if any(a >= b for a, b in zip(new, new[1:])):
            continue
        changed = dict(zip(old, new))
        equation = _OPERAND.sub(lambda found: _operand(found[0], changed), problem.solution)
        answer = value_of(formula_of(equation))
        if answer is not None and answer >= 0 and (answer.denominator == 1) >= (problem.answer.denominator == 1):
            question, asked = (_replaced(text, changed) for text in (problem.question, problem.asked))
            return replace(problem, question=question, asked=asked, solution=equation, answer=answer)
    return None


def _replaced(text: str, changed: dict[int, int]) -> str:
    return _NUMBER.sub(lambda found: str(changed.get(int(found[0]), found[0])), text)


def _operand(written: str, changed: dict[int, int]) -> str:
    whole, _, decimals = written.partition(".")
    return f"{changed.get(int(whole), int(whole))}.0" if not decimals.strip("0") else written
