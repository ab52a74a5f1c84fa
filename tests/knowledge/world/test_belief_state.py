"""What answers tell: lists that are whole rule out the rest, under a condition too."""

from constrained.knowledge.world import read_world
from constrained.knowledge.world.belief_state import BeliefState

WORLD = r"""%declare _STEP
//: type place, thing
//: fact at(one place), in(thing, thing, place)
//: tells at(p) by "You are in the {p}."
//: tells all in(t, c, p) if at(p) by "{c} \(with {t, ...}\)"
start: "look" _STEP start |
"""


def test_what_a_list_leaves_out_is_ruled_out_where_the_condition_holds():
    known = BeliefState(read_world(WORLD))
    known.read("You are in the hall. A box (with a cup, a pen).")
    known.read("You are in the yard. A box (with a pen).")
    assert known.of("in") == [("in", "cup", "box", "hall"), ("in", "pen", "box", "hall"), ("in", "pen", "box", "yard")]
    known.read("A box (with nothing).")
    assert known.of("in", None, None, "yard") == [] and len(known.of("in", None, "box", "hall")) == 2
    assert known.ruled_out(("in", "cup", "box", "yard")) and not known.ruled_out(("in", "cup", "bag", "yard"))


def test_lists_of_one_name_in_one_answer_belong_together():
    known = BeliefState(read_world(WORLD))
    known.read("You are in the hall. A cup (with tea). A cup (with milk).")
    assert known.of("in") == [("in", "tea", "cup", "hall"), ("in", "milk", "cup", "hall")]
