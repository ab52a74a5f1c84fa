"""Of helpful actions, those that the plan itself would undo before they are of use are left out."""

from itertools import pairwise

from constrained.knowledge.world import read_world
from constrained.planning import PlanningTask
from constrained.planning.relaxed import Relaxed
from tests.planning.small import task_of

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
    task = PlanningTask(world.domain, world.problem)
    state, done = task.initial, []
    while not task.reached_goal(state):
        (action,) = Relaxed.of(task).helpful(state)
        state = task.apply(state, action)
        done.append(str(action))
    assert done == [
        "(go shelf)", "(take cup shelf)", "(go basin)", "(wash cup basin)", "(go table)", "(put cup table)",
    ]  # fmt: skip


LAMP = """(define (domain lamp) (:predicates (home) (lit) (at ?x) (way ?x ?y) (first ?x) (done))
(:action light :parameters () :effect (lit))
(:action leave :parameters (?y) :precondition (and (home) (first ?y)) :effect (and (at ?y) (not (home)) (not (lit))))
(:action go :parameters (?x ?y) :precondition (and (at ?x) (way ?x ?y)) :effect (and (at ?y) (not (at ?x))))
(:action enter :parameters () :precondition (and (at end) (lit)) :effect (done)))"""


def test_many_ways_of_the_same_length_are_not_tried_one_by_one():
    """Every way from home puts out the lamp, so it isn't lit first; there are 5 ** 12 ways."""
    layers = [[f"x{depth}y{side}" for side in range(5)] for depth in range(12)] + [["end"]]
    ways = [f"(way {one} {other})" for here, there in pairwise(layers) for one in here for other in there]
    first = [f"(first {name})" for name in layers[0]]
    names = " ".join(name for layer in layers for name in layer)
    facts = " ".join(["(home)", *first, *ways])
    task = task_of(LAMP, f"(define (problem p) (:domain lamp) (:objects {names}) (:init {facts}) (:goal (done)))")
    assert {action.action for action in Relaxed.of(task).helpful(task.initial)} == {"leave"}
