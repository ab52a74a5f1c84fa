"""Validate a written plan: which action fails and why, or which parts of the goal don't hold at its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained.errors import PddlError
from constrained.planning.model import Condition
from constrained.planning.task import GroundAction, PlanningTask

EXECUTED, UNKNOWN, INAPPLICABLE = "executed", "unknown", "inapplicable"
"""The outcomes of a plan: all actions were done; one doesn't exist in the task; one's precondition didn't hold."""


@dataclass(frozen=True)
class PlanVerdict:
    """The verdict on a plan.

    Attributes
    ----------
    outcome : {"executed", "unknown", "inapplicable"}
    solved : bool
        Whether all actions were done and the goal holds at the end.
    steps : int
        How many actions were done.
    action : str
        The action that failed, as written; "" if none did.
    missing : tuple of Condition
        The parts of its precondition that didn't hold; if all actions were done, the parts of the goal that don't.
    reason : str
        Why the action doesn't exist, if it doesn't.
    """

    outcome: str
    solved: bool
    steps: int
    action: str = ""
    missing: tuple[Condition, ...] = ()
    reason: str = ""


def read_action(line: str) -> GroundAction | None:
    """Read an action such as ``(stack a b)``, in lower case; None if the line isn't one.

    Parentheses may be missing, as in the plans of some programs.
    """
    words = line.strip().lower()
    if words.startswith("(") and words.endswith(")"):
        words = words[1:-1]
    name, *arguments = words.split() or [""]
    return GroundAction(name, tuple(arguments)) if name and not set(words) & set("()") else None


def judge_plan(task: PlanningTask, lines: Iterable[str]) -> PlanVerdict:
    """Execute a plan from the task's initial state until an action can't be done.

    Parameters
    ----------
    task : PlanningTask
    lines : iterable of str
        One action each, ``(name object …)``; empty lines and comments (after ``;``) are skipped.
    """
    state, steps = task.initial, 0
    for line in lines:
        written = line.partition(";")[0].strip()
        if not written:
            continue
        action = read_action(written)
        if action is None:
            return PlanVerdict(UNKNOWN, False, steps, written, reason="it is not of the form (name object …)")
        # An action may not exist at all, or exist and not be applicable: two different outcomes.
        try:
            unmet = task.unmet(state, action)
        except PddlError as error:
            reason = error.message.partition(": ")[2] or error.message
            return PlanVerdict(UNKNOWN, False, steps, written, reason=reason)
        if unmet:
            return PlanVerdict(INAPPLICABLE, False, steps, written, tuple(unmet))
        state = task.apply(state, action)
        steps += 1
    solved = task.reached_goal(state)
    return PlanVerdict(EXECUTED, solved, steps, missing=() if solved else tuple(task.unmet_goal(state)))
