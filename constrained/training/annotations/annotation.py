"""Annotations: solutions as subgoals with actions; and the conversations made of them that train Lumos's modules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constrained.agents.strategies.lumos.conversation import (
    KEEP,
    STOP,
    go_on_after,
    ground,
    ground_next,
    numbered,
    plan_for,
)
from constrained.environments.executor.actions import action_space

MAX_CHARACTERS = 200
"""Most characters of a subgoal, as in `grammars/lumos/subgoal.lark`."""


@dataclass(frozen=True)
class AnnotatedStep:
    """A subgoal and the actions that ground it: ``R1 = ...; R2 = ...``."""

    subgoal: str
    turn: str


@dataclass(frozen=True)
class Annotation:
    """The solution of one task."""

    name: str  # the row's name, such as "gsm8k-12"
    space: str  # the action space
    task: str
    steps: tuple[AnnotatedStep, ...]
    answer: str  # the gold answer
    reading: str  # how the steps were found, for statistics: "marks", "text", ...


def subgoal_text(text: str) -> str:
    """A text in the form that the grammar of subgoals admits: one line, no semicolon, not too long."""
    text = " ".join(text.replace(";", ",").split())
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3].rsplit(' ', 1)[0]}..."


def conversations(annotation: Annotation, results: list[str] | None) -> Iterator[dict]:
    """Yield the planner's and the grounder's conversations, both onetime and iterative (section 3.2).

    `results`: the result of each subgoal; if None, they are unknown, and there is no iterative conversation of the
    planner. Each conversation has ``name``, ``module`` ("planner", "grounder"), ``formulation`` ("iterative",
    "onetime"), ``answer`` and ``messages``; the assistant's messages are learned.
    """
    subgoals = [numbered(n, step.subgoal) for n, step in enumerate(annotation.steps, 1)]
    for (module, formulation), turns in _turns(annotation, subgoals, results).items():
        yield {
            "name": annotation.name,
            "module": module,
            "formulation": formulation,
            "answer": annotation.answer,
            "messages": [
                {"role": role, "content": content}
                for turn in turns
                for role, content in zip(("user", "assistant"), turn, strict=True)
            ],
        }


def _turns(
    annotation: Annotation, subgoals: list[str], results: list[str] | None
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """(module, formulation) -> the turns of its conversation, each (user, assistant)."""
    task, grounded = annotation.task, [step.turn for step in annotation.steps]
    actions, plan = action_space(annotation.space).actions, "; ".join(subgoals)
    requests = [ground(task, actions, subgoals[0]), *map(ground_next, subgoals[1:])]
    turns = {
        ("planner", "onetime"): [(plan_for(task), plan)],
        ("grounder", "onetime"): [(ground(task, actions, plan), "; ".join(grounded))],
        ("grounder", "iterative"): list(zip(requests, grounded, strict=True)),
    }
    if results is not None:
        requests = [plan_for(task), *(go_on_after(n, result) for n, result in enumerate(results, 1))]
        answers = [subgoals[0], *(KEEP + subgoal for subgoal in subgoals[1:]), STOP]
        turns["planner", "iterative"] = list(zip(requests, answers, strict=True))
    return turns
