"""Judge a written plan: which action fails and why, or what of the goal is missing at its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained.errors import PddlError
from constrained.planning.facts import State
from constrained.planning.model import Condition
from constrained.planning.task import GroundAction, Task

EXECUTED, UNKNOWN, INAPPLICABLE = "executed", "unknown", "inapplicable"
"""What became of a plan's actions: all were done; one doesn't exist in the task; one's precondition didn't hold."""


@dataclass(frozen=True)
class PlanVerdict:
    """What a plan comes to.

    Attributes
    ----------
    outcome : {"executed", "unknown", "inapplicable"}
    solved : bool
        Whether all actions were done and the goal holds at the end.
    steps : int
        Actions done.
    action : str
        The action that failed, as written; "" if none did.
    missing : tuple of Condition
        The parts of its precondition that didn't hold; if all actions were done, those of the goal.
    reason : str
        Why there is no such action, where there is none.
    final : State
        After the last action that was done.
    """

    outcome: str
    solved: bool
    steps: int
    action: str
    missing: tuple[Condition, ...]
    reason: str
    final: State


def read_action(line: str) -> GroundAction | None:
    """The action that a line such as ``(stack a b)`` writes, in lower case; None if it writes none.

    Parentheses may be missing, as in the plans that some programs write.
    """
    words = line.strip().lower()
    if words.startswith("(") and words.endswith(")"):
        words = words[1:-1]
    name, *arguments = words.split() or [""]
    return GroundAction(name, tuple(arguments)) if name and not set(words) & set("()") else None


def judge_plan(task: Task, lines: Iterable[str]) -> PlanVerdict:
    """Judge a plan as a validator does: from the task's initial state, until an action can't be done.

    Parameters
    ----------
    task : Task
    lines : iterable of str
        An action each, ``(name object …)``; empty lines and comments (after ``;``) are skipped.
    """
    state, steps = task.initial, 0
    for line in lines:
        written = line.partition(";")[0].strip()
        if not written:
            continue
        action = read_action(written)
        if action is None:
            return PlanVerdict(UNKNOWN, False, steps, written, (), "it is not of the form (name object …)", state)
        try:
            unmet = task.unmet(state, action)
        except PddlError as error:
            reason = error.message.partition(": ")[2] or error.message
            return PlanVerdict(UNKNOWN, False, steps, written, (), reason, state)
        if unmet:
            return PlanVerdict(INAPPLICABLE, False, steps, written, tuple(unmet), "", state)
        state = task.apply(state, action)
        steps += 1
    solved = task.reached_goal(state)
    return PlanVerdict(EXECUTED, solved, steps, "", () if solved else tuple(task.unmet_goal(state)), "", state)
