"""The search in turns finds valid plans, proves that there is none, and gives up at named limits."""

import pytest

from benchmarks.planbench.simulator import Simulator
from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.additive import AdditiveHeuristic
from constrained.planning.landmarks import Landmarks
from constrained.planning.lazy import LazySearch
from constrained.planning.packed import PackedTask
from constrained.planning.planner import SearchLimits, search_plan
from constrained.planning.relaxed import Relaxed
from tests.planning.domains import ALL
from tests.planning.test_search import drawn, pushing


def listed(name: str) -> PlanningTask:
    domain = read_domain(ALL[name][0])
    return PlanningTask(domain, read_problem_of(domain, ALL[name][1]))


def is_plan(name: str, plan) -> bool:
    simulator = Simulator(*ALL[name])
    state = simulator.start
    for action in plan:
        state = simulator.after(simulator.applicable(state)[str(action)[1:-1]], state)
    return simulator.holds(simulator.goal, {}, state)


def lazy(task: PlanningTask) -> LazySearch:
    grounding = Relaxed.of(task).grounding
    search = LazySearch(grounding, PackedTask(grounding, task.initial))
    for _ in search.run():
        pass
    return search


@pytest.mark.parametrize("name", ALL)
def test_what_either_search_finds_is_a_plan(name):
    task = listed(name)
    searched = search_plan(task, task.initial)
    alone = lazy(task)
    assert (searched.plan is None) == (alone.plan is None) == searched.proven
    if searched.plan is not None:
        assert is_plan(name, searched.plan) and is_plan(name, alone.plan)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_task_has_the_same_plan(seed):
    first, second = (lazy(drawn(8, seed)).plan for _ in range(2))
    assert first == second
    first, second = (search_plan(task, task.initial).plan for task in (drawn(8, seed), drawn(8, seed)))
    assert first == second


def test_that_there_is_no_plan_is_proven_by_either_search():
    task = pushing("(crate-at c7) (crate-at c3)")
    searched = search_plan(task, task.initial)
    assert (searched.plan, searched.proven, searched.limit) == (None, True, "")
    assert lazy(task).plan is None


@pytest.mark.parametrize(
    "limits, words",
    [
        (SearchLimits(states=3), "among the first 3 states"),
        (SearchLimits(seconds=1e-6), "within 1e-06 s of processor time"),
        (SearchLimits(megabytes=1), "within 1 MB of memory"),
    ],
)
def test_a_search_that_gives_up_names_the_limit(limits, words):
    task = drawn(9, 2)
    searched = search_plan(task, task.initial, limits)
    assert (searched.plan, searched.proven, searched.limit) == (None, False, words)


def without(task: PlanningTask, condition) -> bool:
    """Whether a plan reaches the goal through states in which a condition doesn't hold."""
    seen = {task.initial} if not condition(task.initial) else set()
    work = list(seen)
    for state in work:
        if task.reached_goal(state):
            return True
        for action in task.applicable(state):
            after = task.apply(state, action)
            if after not in seen and not condition(after):
                seen.add(after)
                work.append(after)
    return False


@pytest.mark.parametrize("make", [lambda: drawn(4, 0), lambda: drawn(4, 1), lambda: pushing("(crate-at c6)")])
def test_no_plan_goes_round_a_landmark(make):
    task = make()
    grounding = Relaxed.of(task).grounding
    landmarks = Landmarks(grounding, PackedTask(grounding, task.initial))
    facts = [name for number, name in enumerate(grounding.names) if landmarks.all >> number & 1]
    assert facts and not task.reached_goal(task.initial)
    for name in facts:
        negated = name[0] is False
        fact = name[1] if negated else name
        assert not without(task, lambda state, fact=fact, negated=negated: (fact in state) != negated), name


def test_landmarks_count_what_is_still_to_come_and_what_must_come_again():
    task = drawn(4, 1)
    grounding = Relaxed.of(task).grounding
    packed = PackedTask(grounding, task.initial)
    landmarks = Landmarks(grounding, packed)
    reached, count = landmarks.after(landmarks.held(packed.start), packed.start)
    assert count > 0
    state = task.initial
    for action in search_plan(task, state).plan:
        state = task.apply(state, action)
        reached, count = landmarks.after(reached, PackedTask(grounding, state).start)
    assert count == 0 and reached == landmarks.all


@pytest.mark.parametrize("name", ALL)
def test_an_estimate_is_missing_only_where_the_relaxed_goal_is_out_of_reach(name):
    task = listed(name)
    relaxed = Relaxed.of(task)
    packed = PackedTask(relaxed.grounding, task.initial)
    heuristic = AdditiveHeuristic(relaxed.grounding, packed)
    for state in [task.initial, *(task.apply(task.initial, action) for action in task.applicable(task.initial))]:
        there = PackedTask(relaxed.grounding, state).start
        estimate = heuristic(there)
        assert (estimate is None) == relaxed.dead_end(state)
        if estimate is not None:
            distance, preferred = estimate
            assert (distance == 0) == task.reached_goal(state) and distance >= relaxed.distance(state)
            possible = set(task.applicable(state))
            assert {packed.actions[number] for number in preferred} <= possible
            assert preferred or not distance
