"""A household's observations as triples."""

import pytest

from constrained.environments.household import HouseholdEnv, make_game
from tests.environments.household.small_house import small_house


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
    ],
)
def test_what_is_seen_becomes_triples(observation, expected):
    assert HouseholdEnv(small_house()).triples(observation) == expected


@pytest.mark.parametrize("seed", range(4))
def test_who_looks_everywhere_knows_the_whole_room(seed):
    env = HouseholdEnv(make_game(seed))
    env.reset()
    known = set()
    for name in env.game.receptacles:
        known.update(env.triples(env.step(f"go to {name}")[0]))
        known.update(env.triples(env.step(f"open {name}")[0]))
        known.update(env.triples(env.step(f"examine {name}")[0]))
    env.reset()
    there = {(thing, "in/on", name) for name, inside in env.game.contents(env.truth.state).items() for thing in inside}
    assert {t for t in known if t[1] == "in/on" and t[0] != "nothing"} == there
