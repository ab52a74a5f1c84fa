"""Over integers the same actions are applicable as over facts, and the same facts are true after them."""

import random

import pytest

from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.packed import PackedTask
from constrained.planning.relaxed import Relaxed
from tests.planning import domains


@pytest.mark.parametrize("name", domains.ALL)
def test_successors_are_those_of_the_task(name):
    domain = read_domain(domains.ALL[name][0])
    task = PlanningTask(domain, read_problem_of(domain, domains.ALL[name][1]))
    grounding, rng = Relaxed.of(task).grounding, random.Random(name)
    asked = {fact[0] for fact in grounding.numbers if isinstance(fact, tuple) and fact[0] is not False}
    packed, state = PackedTask(grounding, task.initial), task.initial
    here, ready = packed.start, packed.ready(packed.start)
    for _ in range(40):
        after = {packed.actions[number]: there for number, there in packed.successors(here, ready)}
        for action in task.applicable(state):
            facts = {fact for fact in task.apply(state, action) if fact[0] in asked}
            there = after.pop(action, here)  # an action that changes nothing may be missing
            assert {fact for fact in packed.unpacked(there) if fact[0] in asked} == facts
        assert not after
        assert packed.reached(here) == task.reached_goal(state)
        number, there = rng.choice(list(packed.successors(here, ready)))
        ready = packed.ready(there, here, ready)
        assert set(ready) == set(packed.ready(there))
        state, here = task.apply(state, packed.actions[number]), there
