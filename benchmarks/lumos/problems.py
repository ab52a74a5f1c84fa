"""The problems to train on, with their solutions by rule: not held out, nor variations of held-out ones."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.lumos.recipe import Recipe
from constrained.agents.strategies.lumos.conversation import STOP
from constrained.environments.executor.actions import read_turn
from constrained.environments.maths.problems import WordProblem, is_held_out, load_gsm8k, load_svamp
from constrained.environments.similarity import VariationFinder
from constrained.training.annotations import gsm8k, strategyqa
from constrained.training.annotations.annotation import Annotation, conversations
from constrained.training.annotations.convert import execute
from constrained.training.annotations.forms import low_level, rewoo_plan

HELD_OUT = 10
"""One in so many of StrategyQA's terms is held out, with all its questions."""

MOST_ANSWER = 200
"""Most characters of an answer of the action QA."""


@dataclass(frozen=True)
class Worked:
    """A task with its solution in words, and the answers to learn for each way of asking (`WAYS`)."""

    domain: str
    problem: WordProblem | strategyqa.DecomposedQuestion
    solution: str
    answers: dict[str, tuple[str, ...]]


def maths_problems(recipe: Recipe) -> list[WordProblem]:
    """GSM8K's problems that may be trained on: not held out, nor like one that is, nor like one of SVAMP's."""
    given = load_gsm8k()
    held_out = [problem.question for problem in (*load_svamp(), *filter(is_held_out, given))]
    variations = VariationFinder(held_out)
    rows = [problem for problem in given if not is_held_out(problem)][: recipe.rows]
    return [problem for problem in rows if not variations.similar(problem.question)]


def held_out_term(problem: strategyqa.DecomposedQuestion) -> bool:
    """Whether a question of StrategyQA is held out, to be played: by its term, whose questions share its facts."""
    digest = hashlib.sha256(problem.term.casefold().encode()).digest()
    return int.from_bytes(digest[:4], "big") % HELD_OUT == 0


def held_out_questions() -> list[str]:
    """The names of StrategyQA's questions that are held out."""
    return [problem.name for problem in strategyqa.load_problems() if held_out_term(problem)]


def training_questions() -> Iterator[strategyqa.DecomposedQuestion]:
    """StrategyQA's questions that may be trained on."""
    return (problem for problem in strategyqa.load_problems() if not held_out_term(problem))


def is_short(problem: WordProblem, recipe: Recipe) -> bool:
    """Whether a problem of GSM8K is short enough to train on."""
    calculations = problem.solution.count("<<")
    return len(problem.question) <= recipe.characters and 1 <= calculations <= recipe.calculations


def worked(problem: WordProblem) -> Worked | str:
    """A problem of GSM8K with its solution by rule; else why there is none."""
    annotation = gsm8k.convert(problem)
    if isinstance(annotation, str):
        return annotation
    _, failure = execute(annotation)
    if failure:
        return failure
    solution, finish = in_words(problem), f"Finish[{number(problem.answer)}]"
    return Worked("maths", problem, solution, {
        "answer": (f" {finish}",),
        "reasoning": (f" {solution}\nAction: {finish}",),
        "onetime": _onetime(annotation),
        "iterative": _iterative(annotation),
    })  # fmt: skip


def worked_question(problem: strategyqa.DecomposedQuestion) -> Worked | str:
    """A question of StrategyQA with its solution by rule; else why there is none."""
    annotation = strategyqa.convert(problem)
    if isinstance(annotation, str):
        return annotation
    results, plan = strategyqa.subgoal_results(problem), rewoo_plan(annotation)
    if results is None or any(len(result) > MOST_ANSWER for result in results):
        return "no fact answers one of its questions"
    if plan is None:
        return "a question is too long for ReWOO's plan"
    # The grounder's QA is answered by a model, in training by the fact; a comparison is computed.
    qa_results = [result for step, result in zip(annotation.steps, results) if _asks(annotation, step.turn)]
    facts, finish = in_facts(problem), f"Finish[{annotation.answer}]"
    return Worked("questions", problem, facts, {
        "answer": (f" {finish}",),
        "reasoning": (f" {facts}\nAction: {finish}",),
        "onetime": (*_onetime(annotation), *qa_results),
        "iterative": _iterative(annotation, qa_results),
        "low": _iterative(low_level(annotation), qa_results),
        "rewoo": (plan, *results, finish),
    })  # fmt: skip


def _onetime(annotation: Annotation) -> tuple[str, ...]:
    learned = _learned(annotation)
    return (*learned["planner", "onetime"], *learned["grounder", "onetime"])


def _iterative(annotation: Annotation, said: list[str] | None = None) -> tuple[str, ...]:
    """Each subgoal with its actions, and after those the answer to the question that they ask, if any."""
    learned, answers = _learned(annotation), iter(said or [])
    turns: list[str] = []
    for subgoal, actions in zip(learned["planner", "iterative"], learned["grounder", "iterative"]):
        turns += [subgoal, actions, *([next(answers)] if _asks(annotation, actions) else [])]
    return (*turns, STOP)


def _asks(annotation: Annotation, turn: str) -> bool:
    """Whether a turn's actions ask a question."""
    return any(action.kind == "qa" for action in read_turn(annotation.space, turn))


def _learned(annotation: Annotation) -> dict[tuple[str, str], list[str]]:
    """Module and formulation -> what the assistant says."""
    made = conversations(annotation, [""] * len(annotation.steps))  # results are the user's, who isn't learned
    return {
        (one["module"], one["formulation"]): [m["content"] for m in one["messages"] if m["role"] == "assistant"]
        for one in made
    }


def in_words(problem: WordProblem) -> str:
    """GSM8K's solution in one line, without its marks."""
    return " ".join(re.sub(r"<<[^<>]*>>", "", problem.solution).split())


def in_facts(problem: strategyqa.DecomposedQuestion) -> str:
    """StrategyQA's facts in one line: a chain of thought."""
    return " ".join(" ".join(problem.facts).split())


def number(answer: Fraction) -> str:
    """An answer as the argument of Finish."""
    return str(answer.numerator) if answer.denominator == 1 else f"{float(answer):g}"
