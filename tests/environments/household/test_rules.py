"""The household answers word for word as ALFWorld does."""

import pytest

from constrained.environments.household import HouseholdEnv
from constrained.errors import GameError
from tests.environments.household.small_house import small_house
from tests.environments.protocols import is_suite_environment

NOTHING = "Nothing happens."


def play(*actions: str) -> str:
    """Play the actions and return the last answer."""
    env = HouseholdEnv(small_house())
    answer = ""
    for action in actions:
        answer = env.step(action)[0]
    return answer


def test_the_household_is_a_text_environment():
    assert is_suite_environment(HouseholdEnv(small_house()))


def test_the_first_observation_lists_receptacles_by_kind_and_falling_number():
    assert HouseholdEnv(small_house()).reset() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet 1, "
        "a fridge 1, a microwave 1, a shelf 1, a sinkbasin 1, and a table 1.\n\n"
        "Your task is to: put a clean mug in sinkbasin."
    )


@pytest.mark.parametrize(
    "actions, answer",
    [
        (["go to table 1"], "On the table 1, you see a knife 1, a pot 1, a potato 2, and a window 1."),
        (["go to sinkbasin 1"], "On the sinkbasin 1, you see nothing."),
        (["go to cabinet 1"], "The cabinet 1 is closed."),
        (
            ["go to cabinet 2", "open cabinet 2"],
            "You open the cabinet 2. The cabinet 2 is open. In it, you see a box 1, and a pen 1.",
        ),
        (
            ["go to cabinet 1", "open cabinet 1"],
            "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing.",
        ),
        (["go to fridge 1", "open fridge 1", "close fridge 1"], "You close the fridge 1."),
        (["go to fridge 1", "open fridge 1", "examine fridge 1"], "The fridge 1 is open. In it, you see a potato 1."),
        (["go to table 1", "take knife 1 from table 1"], "You pick up the knife 1 from the table 1."),
        (
            ["go to table 1", "take knife 1 from table 1", "put knife 1 in/on table 1"],
            "You put the knife 1 in/on the table 1.",
        ),
        (["inventory"], "You are not carrying anything."),
        (["go to table 1", "take potato 2 from table 1", "inventory"], "You are carrying: a potato 2."),
        (["go to table 1", "use desklamp 1"], "You turn on the desklamp 1."),
        (["go to table 1", "use desklamp 1", "use desklamp 1"], "You turn on the desklamp 1."),
        (
            ["go to table 1", "take knife 1 from table 1", "slice potato 2 with knife 1"],
            "You sliced the potato 2 with the knife 1.",
        ),
        (["  go to table 1 "], "On the table 1, you see a knife 1, a pot 1, a potato 2, and a window 1."),
    ],
)
def test_actions_are_answered(actions, answer):
    assert play(*actions) == answer


@pytest.mark.parametrize(
    "actions",
    [
        ["go to table 2"],
        ["Go to table 1"],
        ["go to  table 1"],
        ["go to table 1", "go to table 1"],
        ["go to table 1", "go to shelf 1"],  # they share a place
        ["open cabinet 1"],
        ["go to cabinet 1", "close cabinet 1"],
        ["go to cabinet 1", "open cabinet 1", "open cabinet 1"],
        ["go to table 1", "open table 1"],
        ["go to cabinet 2", "take box 1 from cabinet 2"],  # closed
        ["go to table 1", "take window 1 from table 1"],  # stays where it is
        ["go to table 1", "take knife 1 from table 1", "take potato 2 from table 1"],
        ["go to table 1", "take mug 1 from table 1"],  # it is on the shelf
        ["go to table 1", "put knife 1 in/on table 1"],
        ["go to table 1", "take knife 1 from table 1", "put knife 1 in/on shelf 1"],  # doesn't go there
        ["go to table 1", "take knife 1 from table 1", "put knife 1 on table 1"],
        ["go to shelf 1", "take mug 1 from shelf 1", "go to cabinet 1", "put mug 1 in/on cabinet 1"],
        ["go to table 1", "take potato 2 from table 1", "clean potato 2 with sinkbasin 1"],
        ["go to table 1", "take potato 2 from table 1", "go to sinkbasin 1", "heat potato 2 with sinkbasin 1"],
        ["go to shelf 1", "take mug 1 from shelf 1", "go to microwave 1", "heat mug 1 with microwave 1"],
        ["go to table 1", "take potato 2 from table 1", "slice potato 2 with knife 1"],
        ["use desklamp 1"],
        ["go to table 1", "use knife 1"],
        ["go to table 1", "examine knife 1"],  # only what is in the hand
        ["examine table 1"],
        ["look around"],
        ["go"],
        [""],
        ["take"],
    ],
)
def test_impossible_actions_change_nothing(actions):
    env = HouseholdEnv(small_house())
    for action in actions[:-1]:
        env.step(action)
        assert env.had_effect
    before = env.truth
    assert env.step(actions[-1]) == (NOTHING, 0.0, False)
    assert not env.had_effect
    assert env.truth is before


