"""A plan with the fewest actions, by breadth-first search."""

from __future__ import annotations

from constrained.planning import FactSet, GroundAction, PlanningTask

MAX_STATES = 3_000
"""States that are searched for the fewest steps; blocksworld's basic instances have 866 at most."""


def shortest_plan(task: PlanningTask, limit: int = MAX_STATES) -> list[GroundAction] | None:
    """A plan with the fewest actions; None if there is none within so many states."""
    came: dict[FactSet, tuple[FactSet, GroundAction] | None] = {task.initial: None}
    for state in (states := [task.initial]):  # while more are appended
        if task.reached_goal(state):
            plan, way = [], came[state]
            while way is not None:
                plan.append(way[1])
                way = came[way[0]]
            return plan[::-1]
        for action in task.applicable(state):
            after = task.apply(state, action)
            if after not in came and len(came) < limit:
                came[after] = state, action
                states.append(after)
    return None
