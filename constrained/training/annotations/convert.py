"""The data sets that convert by rule, and what a conversion is held against: the grammars, and execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from pathlib import Path

from constrained.agents.strategies.lumos.conversation import KEEP, numbered
from constrained.agents.strategies.lumos.planner import first_subgoal, next_subgoal, whole_plan
from constrained.environments.executor.actions import action_grammar, action_space, read_turn, slots
from constrained.environments.executor.executor import Executor
from constrained.environments.maths import load_gsm8k, load_svamp
from constrained.errors import ActionError
from constrained.grammar import Grammar
from constrained.training.annotations import gsm8k, strategyqa, svamp
from constrained.training.annotations.annotation import Annotation, conversations
from constrained.training.annotations.prose import rational

DATASETS = {
    "gsm8k": (load_gsm8k, gsm8k.convert),
    "svamp": (load_svamp, svamp.convert),
    "strategyqa": (strategyqa.load_problems, strategyqa.convert),
}
"""Name -> what reads its problems from a file, and what converts one."""


@dataclass(frozen=True)
class Converted:
    """A row, converted.

    Attributes
    ----------
    name : str
    annotation : Annotation or None
    results : list of str or None
        What executing each subgoal's turn gives; for StrategyQA what its facts tell.
    failure : str
        Why there is no annotation, or why it doesn't hold; empty where it does.
    """

    name: str
    annotation: Annotation | None
    results: list[str] | None
    failure: str = ""


def converted(dataset: str, path: str | Path | None = None, limit: int | None = None) -> Iterator[Converted]:
    """Every row of a file, converted, and executed where that needs no model.

    Raises
    ------
    DataError
        The file is missing or damaged, or a row is malformed.
    """
    load_problems, convert = DATASETS[dataset]
    for problem in islice(load_problems(path), limit):
        annotation = convert(problem)
        if isinstance(annotation, str):
            yield Converted(problem.name, None, None, annotation)
        elif dataset == "strategyqa":
            yield Converted(problem.name, annotation, strategyqa.told(problem))
        else:
            results, failure = executed(annotation)
            yield Converted(problem.name, annotation, results, failure)


def executed(annotation: Annotation) -> tuple[list[str] | None, str]:
    """What the subgoals' turns give, each executed from its text; and why the last is not the answer, if so."""
    executor = Executor(annotation.space)
    try:
        results = [executor.execute(step.turn) for step in annotation.steps]
    except ActionError as error:
        return None, f"an action can't be carried out: {error.message}"
    if rational(executor.values[max(executor.values)]) != Fraction(annotation.answer):
        return results, "the published equation comes to another number than the published answer"
    return results, ""


def refused(annotation: Annotation) -> str | None:
    """The first text of an annotation that the grammars don't admit where it stands; None if they admit all."""
    subgoals = [numbered(n, step.subgoal) for n, step in enumerate(annotation.steps, 1)]
    for n, subgoal in enumerate(subgoals, 1):
        turn = subgoal if n == 1 else KEEP + subgoal
        if not (first_subgoal() if n == 1 else next_subgoal(n, n)).matches(turn):
            return turn
    if not whole_plan(len(subgoals)).matches("; ".join(subgoals)):
        return "; ".join(subgoals)
    before = []
    for step in annotation.steps:
        for i, action in enumerate(read_turn(annotation.space, step.turn)):
            bound = tuple((slot, tuple(values)) for slot, values in slots(annotation.space, before).items())
            if not _bound(annotation.space, bound, i == 0).matches(f"{' ' if i else ''}{action.text}"):
                return action.text
            before.append(action)
    return None


@lru_cache(maxsize=1_000)
def _bound(space: str, values: tuple, first: bool) -> Grammar:
    """Rows have mostly the same results at the same points."""
    return action_grammar(action_space(space).bind_view(dict(values)).next_action(), first)


def training_conversations(row: Converted) -> Iterator[dict]:
    """The conversations of a row that converted and holds; none of another."""
    if row.annotation is not None and not row.failure:
        yield from conversations(row.annotation, row.results)
