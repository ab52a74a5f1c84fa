"""Plans that the searches find are plans, and shortest plans are as short as brute force finds."""

import random
from functools import reduce

import pytest

from benchmarks.planbench.optimum import shortest_plan
from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.model import Junction, Literal, Problem, conjuncts
from constrained.planning.packed import PackedTask
from constrained.planning.plans import judge_plan, read_action
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import WidthSearch, find_plan, shortened
from tests.planning import domains
from tests.planning_domains import blocks_task


def drawn(blocks: int, seed: int) -> PlanningTask:
    """A problem that a random walk solves."""
    given, rng = blocks_task(), random.Random(seed)
    names = [f"b{n}" for n in range(blocks)]
    facts = [("handempty",), *((p, name) for name in names for p in ("ontable", "clear"))]
    problem = Problem(dict.fromkeys(names, "object"), tuple(facts))
    state = start = PlanningTask(given.domain, problem).initial
    for step in range(40):
        task = PlanningTask(given.domain, problem)
        state = task.apply(state, rng.choice(task.applicable(state)))
        start = state if step == 19 else start
    goal = Junction("and", tuple(Literal(fact[0], fact[1:]) for fact in sorted(state.of("on"))))
    return PlanningTask(given.domain, Problem(problem.objects, tuple(sorted(start)), condition=goal))


@pytest.mark.parametrize("seed", range(5))
def test_what_the_search_finds_is_a_plan(seed):
    task = drawn(7, seed)
    plan, found = find_plan(task, task.initial)
    assert found and judge_plan(task, map(str, plan)).solved


CORRIDOR = """(define (problem corridor) (:domain pushing) (:objects c1 c2 c3 c4 c5 c6 c7 - cell)
  (:init (me-at c1) (crate-at c2) (crate-at c4) (clear c3) (clear c5) (clear c6) (clear c7)
    (next c1 c2) (next c2 c3) (next c3 c4) (next c4 c5) (next c5 c6) (next c6 c7)
    (next c2 c1) (next c3 c2) (next c4 c3) (next c5 c4) (next c6 c5) (next c7 c6))
  (:goal (and GOAL)))
"""


def pushing(goal: str) -> PlanningTask:
    domain = read_domain(domains.PUSHING)
    return PlanningTask(domain, read_problem_of(domain, CORRIDOR.replace("GOAL", goal)))


def test_what_must_be_undone_to_reach_the_rest_does_not_count():
    task = blocks_task()
    search = WidthSearch(task.initial, Relaxed.of(task))
    names = [part.terms for part in conjuncts(task.goal)]
    for part, plan, void in (
        (("a", "b"), "(unstack c a) (put-down c) (pick-up a) (stack a b)", True),
        (("b", "c"), "(unstack c a) (put-down c) (pick-up b) (stack b c)", False),
    ):
        state = reduce(task.apply, map(read_action, plan.replace(") (", ")|(").split("|")), task.initial)
        kept = 1 << names.index(part)
        packed = PackedTask(Relaxed.of(task).grounding, state).start
        assert (search._planned_facts(packed, kept) is None) == void and search._planned_facts(packed, 0) is not None


def test_a_search_tells_whether_the_goal_cannot_be_reached_or_the_limit_came_first():
    task = pushing("(crate-at c7) (crate-at c3)")  # the crate behind can't be passed, nor pulled
    assert find_plan(task, task.initial)[1] is False
    task = drawn(7, 1)
    plan, found = find_plan(task, task.initial, limit=3)
    assert found is None and judge_plan(task, map(str, plan)).outcome == "executed"


def test_a_plan_has_no_action_that_it_can_do_without():
    task = drawn(4, 1)
    plan, _ = find_plan(task, task.initial)
    there = task.applicable(task.initial)[0]
    state = task.apply(task.initial, there)
    back = next(action for action in task.applicable(state) if task.apply(state, action) == task.initial)
    assert plan and shortened(task, task.initial, [there, back, *plan]) == plan


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_shorter_than_the_shortest(seed):
    task = drawn(4, seed)
    best = shortest_plan(task)
    assert best is not None and judge_plan(task, map(str, best)).solved
    states = {task.initial}
    for _ in range(len(best) - 1):
        states |= {task.apply(state, action) for state in states for action in task.applicable(state)}
    assert not best or not any(map(task.reached_goal, states))
