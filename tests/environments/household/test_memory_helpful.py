"""What is known of a room tells which actions look useful, by the facts in `household.lark` alone."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.agents.levels import looking_useful
from constrained.agents.surroundings import Surroundings
from constrained.environments.household import HouseholdEnv, load_games, make_game
from constrained.environments.household.task_spec import parse_task, player_world
from constrained.environments.memory import WorldMemory
from tests.data import shared
from tests.environments.household.small_house import small_house

GO = [f"go to {name}" for name in ("cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1", "table 1")]
OTHERS = ["look", "inventory", "examine cabinet 1"]


def memory(*moves, task="clean some mug and put it in sinkbasin"):
    """Of the small house, after some actions and the answers to them."""
    room = HouseholdEnv(small_house()).reset().partition("Your task")[0]
    found = WorldMemory(player_world(), f"{room}Your task is to: {task}.")
    for action, answer in moves:
        found.update(action, answer)
    return found


def left(found, *other):
    """Where one may go, and which of the others may be done."""
    here = {f"go to {name}" for _, name in found.shown.of("here")}
    useful = looking_useful(found.facts_now(), [action for action in [*GO, *OTHERS, *other] if action not in here])
    return [action.removeprefix("go to ") for action in useful]


SHELF = ("go to shelf 1", "On the shelf 1, you see a mug 1, and a pot 1.")
TABLE = ("go to table 1", "On the table 1, you see a potato 1.")
BASIN = ("go to sinkbasin 1", "On the sinkbasin 1, you see nothing.")
CLOSED = ("go to fridge 1", "The fridge 1 is closed.")
OPENED = ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a potato 2.")
TAKEN = ("take mug 1 from shelf 1", "You pick up the mug 1 from the shelf 1.")


def test_before_anything_is_known_every_place_is_worth_a_look():
    assert left(memory()) == [action.removeprefix("go to ") for action in GO]


def test_moves_lead_to_what_is_known_to_be_needed_next():
    assert left(memory(SHELF, TABLE)) == ["shelf 1"]
    assert left(memory(SHELF, TAKEN)) == ["sinkbasin 1"]  # to be cleaned


def test_where_what_is_needed_is_here_one_does_not_go_away():
    assert left(memory(TABLE, SHELF), "take mug 1 from shelf 1") == ["take mug 1 from shelf 1"]
    found = memory(SHELF, TAKEN, BASIN)
    assert left(found, "clean mug 1 with sinkbasin 1", "put mug 1 in/on sinkbasin 1") == [
        "clean mug 1 with sinkbasin 1"
    ]


def test_one_looks_where_nobody_has_looked():
    assert left(memory(TABLE)) == ["cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1"]
    assert "open fridge 1" in left(memory(TABLE, CLOSED), "open fridge 1")


def test_what_was_closed_again_is_gone_to_and_opened_for_what_is_in_it():
    shut = ("close fridge 1", "You close the fridge 1.")
    cabinet = ("go to cabinet 1", "On the cabinet 1, you see nothing.")
    found = memory(CLOSED, OPENED, shut, cabinet, task="heat some potato and put it in table")
    assert left(found) == ["fridge 1"]
    found.update(*CLOSED)
    assert left(found, "open fridge 1") == ["open fridge 1"]


def test_the_second_of_two_is_looked_for_when_the_first_is_in_its_place():
    moves = [
        ("go to table 1", "On the table 1, you see a mug 10, and a mug 1."),
        ("take mug 10 from table 1", "You pick up the mug 10 from the table 1."),
        ("go to cabinet 2", "On the cabinet 2, you see nothing."),
        ("put mug 10 in/on cabinet 2", "You put the mug 10 in/on the cabinet 2."),
    ]
    found = memory(*moves, task="put two mug in cabinet")
    assert left(found, "take mug 10 from cabinet 2") == ["table 1"]


def test_of_several_tools_any_will_do():
    room = "Looking quickly around you, you see a desk 1, a sinkbasin 10, and a sinkbasin 1.\n\nYour task is to: "
    found = WorldMemory(player_world(), f"{room}clean some mug and put it in desk.")
    found.update("go to desk 1", "On the desk 1, you see a mug 1.")
    found.update("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
    basins = ["go to sinkbasin 1", "go to sinkbasin 10"]
    assert looking_useful(found.facts_now(), [*basins, "look"]) == basins


def test_with_the_thing_in_hand_the_lamp_is_looked_for():
    task = "look at mug under the desklamp"
    lamp = ("go to table 1", "On the table 1, you see a desklamp 1.")
    assert "cabinet 1" in left(memory(TABLE, SHELF, TAKEN, task=task))
    assert left(memory(lamp, SHELF, TAKEN, task=task)) == ["table 1"]
    assert left(memory(SHELF, TAKEN, lamp, task=task), "use desklamp 1") == ["use desklamp 1"]


@pytest.mark.parametrize("task", ["sing a song", "", "put a mug in cabinet and then one in the fridge " * 999])
def test_of_a_task_not_understood_nothing_is_known_to_be_of_no_use(task):
    found = memory(TABLE, CLOSED, task=task)
    if not parse_task(task).object_kind:
        assert looking_useful(found.facts_now(), [*GO, "open fridge 1"]) == [*GO, "open fridge 1"]


NAMES = st.sampled_from(["mug 1", "mug 10", "cabinet 1", "cabinet 10", "shelf 1", "Tür 1", ""])
ACTIONS = st.builds(
    str.format,
    st.sampled_from(["go to {}", "open {}", "take {} from {}", "put {} in/on {}", "look", "{}"]),
    NAMES,
    NAMES,
)


@given(actions=st.lists(ACTIONS), told=st.lists(st.tuples(NAMES, NAMES)), moves=st.lists(st.tuples(ACTIONS, ACTIONS)))
@settings(max_examples=30)
def test_whatever_was_read_something_is_left_of_something(actions, told, moves):
    found = memory(*moves)
    found.learn(told)
    useful = looking_useful(found.facts_now(), actions)
    assert bool(useful) == bool(actions)
    assert useful == [action for action in actions if action in set(useful)]


def won(env, steps):
    """Take any useful action, again and again: whether that reaches the goal."""
    world, rng = Surroundings(env), random.Random(0)
    world.reset()
    for _ in range(steps):
        facts, here, history = world.known_facts(), world.situation(), world.history
        left = history.without_dead_ends(env.admissible(), facts, here)
        action = rng.choice(history.helpful(left, facts, here))
        result = world.step(action)
        assert result.had_effect
        if result.done:
            return True
    return False


@pytest.mark.parametrize("seed", range(5))
def test_any_useful_action_again_and_again_reaches_the_goal(seed):
    assert won(HouseholdEnv(make_game(seed)), 100)


def test_any_useful_action_again_and_again_wins_alfworlds_games():
    shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    games = list(load_games("valid_seen", every=20))
    assert sum(won(HouseholdEnv(game), 100) for game in games) >= len(games) - 1


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
