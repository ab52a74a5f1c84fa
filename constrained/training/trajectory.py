"""Trajectories (the actions done for one task, the verdict on each, the outcome); their filter, and their merge.

Self-learning filters, merges and trains on trajectories (KnowAgent, section 3.3). They come from our recorded runs, or
from released runs (`constrained.training.released`), which hold the texts; `source` says where.

The filter gives a reason for each trajectory that it drops. It has two rules. "released" follows the authors' program:
it keeps trajectories that are correct and met no error of the environment, and never looks at the action knowledge.
"paper" follows the paper: it also drops trajectories with an action that doesn't exist or is out of order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from constrained.environments.data import fields
from constrained.errors import DataError
from constrained.knowledge.report import OK

TROUBLES = ("Invalid Action", "Search error")
"""Replies of question answering, the authors' and ours, to an unknown action and to a search that failed."""

RULES = ("released", "paper")

NOT_CORRECT = "not correct"

# "refused", because "invalid action" is a verdict of the knowledge and this is one of the environment.
_ENVIRONMENT_ERRORS = {"Invalid Action": "refused action", "Search error": "search error"}


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
    """The trajectory of a task in a recorded run; its length is its number of actions.

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
    # Explorations and failed trials come before the last phase, and are no part of the path to learn.
    last = [step for step in steps if step.get("phase") == steps[-1].get("phase")]
    acts = []
    for step in last:
        action, verdict = fields(where, step, action=str, verdict=str)
        acts.append(Act(action, verdict, step.get("reason", ""), step.get("had_effect")))
    trouble = first_trouble("\n".join(step.get("observation") or "" for step in last))
    return Trajectory(task, success and "failure" not in end, tuple(acts), len(acts), outcome, trouble, source)


def first_trouble(text: str) -> str:
    """The first of `TROUBLES` in a text, or an empty string."""
    return next((trouble for trouble in TROUBLES if trouble in text), "")


@dataclass
class Filtered:
    """Trajectories kept and dropped, each in their original order."""

    kept: list[Trajectory] = field(default_factory=list)
    # each with its reason (see `reason_to_drop`); `Trajectory.violation` is the action
    dropped: list[tuple[Trajectory, str]] = field(default_factory=list)

    @property
    def reasons(self) -> Counter[str]:
        """The number of trajectories dropped for each reason."""
        return Counter(reason for _, reason in self.dropped)


def reason_to_drop(trajectory: Trajectory, rule: str) -> str | None:
    """Why a trajectory is dropped; None if it is kept.

    The reason is the first that applies: "not correct"; "refused action" or "search error", from the environment; and
    by the paper's rule the first violation of the knowledge, "invalid action" or "misordered action".

    Raises DataError: there is no such rule.
    """
    check_rule(rule)
    if not trajectory.success:
        return NOT_CORRECT
    if trajectory.trouble:
        return _ENVIRONMENT_ERRORS.get(trajectory.trouble, trajectory.trouble)
    if rule == "paper" and trajectory.violation:
        return f"{trajectory.violation.verdict} action"
    return None


def filter_trajectories(trajectories: Iterable[Trajectory], rule: str) -> Filtered:
    """Separate the trajectories to learn from, by `rule`, from those to drop.

    Raises
    ------
    DataError
        There is no such rule.
    """
    check_rule(rule)  # even if there are no trajectories
    filtered = Filtered()
    for trajectory in trajectories:
        reason = reason_to_drop(trajectory, rule)
        if reason is None:
            filtered.kept.append(trajectory)
        else:
            filtered.dropped.append((trajectory, reason))
    return filtered


def check_rule(rule: str) -> None:
    """Raise DataError if there is no such rule."""
    if rule not in RULES:
        raise DataError(f"no rule {rule!r} to filter trajectories by", f"the rules are: {', '.join(RULES)}")


def merge(earlier: Iterable[Trajectory], later: Iterable[Trajectory]) -> list[Trajectory]:
    """Keep the shortest trajectory of each task, in the order in which the tasks first appear.

    Of two with equal length the later is kept, as in the authors' program, because it is by the tuned model. This holds
    within a round, too, so merging a second time changes nothing.

    Parameters
    ----------
    earlier, later : iterable of Trajectory
        Filtered trajectories.
    """
    shortest: dict[str, Trajectory] = {}
    for trajectory in chain(earlier, later):
        best = shortest.get(trajectory.task)
        if best is None or trajectory.length <= best.length:
            shortest[trajectory.task] = trajectory
    return list(shortest.values())
