"""A trajectory: the actions done for one task, the verdict on each, and the outcome.

Self-learning filters, merges and trains on trajectories (KnowAgent, section 3.3). They come from our recorded runs, or
from released runs (`constrained.training.released`), which hold the texts; `source` says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrained.environments.data import fields
from constrained.knowledge.report import OK

TROUBLES = ("Invalid Action", "Search error")
"""Replies of question answering, the authors' and ours, to an unknown action and to a search that failed."""


@dataclass(frozen=True)
class Act:
    """One action of a trajectory.

    Attributes
    ----------
    text : str
    verdict : str
        "ok", "invalid" or "misordered", by the action knowledge at that point.
    reason : str
        The knowledge's reason for a verdict other than "ok".
    had_effect : bool or None
        Whether the action changed anything; None if unknown.
    """

    text: str
    verdict: str
    reason: str = ""
    had_effect: bool | None = None


@dataclass(frozen=True)
class Trajectory:
    """The actions of one episode.

    Attributes
    ----------
    task : str
        The task's key: the game's name, or the question.
    success : bool
    acts : tuple of Act
    length : int
        The length that `merge` compares.
    outcome : dict of str to float
        The environment's measures.
    trouble : str
        The first of `TROUBLES` in the environment's replies, if any.
    source : str
        The place of the run, "FILE:LINE".
    """

    task: str
    success: bool
    acts: tuple[Act, ...]
    length: int
    outcome: dict[str, float]
    trouble: str = ""
    source: str = ""

    @property
    def violation(self) -> Act | None:
        """The first action that the knowledge doesn't admit; None if it admits all."""
        return next((act for act in self.acts if act.verdict != OK), None)


def from_record(task: str, steps: Sequence[dict], end: dict, source: str = "") -> Trajectory:
    """Return the trajectory of a task in a recorded run; its length is its number of actions.

    Parameters
    ----------
    steps : sequence of dict
        The "step" of each of the task's lines (see `constrained.agents.run_file`). Only the last phase counts: earlier
        exploration and abandoned attempts are not part of the path.
    end : dict
        The task's "end". A task that failed is never a success: the next run resumes it.

    Raises
    ------
    DataError
        A step or the end lacks a field.
    """
    where = source or task
    success, outcome = fields(where, end, success=bool, outcome=dict)
    last = [step for step in steps if step.get("phase") == steps[-1].get("phase")]
    acts = []
    for step in last:
        action, verdict = fields(where, step, action=str, verdict=str)
        acts.append(Act(action, verdict, step.get("reason", ""), step.get("had_effect")))
    trouble = first_trouble("\n".join(step.get("observation") or "" for step in last))
    return Trajectory(task, success and "failure" not in end, tuple(acts), len(acts), outcome, trouble, source)


def first_trouble(text: str) -> str:
    """Return the first of `TROUBLES` in a text, or an empty string."""
    return next((trouble for trouble in TROUBLES if trouble in text), "")
