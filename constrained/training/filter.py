"""Filter and merge the trajectories to learn from (KnowAgent, section 3.3 and Algorithm 1).

The filter gives a reason for each trajectory that it drops. It has two rules. "released" follows the authors' program:
it keeps trajectories that are correct and met no error of the environment, and never looks at the action knowledge.
"paper" follows the paper: it also drops trajectories with an action that doesn't exist or is out of order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from constrained.errors import DataError
from constrained.training.trajectory import Trajectory

RULES = ("released", "paper")

NOT_CORRECT = "not correct"

# "refused", because "invalid action" is a verdict of the knowledge and this is one of the environment.
_ENVIRONMENT_ERRORS = {"Invalid Action": "refused action", "Search error": "search error"}


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
    """Return why a trajectory is dropped; None if it is kept.

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
    kept: dict[str, Trajectory] = {}
    for trajectory in chain(earlier, later):
        best = kept.get(trajectory.task)
        if best is None or trajectory.length <= best.length:
            kept[trajectory.task] = trajectory
    return list(kept.values())
