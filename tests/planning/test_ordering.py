"""Of helpful actions, those that the plan itself would undo before they are of use are left out."""

from constrained.knowledge.world import read_world
from constrained.planning import Task
from constrained.planning.relaxed import Relaxed
from tests.planning.small import SOKOBAN, room, task_of

ERRAND = """%declare _STEP PLACE THING
//: type place, thing
//: fact at(one place), in(thing, place), held(at-most-one thing), sink(place), clean(thing)
//: object shelf, basin, table, door: place; cup: thing
//: init at(door), in(cup, shelf), sink(basin)
//: goal clean(cup), in(cup, table)
start: | go{PLACE} | take{THING, PLACE} | put{THING, PLACE} | wash{THING, PLACE}
//: needs not at(p)
//: makes at(p)
go{p}: "go to " p _STEP start
//: needs at(p), in(t, p), not held(*)
//: makes held(t), not in(t, p)
take{t, p}: "take " t _STEP start
//: needs held(t), at(p)
//: makes in(t, p), not held(t)
put{t, p}: "put " t _STEP start
//: needs held(t), at(p), sink(p)
//: makes clean(t)
wash{t, p}: "wash " t _STEP start
"""


def test_one_goes_first_where_something_is_to_be_done_first():
    world = read_world(ERRAND)
    task = Task(world.domain, world.problem)
    state, done = task.initial, []
    while not task.reached_goal(state):
        (action,) = Relaxed.of(task).helpful(state)
        state = task.apply(state, action)
        done.append(str(action))
    assert done == [
        "(go shelf)", "(take cup shelf)", "(go basin)", "(wash cup basin)", "(go table)", "(put cup table)",
    ]  # fmt: skip


def test_many_ways_of_the_same_length_are_not_tried_one_by_one():
    """In an empty room there are more ways than could be counted."""
    task = task_of(SOKOBAN, room("@       ", "        ", "   $    ", "        ", "     $  ", "        ", ".      ."))
    helpful = Relaxed.of(task).helpful(task.initial)
    assert {action.action for action in helpful} == {"walk"}
