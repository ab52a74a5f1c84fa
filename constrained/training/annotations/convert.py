"""Convert data sets by rule, and check each conversion by execution and against the grammars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from pathlib import Path

from constrained.agents.strategies.lumos.conversation import KEEP, numbered
from constrained.agents.strategies.lumos.planner import first_subgoal, next_subgoal, whole_plan
from constrained.automaton import Grammar
from constrained.environments.executor.actions import ToolAction, action_grammar, action_space, read_turn, slots
from constrained.environments.executor.executor import Executor
from constrained.environments.maths.problems import load_gsm8k, load_svamp
from constrained.errors import ActionError
from constrained.training.annotations import gsm8k, strategyqa, svamp
from constrained.training.annotations.annotation import Annotation, conversations
from constrained.training.annotations.prose import rational

_READERS: dict[str, tuple[Callable, Callable]] = {
    "gsm8k": (load_gsm8k, gsm8k.convert),
    "svamp": (load_svamp, svamp.convert),
    "strategyqa": (strategyqa.load_problems, strategyqa.convert),
}
DATASETS = tuple(_READERS)


@dataclass(frozen=True)
class Converted:
    """A converted row."""

    name: str
    annotation: Annotation | None
    results: list[str] | None  # the result of executing each subgoal's turn; for StrategyQA taken from its facts
    failure: str = ""  # why there is no annotation, or why it is wrong; empty if it is right


def converted(dataset: str, path: str | Path | None = None, limit: int | None = None) -> Iterator[Converted]:
    """Convert every row of a file, and execute it if that needs no model.

    Raises DataError: the file is missing or damaged, or a row is malformed.
    """
    load, convert = _READERS[dataset]
    for problem in islice(load(path), limit):
        annotation = convert(problem)
        if isinstance(annotation, str):
            yield Converted(problem.name, None, None, annotation)
        elif dataset == "strategyqa":  # executing it would need a model
            yield Converted(problem.name, annotation, strategyqa.subgoal_results(problem))
        else:
            yield Converted(problem.name, annotation, *execute(annotation))


def execute(annotation: Annotation) -> tuple[list[str] | None, str]:
    """Execute the subgoals' turns from their texts; return the results, and why the last isn't the answer (or "")."""
    executor = Executor(annotation.space)
    try:
        results = [executor.execute(step.turn) for step in annotation.steps]
    except ActionError as error:
        return None, f"an action can't be carried out: {error.message}"
    if rational(executor.values[max(executor.values)]) != Fraction(annotation.answer):
        return results, "the published equation comes to another number than the published answer"
    return results, ""


def refused(annotation: Annotation) -> str | None:
    """The first text of an annotation that the grammars don't admit at its position; None if they admit all."""
    subgoals = [numbered(n, step.subgoal) for n, step in enumerate(annotation.steps, 1)]
    for n, subgoal in enumerate(subgoals, 1):
        turn = subgoal if n == 1 else KEEP + subgoal
        if not (first_subgoal() if n == 1 else next_subgoal(n, n)).matches(turn):
            return turn
    if not whole_plan(len(subgoals)).matches("; ".join(subgoals)):
        return "; ".join(subgoals)
    before: list[ToolAction] = []
    for step in annotation.steps:
        for i, action in enumerate(read_turn(annotation.space, step.turn)):
            binding = tuple((slot, tuple(values)) for slot, values in slots(annotation.space, before).items())
            if not _bound_grammar(annotation.space, binding, i == 0).matches(f"{' ' if i else ''}{action.text}"):
                return action.text
            before.append(action)
    return None


@lru_cache(maxsize=1_000)
def _bound_grammar(space: str, binding: tuple, first: bool) -> Grammar:
    """The grammar of an action; cached, because rows mostly have the same results at the same points."""
    return action_grammar(action_space(space).bind_view(dict(binding)).next_action(), first)


def training_conversations(row: Converted) -> Iterator[dict]:
    """Yield the conversations of a row, if its conversion is right."""
    if row.annotation is not None and not row.failure:
        yield from conversations(row.annotation, row.results)
