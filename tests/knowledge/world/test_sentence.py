"""A sentence becomes the goal of a file's own problem, about the objects that it names."""

import pytest

from constrained.errors import KnowledgeError
from constrained.knowledge.world import read_world
from constrained.knowledge.world.sentence import asked_problem, goal_sentences
from constrained.planning import PlanningTask
from constrained.planning.wording import condition_words

HOTEL = """%declare _STEP GUEST ROOM
//: type guest, room; suite: room
//: object "Alice Smith", bob: guest; r101, r202: room; s1: suite
//: fact booked(guest, room), paid(guest), asleep(guest, suite)
//: goal "book {R} for {G}": booked(G, R)
//: goal "sell {R} to {G}", "let {G} have {R}": some r: R (booked(G, r)), paid(G)
//: goal "put {G} to bed in {S}": asleep(G, S)
//: goal "put {R} aside": not booked(*, R)
start: | book{ROOM, GUEST}
//: makes booked(g, r)
book{r, g}: "book " r " for " g _STEP start
"""


@pytest.fixture(scope="module")
def world():
    return read_world(HOTEL)


def goal(world, task: str) -> str:
    problem = asked_problem(world, task).problem
    return condition_words(problem.condition, PlanningTask(world.domain, problem))


@pytest.mark.parametrize(
    "task, words",
    [
        ("book r101 for bob", "booked bob r101"),
        ("  Book the room R101 for guest Bob. ", "booked bob r101"),
        ("book r101 for alice smith", "booked Alice Smith r101"),
        ("sell r202 to bob", "booked bob r202 and paid bob"),
        ("let bob have s1", "booked bob s1 and paid bob"),
        ("put bob to bed in suite s1", "asleep bob s1"),
    ],
)
def test_a_hole_is_the_object_that_the_sentence_names(world, task, words):
    assert goal(world, task) == words


def test_a_type_stands_for_any_of_its_objects(world):
    problem = asked_problem(world, "book a suite for bob").problem
    start = PlanningTask(world.domain, problem)
    assert [start.reached_goal(start.initial.changed(added=[("booked", "bob", room)])) for room in ("r101", "s1")] == [
        False, True
    ]  # fmt: skip
    assert asked_problem(world, "book a suite for bob").words == {"r": "suite", "g": "bob"}


def test_a_sentence_of_no_goal_line_asks_for_nothing(world):
    assert asked_problem(world, "sing a song") is None


@pytest.mark.parametrize(
    "task, message, listed",
    [
        ("book r303 for bob", "names 'r303', which is no room", "r101, r202, s1"),
        ("book r101 for karl", "names 'karl', which is no guest", "Alice Smith, bob"),
        ("put bob to bed in r101", "names 'r101', which is no suite", "s1"),
        ("book bob for r101", "names 'bob', which is no room", "r101, r202, s1"),
    ],
)
def test_an_object_that_is_not_there_is_said_with_those_that_are(world, task, message, listed):
    with pytest.raises(KnowledgeError) as caught:
        asked_problem(world, task)
    assert message in caught.value.message and caught.value.hint == f"there are: {listed}"


def test_of_two_lines_that_match_the_one_whose_words_name_something_is_meant():
    world = read_world(
        "//: type guest, room\n//: object bob: guest; r1: room\n//: fact in(guest, room), out(guest)\n"
        '//: goal "put {G} out": out(G)\n//: goal "put {G} {R}": in(G, R)\n'
        'start: go\ngo: "go" _STEP start\n%declare _STEP\n'
    )
    assert goal(world, "put bob out") == "out bob" and goal(world, "put bob r1") == "in bob r1"


def test_the_sentences_are_told_with_their_holes(world):
    assert goal_sentences(world)[:2] == ['"book {R} for {G}"', '"sell {R} to {G}"']
