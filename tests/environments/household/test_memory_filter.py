"""What is known of a room leaves out moves that can't be of use, and none that is needed to win."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.environments.household import HouseholdEnv, load_games, make_game
from constrained.environments.household.memory import Memory
from tests.data import shared
from tests.environments.household.small_house import small_house
from tools.embedded_model.expert import Prior, decide

GO = [f"go to {name}" for name in ("cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1", "table 1")]
OTHERS = ["look", "inventory", "examine cabinet 1"]


def memory(*moves, task="clean some mug and put it in sinkbasin"):
    """Of the small house, after some actions and the answers to them."""
    room = HouseholdEnv(small_house()).reset().partition("Your task")[0]
    found = Memory(f"{room}Your task is to: {task}.")
    for action, answer in moves:
        found.update(action, answer)
    return found


def left(found, *other):
    """Where one may go, and which of the others may be done."""
    here = {f"go to {name}" for name in found.here()}
    actions = [action for action in [*GO, *OTHERS, *other] if action not in here]
    useful = found.filter_actions(actions)
    assert useful == [action for action in actions if action in useful]
    assert [action for action in actions if not action.startswith("go to ")] == \
        [action for action in useful if not action.startswith("go to ")]  # fmt: skip
    return [action.removeprefix("go to ") for action in useful if action.startswith("go to ")]


CABINETS = ["cabinet 1", "cabinet 2"]
SHELF = ("go to shelf 1", "On the shelf 1, you see a mug 1, and a pot 1.")
TABLE = ("go to table 1", "On the table 1, you see a potato 1.")
CLOSED = ("go to fridge 1", "The fridge 1 is closed.")
OPENED = ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a potato 2.")
EMPTY = [
    ("go to cabinet 1", "On the cabinet 1, you see nothing."),
    ("go to cabinet 2", "On the cabinet 2, you see nothing."),
    CLOSED,
    OPENED,
    ("go to shelf 1", "On the shelf 1, you see nothing."),
    ("go to microwave 1", "On the microwave 1, you see nothing."),
    ("go to sinkbasin 1", "On the sinkbasin 1, you see nothing."),
    TABLE,
]
TAKEN = ("take mug 1 from shelf 1", "You pick up the mug 1 from the shelf 1.")


def test_nothing_is_left_out_before_anything_is_known():
    assert left(memory()) == [action.removeprefix("go to ") for action in GO]


def test_moves_lead_to_what_is_known_to_be_needed_next():
    assert left(memory(SHELF, TABLE)) == ["shelf 1"]
    assert left(memory(SHELF, TAKEN)) == ["sinkbasin 1"]  # to be cleaned


def test_where_what_is_needed_is_here_one_does_not_go_away():
    found = memory(TABLE, SHELF)
    assert left(found, "take mug 1 from shelf 1") == []
    assert left(memory(SHELF, TAKEN, EMPTY[-2]), "clean mug 1 with sinkbasin 1") == []


def test_one_looks_where_nobody_has_looked():
    assert left(memory(TABLE)) == ["cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1"]
    assert left(memory(*EMPTY[:4])) == ["shelf 1", "sinkbasin 1", "table 1"]


def test_a_door_just_gone_to_is_opened_and_one_left_closed_may_be_gone_to_again():
    assert left(memory(TABLE, CLOSED), "open fridge 1") == []
    assert left(memory(CLOSED, TABLE)) == ["cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1"]
    assert left(memory(TABLE, CLOSED)) == [
        "cabinet 1",
        "cabinet 2",
        "shelf 1",
        "sinkbasin 1",
    ]  # where it can't be opened


def test_who_has_looked_everywhere_may_go_anywhere():
    assert left(memory(*EMPTY)) == ["cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1"]


def test_what_was_closed_again_is_gone_to_and_opened_for_what_is_in_it():
    shut = ("close fridge 1", "You close the fridge 1.")
    task = "heat some potato and put it in table"
    found = memory(CLOSED, OPENED, shut, EMPTY[0], task=task)
    assert left(found) == ["fridge 1"]
    found.update(*CLOSED)
    assert left(found, "open fridge 1") == []


def test_of_receptacles_at_one_place_the_unseen_is_looked_into_before_one_goes_back():
    together = ("go to cabinet 2", "Nothing happens.")
    kept = [move for move in EMPTY if move[0] != "go to cabinet 2"]
    found = memory(*kept, EMPTY[0], together)
    assert found.here() == CABINETS and found.unseen() == ["cabinet 2"]
    assert left(found, "open cabinet 2") == left(found, "examine cabinet 2") == []
    found.update(*TABLE)
    assert left(found) == ["cabinet 2"]


def test_where_one_can_not_go_one_is_already():
    found = memory(EMPTY[0])
    found.learn([("mug 1", "cabinet 2")])  # at the same place, which no text has told yet
    actions = [action for action in GO if action not in ("go to cabinet 1", "go to cabinet 2")]
    assert found.filter_actions([*actions, "take mug 1 from cabinet 2"]) == ["take mug 1 from cabinet 2"]
    assert found.filter_actions([*actions, "open cabinet 2"]) == ["open cabinet 2"]


def test_what_was_told_wrongly_stops_nobody():
    found = memory(EMPTY[0])
    found.learn([("mug 1", "cabinet 2"), ("mug 2", "narnia 1")])
    actions = [action for action in GO if "cabinet" not in action]
    assert found.filter_actions([*actions, "look"]) == [*actions, "look"]  # it is not there
    assert found.filter_actions(["go to table 1"]) == ["go to table 1"]


def test_the_second_of_two_is_looked_for_when_the_first_is_in_its_place():
    moves = [
        ("go to table 1", "On the table 1, you see a mug 10, and a mug 1."),
        ("take mug 10 from table 1", "You pick up the mug 10 from the table 1."),
        ("go to cabinet 2", "On the cabinet 2, you see nothing."),
    ]
    put = ("put mug 10 in/on cabinet 2", "You put the mug 10 in/on the cabinet 2.")
    task = "put two mug in cabinet"
    assert left(memory(*moves, task=task), "put mug 10 in/on cabinet 2") == []
    assert left(memory(*moves, put, task=task), "take mug 10 from cabinet 2") == ["table 1"]
    alone = ("go to table 1", "On the table 1, you see a mug 10.")
    assert left(memory(alone, *moves[1:], put, task=task)) == ["cabinet 1", "fridge 1", "shelf 1", "sinkbasin 1"]


def test_the_second_goes_where_the_first_is_even_past_another_of_the_kind():
    moves = [
        ("go to cabinet 2", "On the cabinet 2, you see a mug 2."),
        ("go to cabinet 1", "On the cabinet 1, you see nothing."),
        ("go to table 1", "On the table 1, you see a mug 1."),
        ("take mug 1 from table 1", "You pick up the mug 1 from the table 1."),
    ]
    assert left(memory(*moves, task="put two mug in cabinet")) == ["cabinet 2"]


def test_of_several_tools_any_will_do():
    room = "Looking quickly around you, you see a desk 1, a sinkbasin 10, and a sinkbasin 1.\n\nYour task is to: "
    found = Memory(f"{room}clean some mug and put it in desk.")
    found.update("go to desk 1", "On the desk 1, you see a mug 1.")
    found.update("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
    assert found.filter_actions(["go to sinkbasin 1", "go to sinkbasin 10"]) == [
        "go to sinkbasin 1",
        "go to sinkbasin 10",
    ]
    found.update("go to sinkbasin 10", "On the sinkbasin 10, you see nothing.")
    assert found.filter_actions(["go to desk 1", "go to sinkbasin 1", "look"]) == [
        "go to sinkbasin 1",
        "look",
    ]  # can't here
    actions = ["clean mug 1 with sinkbasin 10", "go to desk 1", "go to sinkbasin 1"]
    assert found.filter_actions(actions) == actions[:1]


def test_with_the_thing_in_hand_the_lamp_is_looked_for():
    task = "look at mug under the desklamp"
    assert left(memory(TABLE, SHELF, TAKEN, task=task)) == ["cabinet 1", "cabinet 2", "fridge 1", "sinkbasin 1"]
    lamp = ("go to table 1", "On the table 1, you see a desklamp 1.")
    assert left(memory(lamp, SHELF, TAKEN, task=task)) == ["table 1"]
    assert left(memory(SHELF, TAKEN, lamp, task=task), "use desklamp 1") == []


def test_a_wrong_thing_in_hand_may_be_brought_anywhere():
    wrong = ("take potato 1 from table 1", "You pick up the potato 1 from the table 1.")
    assert left(memory(SHELF, TABLE, wrong)) == ["cabinet 1", "cabinet 2", "fridge 1", "shelf 1", "sinkbasin 1"]


@pytest.mark.parametrize("task", ["sing a song", "", "put a mug in cabinet and then one in the fridge " * 999])
def test_of_a_task_not_understood_nothing_is_known_to_be_of_no_use(task):
    found = memory(TABLE, CLOSED, task=task)
    if not found.spec.object_kind:
        assert found.filter_actions([*GO, "open fridge 1"]) == [*GO, "open fridge 1"]


NAMES = st.sampled_from(["mug 1", "mug 10", "cabinet 1", "cabinet 10", "shelf 1", "Tür 1", ""])
ACTIONS = st.builds(
    str.format,
    st.sampled_from(["go to {}", "open {}", "take {} from {}", "put {} in/on {}", "look", "{}"]),
    NAMES,
    NAMES,
)


@given(actions=st.lists(ACTIONS), told=st.lists(st.tuples(NAMES, NAMES)), moves=st.lists(st.tuples(ACTIONS, ACTIONS)))
def test_whatever_was_read_something_is_left_of_something(actions, told, moves):
    found = memory(*moves)
    found.learn(told)
    useful = found.filter_actions(actions)
    assert bool(useful) == bool(actions)
    assert useful == [action for action in actions if action in set(useful)]
    assert all(action.startswith("go to ") for action in set(actions) - set(useful))


@given(seed=st.integers(), noise=st.sampled_from([0, 0, 0.3]))
def test_what_the_expert_does_is_always_of_use(seed, noise):
    check(HouseholdEnv(make_game(seed)), noise, random.Random(seed))


def check(env, noise=0.0, rng=None):
    """Let the expert play, but for some steps at random: what it can do may be done, and it wins."""
    found, knows = Memory(env.reset()), Prior()
    for _ in range(200):
        possible = env.admissible()
        useful = found.filter_actions(possible)
        assert useful and set(useful) <= set(possible)
        action = decide(found, knows).action
        # Of two tools it knows but one; and it may be wrong about what shares a place.
        if action in possible and action.removeprefix("go to ") != found.appliance():
            assert action in useful, found.text()
        if rng and rng.random() < noise:
            action = rng.choice(useful)
        observation, _, done = env.step(action)
        found.update(action, observation)
        if done:
            return
    assert noise, f"{env.game.name} was not won"


@given(seed=st.integers())
def test_who_searches_at_random_goes_nowhere_twice(seed):
    env, rng = HouseholdEnv(make_game(seed)), random.Random(seed)
    found = Memory(env.reset())
    gone = []
    while found.unseen() and not found.find(found.spec.object_kind):
        useful = found.filter_actions(env.admissible())
        action = rng.choice([a for a in useful if a.startswith(("go to ", "open "))] or useful)
        if action.startswith("go to "):
            gone.append(action)
        found.update(action, env.step(action)[0])
    assert len(gone) == len(set(gone))


@pytest.mark.parametrize("split, every", [("valid_seen", 1), ("train", 12)])
def test_what_the_expert_does_in_alfworld_is_always_of_use(split, every):
    shared(f"alfworld/games_2.1.1_{split}.tar.xz")
    for game in load_games(split, every=every):
        check(HouseholdEnv(game))


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
