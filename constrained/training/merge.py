"""Merge a round's trajectories with those of earlier rounds: for each task the shortest is kept.

KnowAgent, Algorithm 1. Of two of equal length the later is kept, as in the authors' program: it is the tuned model's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from constrained.training.trajectory import Trajectory


def merge(earlier: Iterable[Trajectory], later: Iterable[Trajectory]) -> list[Trajectory]:
    """Keep one trajectory per task, in the order in which the tasks first appear.

    A trajectory replaces an earlier one of its task unless it is longer; this holds within a round, too, so merging
    what was merged changes nothing.

    Parameters
    ----------
    earlier, later : iterable of Trajectory
        Already filtered; see `constrained.training.filter`.
    """
    kept: dict[str, Trajectory] = {}
    for trajectory in chain(earlier, later):
        best = kept.get(trajectory.task)
        if best is None or trajectory.length <= best.length:
            kept[trajectory.task] = trajectory
    return list(kept.values())
