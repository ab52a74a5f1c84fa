"""Plans that the searches find are plans, and shortest plans are as short as brute force finds."""

import random

import pytest

from constrained.planning import Task
from constrained.planning.model import Junction, Literal, Problem
from constrained.planning.plans import judge_plan
from constrained.planning.search import _Serial, find_plan, shortest_plan
from tests.planning_domains import blocks_task


def drawn(blocks: int, seed: int) -> Task:
    """A problem that a random walk solves."""
    given, rng = blocks_task(), random.Random(seed)
    names = [f"b{n}" for n in range(blocks)]
    facts = [("handempty",), *((p, name) for name in names for p in ("ontable", "clear"))]
    problem = Problem(dict.fromkeys(names, "object"), tuple(facts))
    state = start = Task(given.domain, problem).initial
    for step in range(40):
        task = Task(given.domain, problem)
        state = task.apply(state, rng.choice(task.applicable(state)))
        start = state if step == 19 else start
    goal = Junction("and", tuple(Literal(fact[0], fact[1:]) for fact in sorted(state.of("on"))))
    return Task(given.domain, Problem(problem.objects, tuple(sorted(start)), condition=goal))


@pytest.mark.parametrize("seed", range(5))
def test_what_the_search_finds_is_a_plan(seed):
    task = drawn(7, seed)
    plan, found = find_plan(task, task.initial)
    assert found and judge_plan(task, map(str, plan)).solved


@pytest.mark.parametrize("seed", range(5))
def test_reaching_the_goal_part_by_part_is_a_plan_too(seed):
    task = drawn(5, seed)
    plan = _Serial(task, _relaxed(task)).plan(task.initial)
    assert plan is not None and judge_plan(task, map(str, plan)).solved


def test_the_searches_for_parts_share_one_limit():
    task = drawn(5, 0)
    serial = _Serial(task, _relaxed(task))
    serial.left = 3
    assert serial.plan(task.initial) is None and serial.left <= 0


def _relaxed(task: Task):
    from constrained.planning.relaxed import Relaxed

    return Relaxed.of(task)


def test_a_part_of_the_goal_that_blocks_another_is_told():
    """Once a is on b, b can't be put on c without undoing it; with c on the table, the other way round it can."""
    task = blocks_task()
    serial = _Serial(task, _relaxed(task))
    names = [part.terms for part in serial.parts]
    for part, plan, blocks in (
        (("a", "b"), "(unstack c a) (put-down c) (pick-up a) (stack a b)", True),
        (("b", "c"), "(unstack c a) (put-down c) (pick-up b) (stack b c)", False),
        (("b", "c"), "(pick-up b) (stack b c)", True),
    ):
        state = judge_plan(task, plan.replace(") (", ")|(").split("|")).final
        assert serial._blocks(state, frozenset({names.index(part)})) == blocks


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_shorter_than_the_shortest(seed):
    task = drawn(4, seed)
    best = shortest_plan(task)
    assert best is not None and judge_plan(task, map(str, best)).solved
    states = {task.initial}
    for _ in range(len(best) - 1):
        states |= {task.apply(state, action) for state in states for action in task.applicable(state)}
    assert not best or not any(map(task.reached_goal, states))


def test_a_search_that_is_cut_short_returns_a_way_that_can_be_done():
    task = drawn(7, 1)
    plan, _ = find_plan(task, task.initial, limit=3)
    assert judge_plan(task, map(str, plan)).outcome == "executed"
    assert shortest_plan(task, limit=2) is None
