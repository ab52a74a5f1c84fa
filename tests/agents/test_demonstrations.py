"""Worked examples: a user's, those of a `.lark` file, and those that a search makes of renamed twins of a problem."""

import pytest

from constrained import ActionKnowledge, ConstrainedError, generate_plan
from constrained.agents.demonstrations import examples_for, of_plan, read_examples
from constrained.agents.settings import Settings
from constrained.environments.pddl import PddlEnvironment
from constrained.environments.twin import twin_demonstrations
from constrained.environments.world import WorldEnvironment
from constrained.errors import KnowledgeError
from constrained.knowledge.demonstration import Demonstrated, Demonstration, read_demonstrations
from constrained.knowledge.world import read_world
from tests.agents.random_model import RANDOM

HOTEL = """
%declare _STEP GUEST ROOM
//: type guest, room
//: object alice, bob: guest; r101, r202: room
//: fact found(guest), booked(guest, room)
//: goal "book {R} for {G}": booked(G, R)

// Example: book r1 for x
// A hall.
// ? First the register.
// > look up x
// x is there.
// > book r1 for x

// Run a hotel.
start: | find{GUEST} | book{ROOM, GUEST}
// find: find a guest.
//: makes found(g)
//: tells found(g) by "{g} is in the register."
find{g}: "look up " g _STEP start
// book: book a room.
//: needs found(g)
//: makes booked(g, r)
book{r, g}: "book " r " for " g _STEP start
"""
WITHOUT = HOTEL.replace("// Example", "// Nothing")
BLOCKS = """(define (domain blocks) (:predicates (on ?a ?b) (clear ?a) (table ?a))
 (:action move :parameters (?a ?b) :precondition (and (clear ?a) (clear ?b) (table ?a) (not (= ?a ?b)))
  :effect (and (on ?a ?b) (not (clear ?b)) (not (table ?a)))))"""
PROBLEM = """(define (problem p) (:domain blocks) (:objects a b c)
 (:init (clear a) (clear b) (clear c) (table a) (table b)
 (table c)) (:goal (and (on a b) (on b c))))"""


def test_a_file_holds_its_own():
    shown = Demonstration("book r1 for x", (Demonstrated("look up x", "x is there.", "First the register."),
                                            Demonstrated("book r1 for x")), "A hall.")  # fmt: skip
    assert list(read_demonstrations(HOTEL)) == [shown]
    knowledge = ActionKnowledge.from_lark(HOTEL)
    assert examples_for(knowledge, None, Settings("act", "act")) == (shown,)
    assert examples_for(knowledge, None, Settings("act", "act", demonstrations=0)) == ()
    assert knowledge.comments["start"] == "Run a hotel."


def test_a_step_that_the_rules_don_t_admit_is_named():
    knowledge = ActionKnowledge.from_lark(HOTEL.replace("// > book r1 for x", "// > reserve r1 for x"))
    with pytest.raises(KnowledgeError, match="step 2 of an example in knowledge, 'reserve r1 for x', is invalid"):
        examples_for(knowledge, None, Settings("act", "act"))
    wrong = Demonstration("x", (Demonstrated("fly"),))
    with pytest.raises(KnowledgeError, match="step 1 of demonstration 1, 'fly', is invalid"):
        generate_plan("book r101 for bob", HOTEL, model=RANDOM, strategy="act", demonstrations=[wrong])
    with pytest.raises(KnowledgeError, match="demonstration 1 has no actions"):
        read_examples([Demonstration("x", ())], knowledge)


def test_plans_and_conversations_are_examples_too():
    plan = generate_plan("book r101 for bob", HOTEL)
    assert of_plan(plan).steps == (
        Demonstrated("look up bob", "bob is in the register."), Demonstrated("book r101 for bob", "Done."),
    )  # fmt: skip
    turns = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "look up bob"}]
    assert read_examples([plan, turns], ActionKnowledge.from_lark(HOTEL)) == [of_plan(plan), turns]
    with pytest.raises(ConstrainedError, match="demonstration 1 is 5"):
        read_examples([5], ActionKnowledge.from_lark(HOTEL))
    shown = generate_plan(
        "book r202 for alice", HOTEL, model=RANDOM, strategy="act", max_steps=1, demonstrations=[turns]
    )
    assert "hello\nlook up bob\n" in shown.steps[0].prompt


def test_a_twin_has_other_names_and_is_solved_as_its_world_answers():
    demonstrations = twin_demonstrations(WorldEnvironment(read_world(WITHOUT), "book r101 for bob"), 3)
    assert len(demonstrations) == 3
    for one in demonstrations:
        book, room, _, guest = one.task.split()
        assert book == "book" and room[0] == "r" and room not in ("r101", "r202") and guest not in ("alice", "bob")
        assert [step.action for step in one.steps] == [f"look up {guest}", one.task]
        assert one.steps[0].observation == f"{guest} is in the register."
        assert one.steps[0].thought == f"found {guest} is needed to {one.task}."


def test_a_twin_shows_nothing_of_the_problem_itself():
    world = read_world(WITHOUT)
    for one in twin_demonstrations(WorldEnvironment(world, "book r101 for bob"), 5):
        assert not {"alice", "bob", "r101", "r202"} & set(f"{one} ".replace("'", " ").replace(".", " ").split())


def test_pddl_problems_have_twins_too():
    first, second = twin_demonstrations(PddlEnvironment(BLOCKS, PROBLEM), 2)
    assert len(first.steps) == 2 and first.steps[0].action.startswith("move ")
    assert first.task != second.task and " and " in first.task


def test_objects_that_actions_name_keep_their_names_in_a_twin():
    vault = """
%declare _STEP DOOR
//: type door, tool
//: object d1, d2: door; key: tool
//: fact held(tool), open(door)
//: goal "open {D}": open(D)
// Open doors.
start: | take | unlock{DOOR}
//: makes held(key)
take: "take the key" _STEP start
//: needs held(key)
//: makes open(d)
unlock{d}: "unlock " d _STEP start
"""
    (one,) = twin_demonstrations(WorldEnvironment(read_world(vault), "open d1"), 1)
    door = one.task.removeprefix("open ")
    assert [step.action for step in one.steps] == ["take the key", f"unlock {door}"] and door not in ("d1", "d2")


def test_without_a_goal_or_a_plan_there_are_none():
    assert twin_demonstrations(WorldEnvironment(read_world(WITHOUT), "sing"), 2) == []
    done = PROBLEM.replace("(:goal (and (on a b) (on b c)))", "(:goal (clear a))")
    assert twin_demonstrations(PddlEnvironment(BLOCKS, done), 2) == []
