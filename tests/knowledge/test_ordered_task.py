"""A task with the order rules in it: its applicable actions are those that the knowledge admits."""

import random

import pytest

from constrained import ActionKnowledge
from constrained.knowledge.ordered_task import OrderedTask
from tests.environments.walk import WALK

DOORS = """%declare _STEP ROOM
//: type room
//: object a, b, c: room
//: fact at(one room), open(room)
//: init at(a)
//: goal at(c)
start: look | wait
look: "look" _STEP (open{ROOM} | wait)
// open: a door.
//: needs not open(r)
//: makes open(r)
open{r}: "open " r _STEP go{ROOM}
//: needs open(r), not at(r)
//: makes at(r), not open(r)
go{r}: "go to " r _STEP [look]
wait: "wait" _STEP start
"""


def at_the_start(lines: str) -> ActionKnowledge:
    knowledge = ActionKnowledge.from_lark(lines)
    return knowledge.for_problem(knowledge.world.problem)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_applicable_is_what_the_knowledge_admits(seed):
    rng, knowledge = random.Random(seed), at_the_start(DOORS)
    ordered = OrderedTask.of(knowledge.facts.task, knowledge)
    task, state = ordered.task, ordered.task.initial
    for _ in range(40):
        admitted = knowledge.next_actions() if knowledge.may_follow else []
        applicable = {knowledge.facts.write(action): action for action in task.applicable(state)}
        assert sorted(applicable) == admitted
        assert ordered.state(knowledge.facts.state, knowledge) == state
        if not admitted:
            return
        action = rng.choice(admitted)
        knowledge, state = knowledge.after(action), task.apply(state, applicable[action])


def test_where_anything_may_follow_the_task_is_the_same():
    knowledge = at_the_start(WALK)
    ordered = OrderedTask.of(knowledge.facts.task, knowledge)
    assert ordered.task is knowledge.facts.task and ordered is OrderedTask.of(knowledge.facts.task, knowledge)
    assert ordered.state(knowledge.facts.state, knowledge) is knowledge.facts.state


def test_rules_about_actions_that_the_world_does_not_know_are_left_out():
    free = DOORS.replace('wait: "wait" _STEP start', 'wait: "wait " /[a-z]+/ _STEP start')
    knowledge = at_the_start(free)
    assert OrderedTask.of(knowledge.facts.task, knowledge).task is knowledge.facts.task


def test_without_knowledge_there_are_no_rules():
    task = at_the_start(DOORS).facts.task
    assert OrderedTask.of(task, None).task is task
