"""The problems to train on, with their solutions by rule: not held out, nor variations of held-out ones."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

from benchmarks.lumos.recipe import Recipe
from constrained.environments.executor.executor import Executor
from constrained.environments.maths.problems import WordProblem, is_held_out, load_gsm8k, load_svamp, svamp_parts
from constrained.environments.similarity import VariationFinder
from constrained.training.annotations import gsm8k, svamp
from constrained.training.annotations.annotation import conversations
from constrained.training.annotations.convert import execute
from constrained.training.annotations.prose import value_of

TRIES = 200
"""Draws after which a problem is given up: few numbers are divisible by a large one."""

_NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w,]|\.\d)")
_OPERAND = re.compile(r"\d+\.\d+")

CONVERT = {"gsm8k": gsm8k.convert, "svamp": svamp.convert}


@dataclass(frozen=True)
class Worked:
    """A problem with its solution in words or figures, and the answers to learn for each way of asking (`WAYS`)."""

    dataset: str
    problem: WordProblem
    solution: str
    answers: dict[str, tuple[str, ...]]


def training_problems(recipe: Recipe) -> dict[str, list[WordProblem]]:
    """The problems of each data set that may be trained on."""
    train, held_out = svamp_parts(load_svamp())
    given = load_gsm8k()
    held_out += [problem for problem in given if is_held_out(problem)]
    parts = {"svamp": train, "gsm8k": [problem for problem in given if not is_held_out(problem)]}
    variations = VariationFinder([problem.question for problem in held_out])
    return {
        name: [problem for problem in part[: recipe.rows] if not variations.similar(problem.question)]
        for name, part in parts.items()
    }


def varied(problems: dict[str, list[WordProblem]], recipe: Recipe) -> Iterator[tuple[str, WordProblem]]:
    """Every problem with its data set; SVAMP's followed by augmented copies."""
    for problem in problems["svamp"]:
        yield "svamp", problem
        for copy in range(recipe.copies):
            copied = augment(problem, random.Random(f"{recipe.seed}/{problem.name}/{copy}"))
            if copied is not None:
                yield "svamp", copied
    for problem in problems["gsm8k"]:
        yield "gsm8k", problem


def augment(problem: WordProblem, rng: random.Random) -> WordProblem | None:
    """The problem with other numbers, chosen so that it stays sensible; None if none were found.

    Each number keeps its number of digits and its rank by size; 0 and 1 stay, because the words around them agree with
    them. The answer stays a whole number if it was one, and doesn't become negative.
    """
    old = sorted({int(number) for number in _NUMBER.findall(problem.question)} - {0, 1})
    for _ in range(TRIES if old else 0):
        new = [rng.randint(max(10 ** (len(str(n)) - 1), 2), 10 ** len(str(n)) - 1) for n in old]
        if any(a >= b for a, b in pairwise(new)):
            continue
        changed = dict(zip(old, new))
        equation = _OPERAND.sub(partial(_operand, changed), problem.solution)
        answer = value_of(svamp.formula_of(equation))
        if answer is not None and answer >= 0 and (answer.denominator == 1) >= (problem.answer.denominator == 1):
            question, asked = (_replaced(text, changed) for text in (problem.question, problem.asked))
            return replace(problem, question=question, asked=asked, solution=equation, answer=answer)
    return None


def _replaced(text: str, changed: dict[int, int]) -> str:
    return _NUMBER.sub(lambda found: str(changed.get(int(found[0]), found[0])), text)


def _operand(changed: dict[int, int], found: re.Match[str]) -> str:
    whole, _, decimals = found[0].partition(".")
    return f"{changed.get(int(whole), int(whole))}.0" if not decimals.strip("0") else found[0]


def is_short(dataset: str, problem: WordProblem, recipe: Recipe) -> bool:
    """Whether a problem is short enough to train on; all of SVAMP's are."""
    calculations = problem.solution.count("<<")
    return dataset == "svamp" or (
        len(problem.question) <= recipe.characters and 1 <= calculations <= recipe.calculations
    )


def worked(dataset: str, problem: WordProblem) -> Worked | str:
    """A problem with its solution by rule; else why there is none."""
    annotation = CONVERT[dataset](problem)
    if isinstance(annotation, str):
        return annotation
    results, failure = execute(annotation)
    if failure:
        return failure
    learned = {
        (made["module"], made["formulation"]): [m["content"] for m in made["messages"] if m["role"] == "assistant"]
        for made in conversations(annotation, results)
    }
    planner, grounder = learned["planner", "iterative"], learned["grounder", "iterative"]
    turns = [text for pair in zip(planner, grounder) for text in pair]
    solution = in_words(problem) if dataset == "gsm8k" else in_figures([step.turn for step in annotation.steps])
    finish = f"Finish[{number(problem.answer)}]"
    return Worked(dataset, problem, solution, {
        "answer": (f" {finish}",),
        "reasoning": (f" {solution}\nAction: {finish}",),
        "onetime": (*learned["planner", "onetime"], *learned["grounder", "onetime"]),
        "iterative": (*turns, planner[-1]),
    })  # fmt: skip


def in_words(problem: WordProblem) -> str:
    """GSM8K's solution in one line, without its marks."""
    return " ".join(re.sub(r"<<[^<>]*>>", "", problem.solution).split())


def in_figures(turns: list[str]) -> str:
    """The turns' calculations with their results: ``76 - 25 = 51.``"""
    executor, lines = Executor("maths"), []
    for turn in turns:
        formula = turn.partition("(")[2].removesuffix(")")
        shown = re.sub(r"R(\d+)", lambda found: executor.texts[int(found[1])], formula)
        result = executor.execute(turn)
        lines.append(f"{shown} = {result}." if shown != result else f"{shown}.")
    return " ".join(lines)


def number(answer: Fraction) -> str:
    """An answer as the argument of Finish."""
    return str(answer.numerator) if answer.denominator == 1 else f"{float(answer):g}"
