"""What is known is told to a model by the `shows` lines of the world's file."""

import pytest

from constrained.errors import GrammarError
from constrained.knowledge.world import read_world
from constrained.knowledge.world.belief_state import BeliefState
from constrained.knowledge.world.shown import Shown
from tests.knowledge.world.kitchen import KITCHEN

LINES = """//: means one target(p) if P(p), at(p) else P(p)
//: means ready(t) if K(t), hot(t) or not asks hot(t)
//: means seen(p) if in(t, p)
//: shows "Here: " for at(p): "{p}", " shut" if shut(p), ": {t, ...}" if not shut(p) and in(t, p) else "nowhere"
//: shows "Hold: " for held(t): "{t}", ", ready" if ready(t), ", not hot" if asks hot(t) and not hot(t) else "none"
//: shows "To: " for target(p): "{p}"
//: shows "Seen: " for 2 of in(t, p): "{t} in {p}"
//: shows "Not seen: ": "{p...}" if place(p) and not seen(p)
//: again in(t, p)
//: explores "open {p}" if at(p) and shut(p) else "go to {p}" if place(p) and not at(p) and not seen(p)
"""


def known(task="put a hot cup in shelf", *answers, lines=LINES):
    kitchen = [
        line for line in KITCHEN.splitlines() if not line.startswith(("//: object", "//: init", "//: goal some"))
    ]
    found = BeliefState(read_world("\n".join([*kitchen, lines])), task)
    for answer in answers:
        found.read(answer)
    return found


def shown(*answers, task="put a hot cup in shelf"):
    return Shown(known(task, *answers))


def test_each_line_is_written_from_the_facts_known_now():
    assert list(shown().lines()) == ["Here: nowhere", "Hold: none", "Not seen: none"]
    now = shown("The shelf 2 is closed.", "On the shelf 10, you see an egg 1, a cup 2, and a cup 1.")
    assert list(now.lines()) == [
        "Here: shelf 10: cup 2, cup 1 +1",  # the egg isn't what the task is about
        "Hold: none",
        "To: shelf 10",  # of the places that it may be, the one at hand
        "Seen: egg 1 in shelf 10, cup 2 in shelf 10 +1",
        "Not seen: shelf 2",
    ]
    assert next(iter(shown("The shelf 2 is closed.").lines())) == "Here: shelf 2 shut"


def test_pieces_say_what_the_goal_asks_for():
    found = known("put a hot cup in shelf", "On the shelf 1, you see a cup 1, and an egg 1.")
    found.update("take cup 1 from shelf 1", "Taken.")
    assert list(Shown(found).lines())[1] == "Hold: cup 1, not hot"
    found.hold("hot", "cup 1")
    assert list(Shown(found).lines())[1] == "Hold: cup 1, ready"


def test_what_names_a_hole_that_the_sentence_lacks_is_not_written():
    lines = list(shown("On the shelf 1, you see a cup 1.", task="sing").lines())
    assert lines == ["Here: shelf 1: cup 1", "Hold: none", "Seen: cup 1 in shelf 1", "Not seen: none"]


def test_numbers_of_one_kind_are_written_behind_it_and_the_rest_is_counted():
    now = shown(*(f"The shelf {n} is closed." for n in range(12, 0, -1)), "The fridge 1 is closed.")
    assert list(now.lines())[-1] == "Not seen: fridge 1, shelf 1 2 3 +9"
    assert now.explores() == ["open fridge 1"]


def test_what_still_holds_and_what_shows_something_new():
    now = shown("On the shelf 1, you see a cup 1.", "The shelf 2 is closed.")
    assert list(now.again()) == [("in", "cup 1", "shelf 1")] and now.explores() == ["open shelf 2"]
    assert now.slots()["SEEN"] == ["shelf 1"] and now.slots()["READY"] == {}


@pytest.mark.parametrize("shut", [(), ("shelf 1",), ("shelf 1", "shelf 2")])
@pytest.mark.parametrize(
    "condition, held",
    [
        ("every x: place (shut(x))", [False, False, True]),
        ("some x: place (not shut(x))", [True, True, False]),
        ("not shut(p), place(p)", [True, True, False]),
        ("some x: place (shut(x) and not at(x))", [False, False, True]),
        ("not shut(*)", [True, False, False]),
    ],
)
def test_a_condition_means_what_it_means_to_the_planner(condition, held, shut):
    found = known(lines=f'{LINES}//: shows "Held: " for {condition}: "yes" else "no"\n')
    for place in ("shelf 1", "shelf 2"):
        found.add_object(place, "place")
    found.hold("at", "shelf 1")
    for place in shut:
        found.hold("shut", place)
    assert (list(Shown(found).lines())[-1] != "Held: no") is held[len(shut)]


@pytest.mark.parametrize(
    "line, message",
    [
        ('//: shows "A: " for helt(t): "{t}"', "no fact `helt`"),
        ('//: shows "A: " for held(t)', "in a `//:` line"),
        ("//: means near(p) if at(p), in(p)", "`in` has 2 arguments, not 1"),
        ("//: means hot(t) if held(t)", "hot is declared already"),
        ("//: means a(t) if held(t)\n//: means a(t, p) if in(t, p)", "`a` has 1 arguments elsewhere"),
        ('//: shows "A: " for 1.5 of held(t): "{t}"', "1.5 is not a number of entries"),
        ("//: means a(t) if held(t)\n//: again a(t)", "a is not a declared fact"),
        ("//: maybe hot(t) if asks hot(t)", "may have `asks`"),
        ('//: shows "A: " for held(t): "{x}"', "nothing says which `x` is meant"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_place(line, message):
    with pytest.raises(GrammarError, match=message) as raised:
        read_world(f"{KITCHEN}{line}\n")
    assert raised.value.line == KITCHEN.count("\n") + 1 + line.count("\n")
