"""Planners that people have, through the package unified-planning: Fast Downward, LPG, pyperplan, Tamer and others.

The task is written as PDDL (`writer`), so any of the engines that are installed beside unified-planning can be named.
A plan is simulated here before it is taken.
"""

from __future__ import annotations

from dataclasses import replace

from constrained.errors import ModelError, needs_extra
from constrained.planning.facts import FactSet
from constrained.planning.planner import DEFAULT, Searched, SearchLimits
from constrained.planning.task import GroundAction, PlanningTask
from constrained.planning.writer import PddlText

EXTRA = "planners"


def plan_with(name: str, task: PlanningTask, state: FactSet, limits: SearchLimits = DEFAULT) -> Searched:
    """Have a planner search for a plan.

    Parameters
    ----------
    name : str
        A planner that unified-planning knows, such as "pyperplan" or "fast-downward".
    task : PlanningTask
    state : FactSet
        Where the plan begins.
    limits : SearchLimits
        The seconds are passed on, if the planner takes them.

    Raises
    ------
    ConstrainedError
        The package isn't installed.
    ModelError
        It knows no such planner, the planner doesn't support the task, fails, or gives a plan that isn't one.
    """
    with needs_extra(EXTRA, "--planner", "unified_planning"):
        from unified_planning.exceptions import UPException
        from unified_planning.io import PDDLReader
        from unified_planning.shortcuts import OneshotPlanner, get_environment
    environment = get_environment()
    environment.credits_stream = None
    written = PddlText(PlanningTask(task.domain, replace(task.problem, init=tuple(sorted(state)))))
    names = {new.lower(): old for old, new in written.names.items()}
    factory = environment.factory
    planners = sorted(one for one in factory.engines if factory.engine(one).is_oneshot_planner())
    if name not in planners:
        hint = f"installed are: {', '.join(planners)}" if planners else "install one, such as up-pyperplan"
        raise ModelError(f"unified-planning finds no planner {name!r}", hint)
    try:
        problem = PDDLReader().parse_problem_string(written.domain, written.problem)
        with OneshotPlanner(name=name) as planner:
            if not planner.supports(problem.kind):
                lacking = ", ".join(sorted(problem.kind.features - planner.supported_kind().features))
                raise ModelError(f"{name} doesn't support this problem: {lacking.lower()}", "name another planner")
            result = planner.solve(problem, timeout=limits.seconds)
    except ModelError:
        raise
    except (UPException, AssertionError, OSError, ValueError, RuntimeError, KeyError, TypeError) as error:  # its own
        raise ModelError(
            f"{name} failed: {type(error).__name__}: {str(error)[:300]}", "name another planner"
        ) from error
    if result.plan is None:
        proven = result.status.name == "UNSOLVABLE_PROVEN"
        return Searched(None, proven=proven, limit=f"by {name} ({result.status.name.lower().replace('_', ' ')})")
    plan = [
        GroundAction(names[one.action.name.lower()], tuple(names[str(term).lower()] for term in one.actual_parameters))
        for one in result.plan.actions
    ]
    check_plan(name, task, state, plan)
    return Searched(plan)


def check_plan(name: str, task: PlanningTask, state: FactSet, plan: list[GroundAction]) -> None:
    """Simulate a plan that a planner of this name gave. Raises ModelError: it isn't a plan."""
    for number, action in enumerate(plan, 1):
        if not task.is_applicable(state, action):
            raise ModelError(f"{name}'s plan is wrong: action {number}, {action}, is not possible there")
        state = task.apply(state, action)
    if not task.reached_goal(state):
        raise ModelError(f"{name}'s plan is wrong: the goal doesn't hold at its end")