@pytest.mark.parametrize(
    "treatments, answer",
    [
        ([], "There's nothing special about potato 2."),
        (["clean"], "This is a clean potato 2."),
        (["heat"], "This is a hot potato 2."),
        (["cool"], "This is a cold potato 2."),
        (["clean", "heat"], "This is a hot and clean potato 2."),
        (["cool", "clean"], "This is a cool and clean potato 2."),
        (["cool", "heat"], "This is a hot potato 2."),
        (["heat", "cool"], "This is a cold potato 2."),
        (["slice"], "This is a sliced potato 2."),
        (["slice", "heat"], "This is a hot sliced potato 2."),
        (["slice", "cool"], "This is a cool sliced potato 2."),
        (["slice", "clean"], "This is a clean sliced potato 2."),
        (["slice", "clean", "heat"], "This is a hot and clean sliced potato 2."),
    ],
)
def test_examining_the_held_object_tells_what_was_done_to_it(treatments, answer):
    actions = ["go to table 1"]
    if "slice" in treatments:
        actions += ["take knife 1 from table 1", "slice potato 2 with knife 1", "put knife 1 in/on table 1"]
    actions.append("take potato 2 from table 1")
    appliances = {"clean": "sinkbasin 1", "heat": "microwave 1", "cool": "fridge 1"}
    for verb in treatments:
        if verb in appliances:
            actions += [f"go to {appliances[verb]}", f"{verb} potato 2 with {appliances[verb]}"]
    assert play(*actions, "examine potato 2") == answer


def test_a_treatment_is_answered_and_needs_no_open_door():
    actions = ["go to table 1", "take potato 2 from table 1", "go to microwave 1", "heat potato 2 with microwave 1"]
    assert play(*actions) == "You heat the potato 2 using the microwave 1."


def test_a_vessel_tells_what_the_game_says_is_in_it():
    at_box = ["go to cabinet 2", "open cabinet 2", "take box 1 from cabinet 2", "examine box 1"]
    assert play(*at_box) == "This is a normal box 1. In it, you see a pen 1."
    at_mug = ["go to shelf 1", "take mug 1 from shelf 1", "examine mug 1"]
    assert play(*at_mug) == "This is a normal mug 1. In it, you see nothing."


def test_an_object_on_two_receptacles_stays_on_the_other_when_taken():
    env = HouseholdEnv(small_house())
    env.step("go to shelf 1")
    env.step("take pot 1 from shelf 1")
    assert env.step("examine table 1")[0] == "On the table 1, you see a knife 1, a pot 1, a potato 2, and a window 1."
    assert env.step("examine shelf 1")[0] == "On the shelf 1, you see a desklamp 1, and a mug 1."


def test_looking_around_before_the_first_move_shows_nothing():
    assert play("look") == "You are in the middle of a room. Looking quickly around you, you see nothing."


def test_looking_names_all_receptacles_that_share_the_place():
    assert play("go to table 1", "look") == "You are facing the shelf 1, and table 1. Next to it, you see nothing."
    assert play("go to fridge 1", "look") == "You are facing the fridge 1. Next to it, you see nothing."


def test_looking_names_an_object_moved_from_one_receptacle_to_its_neighbour():
    # As seen in the original: a box taken out of cabinet 1 and put into cabinet 2 at the same place.
    moved = ["go to cabinet 2", "open cabinet 2", "open cabinet 1", "take box 1 from cabinet 2"]
    moved.append("put box 1 in/on cabinet 1")
    assert play(*moved, "look") == "You are facing the cabinet 2, and cabinet 1. Next to it, you see a box 1."
    back = ["take box 1 from cabinet 1", "put box 1 in/on cabinet 2", "look"]
    assert play(*moved, *back) == "You are facing the cabinet 2, and cabinet 1. Next to it, you see a box 1."


def test_looking_is_silent_about_an_object_put_back():
    actions = ["go to cabinet 2", "open cabinet 2", "take box 1 from cabinet 2", "put box 1 in/on cabinet 2", "look"]
    assert play(*actions) == "You are facing the cabinet 2, and cabinet 1. Next to it, you see nothing."


def test_the_goal_ends_the_game_with_a_reward():
    env = HouseholdEnv(small_house())
    for action in ["go to shelf 1", "take mug 1 from shelf 1", "go to sinkbasin 1", "clean mug 1 with sinkbasin 1"]:
        assert env.step(action)[1:] == (0.0, False)
    assert env.step("put mug 1 in/on sinkbasin 1") == ("You put the mug 1 in/on the sinkbasin 1.", 1.0, True)
    with pytest.raises(GameError, match="the game is over"):
        env.step("look")
    env.reset()
    assert env.step("go to sinkbasin 1") == ("On the sinkbasin 1, you see nothing.", 0.0, False)


def test_two_plays_of_one_game_do_not_touch_each_other():
    game = small_house()
    first, second = HouseholdEnv(game), HouseholdEnv(game)
    first.step("go to shelf 1")
    first.step("take mug 1 from shelf 1")
    assert "mug 1" in second.step("go to shelf 1")[0]
