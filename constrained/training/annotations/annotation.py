"""A solution as subgoals with their actions, and the conversations that train Lumos's modules (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constrained.agents.strategies.lumos.conversation import (
    KEEP,
    STOP,
    Turn,
    go_on_after,
    ground,
    ground_next,
    numbered,
    plan_for,
)
from constrained.environments.executor.actions import action_space

MOST_CHARACTERS = 200
"""Characters of a subgoal, as `grammars/lumos/subgoal.lark` bounds it."""


@dataclass(frozen=True)
class Step:
    """A subgoal, and the turn of actions that it is grounded in: ``R1 = ...; R2 = ...``."""

    subgoal: str
    turn: str


@dataclass(frozen=True)
class Annotation:
    """One task's solution.

    Attributes
    ----------
    name : str
        Of the row: its file's own, or ``gsm8k-12`` with the number of the line.
    space : str
        The action space.
    task : str
    steps : tuple of Step
    answer : str
        The gold answer.
    reading : str
        How the steps were found, for statistics: "marks", "text", ...
    """

    name: str
    space: str
    task: str
    steps: tuple[Step, ...]
    answer: str
    reading: str


def sentence(text: str) -> str:
    """A subgoal's text within what the grammar admits: one line, no semicolon, not too long."""
    text = " ".join(text.replace(";", ",").split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3].rsplit(' ', 1)[0]}..."


def conversations(annotation: Annotation, results: list[str] | None) -> Iterator[dict]:
    """The planner's and the grounder's conversations, at once and one by one.

    Parameters
    ----------
    annotation : Annotation
    results : list of str or None
        What executing each subgoal gives; None where that is not known: then there is no planner's conversation
        one by one.

    Yields
    ------
    dict
        ``name``, ``module`` ("planner", "grounder"), ``formulation`` ("iterative", "onetime"), ``answer`` and
        ``messages``, of which the assistant's are learnt.
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
                for role, content in (("user", turn.user), ("assistant", turn.assistant))
            ],
        }


def _turns(annotation: Annotation, subgoals: list[str], results: list[str] | None) -> dict[tuple[str, str], list[Turn]]:
    """Module and formulation -> their conversation's turns."""
    task, grounded = annotation.task, [step.turn for step in annotation.steps]
    actions, plan = action_space(annotation.space).actions, "; ".join(subgoals)
    users = [ground(task, actions, subgoals[0]), *map(ground_next, subgoals[1:])]
    made = {
        ("planner", "onetime"): [Turn(plan_for(task), plan)],
        ("grounder", "onetime"): [Turn(ground(task, actions, plan), "; ".join(grounded))],
        ("grounder", "iterative"): [Turn(*turn) for turn in zip(users, grounded, strict=True)],
    }
    if results is not None:
        asked = [plan_for(task), *(go_on_after(n, result) for n, result in enumerate(results, 1))]
        says = [subgoals[0], *(KEEP + subgoal for subgoal in subgoals[1:]), STOP]
        made["planner", "iterative"] = [Turn(*turn) for turn in zip(asked, says, strict=True)]
    return made
