"""A household's observations as triples, and where the explorer goes."""

import pytest

from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.household.observations import triples
from tests.environments.small_house import small_house


@pytest.mark.parametrize(
    "observation, expected",
    [
        (
            "On the desk 10, you see a mug 1, and a pen 2.",
            [("mug 1", "in/on", "desk 10"), ("pen 2", "in/on", "desk 10")],
        ),
        ("The drawer 1 is open. In it, you see a key 1.", [("key 1", "in/on", "drawer 1")]),
        ("On the desk 1, you see nothing.", [("nothing", "in/on", "desk 1")]),
        ("The safe 1 is closed.", [("safe 1", "can be", "opened")]),
        ("You arrive at loc 3. The safe 1 is closed.", [("safe 1", "can be", "opened")]),
        ("Nothing happens.", []),
        ("", []),
        ("Ünïcode " * 20_000, []),
        ("On the \ud800, you see a mug 1.", []),
    ],
)
def test_what_is_seen_becomes_triples(observation, expected):
    assert triples(observation) == expected


@pytest.mark.parametrize("seed", range(4))
def test_who_looks_everywhere_knows_the_whole_room(seed):
    env = HouseholdEnv(make_game(seed))
    env.reset()
    known = set()
    for name in env.world.house.receptacles:
        known.update(triples(env.step(f"go to {name}")[0]))
        known.update(triples(env.step(f"open {name}")[0]))
        known.update(triples(env.step(f"examine {name}")[0]))
    env.reset()
    there = {(thing, "in/on", name) for name, inside in env.world.contents.items() for thing in inside}
    assert {t for t in known if t[1] == "in/on" and t[0] != "nothing"} == there


def entities(task, names):
    env = HouseholdEnv(small_house())
    env.task = task
    return env.entities(names)


def test_entities_are_of_the_kinds_that_the_task_names_what_is_wanted_first():
    names = ["desk 1", "mug 10", "desklamp 1", "mug 1", "nothing", "desktop 1", "opened"]
    assert entities("put a clean mug in desk.", names) == ["mug 10", "mug 1", "desk 1"]
    assert entities("look at mug under the desklamp", names) == ["mug 10", "mug 1", "desklamp 1"]
    assert entities("Bring me some mug near the desk, please!", names) == ["mug 10", "mug 1", "desk 1"]
    assert entities("", names) == entities("clean mug", []) == []


KITCHEN = HouseholdEnv(small_house()).reset()
GO = [f"go to {name}" for name in ("cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1", "table 1")]


def memory():
    return HouseholdEnv(small_house()).memory(KITCHEN)


def test_the_explorer_opens_what_is_closed_here_and_goes_nowhere_twice():
    found = memory()
    assert found.filter_exploration([*GO, "look"]) == GO
    found.update("go to cabinet 2", "The cabinet 2 is closed.")
    assert found.filter_exploration([*GO, "open cabinet 2", "look"]) == ["open cabinet 2"]
    found.update("open cabinet 2", "You open the cabinet 2. The cabinet 2 is open. In it, you see nothing.")
    assert found.filter_exploration([*GO, "close cabinet 2"]) == [
        action for action in GO if action != "go to cabinet 2"
    ]
    assert found.filter_exploration(["look"]) == []
