"""The memory holds what the texts said, and nothing that they didn't."""

import pytest

from constrained.environments.household.task_spec import LIGHT, SIMPLE, TWO, UNKNOWN, TaskSpec, parse_task, player_world
from constrained.environments.memory import WorldMemory

KITCHEN = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, "
    "you see a cabinet 2, a cabinet 1, a coffeemachine 1, a countertop 1, a fridge 1, a microwave 1, "
    "and a sinkbasin 1.\n\nYour task is to: clean some mug and put it in coffeemachine."
)


def lines(memory):
    return dict(line.split(": ", 1) for line in memory.text().splitlines())


def after(*moves, start=KITCHEN):
    memory = WorldMemory(player_world(), start)
    for action, answer in moves:
        memory.update(action, answer)
    return memory


LOOKED = [
    ("go to cabinet 1", "The cabinet 1 is closed."),
    ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see a mug 2, and a plate 1."),
]
TAKEN = [*LOOKED, ("take mug 2 from cabinet 1", "You pick up the mug 2 from the cabinet 1.")]
CLEANED = [
    *TAKEN,
    ("go to sinkbasin 1", "On the sinkbasin 1, you see a fork 1, and a mug 1."),
    ("clean mug 2 with sinkbasin 1", "You clean the mug 2 using the sinkbasin 1."),
]


@pytest.mark.parametrize(
    "sentence, spec",
    [
        ("put two candle in drawer", TaskSpec(TWO, "candle", "drawer")),
        ("find two soapbar and put them in cabinet", TaskSpec(TWO, "soapbar", "cabinet")),
        ("put some vase on safe", TaskSpec(SIMPLE, "vase", "safe")),
        ("put a pen in desk", TaskSpec(SIMPLE, "pen", "desk")),
        ("cool some pot and put it in diningtable", TaskSpec("pick_cool_then_place_in_recep", "pot", "diningtable")),
        ("heat some egg and put it in garbagecan", TaskSpec("pick_heat_then_place_in_recep", "egg", "garbagecan")),
        ("put a clean mug in the coffeemachine", TaskSpec("pick_clean_then_place_in_recep", "mug", "coffeemachine")),
        ("look at cd under the desklamp", TaskSpec(LIGHT, "cd", "desklamp")),
        ("examine the book with the desklamp.", TaskSpec(LIGHT, "book", "desklamp")),
        ("sing a song", UNKNOWN),
    ],
)
def test_task_sentences_are_understood(sentence, spec):
    assert parse_task(sentence) == spec


def test_start_knows_the_room_and_nothing_in_it():
    assert lines(after()) == {
        "Task": "put a clean mug in coffeemachine",
        "Hold": "none",
        "At": "start",
        "Seen": "none",
        "Goal": "coffeemachine 1, sinkbasin 1",
        "Unseen": "cabinet 1 2, coffeemachine 1, countertop 1, fridge 1, microwave 1, sinkbasin 1",
        "Last": "none",
    }


def test_closed_receptacle_stays_unseen_until_opened():
    shown = lines(after(LOOKED[0]))
    assert shown["At"] == "cabinet 1 closed"
    assert shown["Unseen"].startswith("cabinet 1 2,")
    shown = lines(after(*LOOKED))
    assert shown["At"] == "cabinet 1: mug 2 +1"
    assert shown["Unseen"].startswith("cabinet 2,")


def test_held_object_leaves_its_place_and_shows_its_state():
    assert lines(after(*TAKEN))["At"] == "cabinet 1: none +1"
    assert lines(after(*TAKEN))["Hold"] == "mug 2, not clean"
    shown = lines(after(*CLEANED))
    assert shown["Hold"] == "mug 2, clean, ready"
    assert shown["Goal"] == "coffeemachine 1, sinkbasin 1 here"
    assert shown["At"] == "sinkbasin 1: mug 1 +1"


def test_cooling_undoes_heat():
    memory = after(
        *TAKEN,
        ("heat mug 2 with microwave 1", "You heat the mug 2 using the microwave 1."),
        ("cool mug 2 with fridge 1", "You cool the mug 2 using the fridge 1."),
    )
    assert lines(memory)["Hold"] == "mug 2, cool, not clean"


def test_things_that_matter_are_remembered_from_afar():
    memory = after(*LOOKED, ("go to countertop 1", "On the countertop 1, you see a mug 3, and a mug 1."))
    shown = lines(memory)
    assert shown["Seen"] == "mug 2 at cabinet 1"
    assert shown["At"] == "countertop 1: mug 3, mug 1"


def test_wrong_object_shows_where_it_came_from():
    memory = after(*LOOKED, ("take plate 1 from cabinet 1", "You pick up the plate 1 from the cabinet 1."))
    assert lines(memory)["Hold"] == "plate 1, not wanted, from cabinet 1"


def test_failed_move_tells_that_two_receptacles_share_a_place():
    memory = after(LOOKED[0], ("go to cabinet 2", "Nothing happens."))
    shown = lines(memory)
    assert shown["At"] == "cabinet 1 closed; cabinet 2 ?"
    assert shown["Last"] == "go to cabinet 2, no effect"


def test_unknown_commands_change_nothing():
    memory = after(*LOOKED, ("go to narnia 1", "Nothing happens."))
    assert memory.shown.of("here") == [("here", "cabinet 1")]


def test_arrival_sentence_makes_no_difference():
    plain = after(("go to countertop 1", "On the countertop 1, you see a mug 3."))
    arriving = after(("go to countertop 1", "You arrive at loc 12. On the countertop 1, you see a mug 3."))
    assert plain.text() == arriving.text()


def test_desk_1_and_desk_10_are_different_places():
    desks = ", ".join(f"a desk {n}" for n in range(10, 0, -1))
    memory = after(
        ("go to desk 10", "On the desk 10, you see a pen 1."),
        start=f"You are in the middle of a room. Looking quickly around you, you see {desks}.\n\n"
        "Your task is to: put a pen in desk.",
    )
    assert memory.known.of("in") == [("in", "pen 1", "desk 10")]
    assert lines(memory)["Unseen"] == "desk 1 2 3 +6"
    assert lines(memory)["At"] == "desk 10: none"  # pen 1 is where it belongs


def test_second_object_goes_where_the_first_one_went():
    room = (
        "You are in the middle of a room. Looking quickly around you, you see a drawer 2, a drawer 1, and a toilet 1."
        "\n\nYour task is to: put two candle in drawer."
    )
    memory = after(
        ("go to toilet 1", "On the toilet 1, you see a candle 2, and a candle 1."),
        ("take candle 2 from toilet 1", "You pick up the candle 2 from the toilet 1."),
        ("go to drawer 2", "On the drawer 2, you see nothing."),
        ("put candle 2 in/on drawer 2", "You put the candle 2 in/on the drawer 2."),
        start=room,
    )
    shown = lines(memory)
    assert shown["Goal"] == "drawer 2 here"
    assert shown["Done"] == "candle 2 at drawer 2"
    assert shown["Seen"] == "candle 1 at toilet 1"


def test_text_stays_short_in_the_largest_room():
    names = ", ".join(f"a {kind} {n}" for kind in ("cabinet", "drawer", "shelf") for n in range(50, 0, -1))
    memory = after(
        ("go to shelf 1", "On the shelf 1, you see " + ", ".join(f"a mug {n}" for n in range(40, 0, -1)) + "."),
        start=f"You are in the middle of a room. Looking quickly around you, you see {names}.\n\n"
        "Your task is to: put a mug in cabinet.",
    )
    assert lines(memory)["Unseen"] == "cabinet 1 2 3 +47, drawer 1 2 3 +47, shelf 2 3 4 +46"
    assert len(memory.text()) < 300


def test_destination_does_not_change_on_the_way_between_two():
    room = (
        "You are in the middle of a room. Looking quickly around you, you see a drawer 2, a drawer 1, and a toilet 1."
        "\n\nYour task is to: put two candle in drawer."
    )
    moves = [
        ("go to drawer 1", "On the drawer 1, you see a candle 2."),
        ("go to drawer 2", "On the drawer 2, you see a candle 1."),
    ]
    assert lines(after(*moves, start=room))["Goal"] == "drawer 1"
    assert lines(after(*moves, moves[0], start=room))["Goal"] == "drawer 1 here"


def test_lamp_is_the_goal_and_where_it_stands():
    room = (
        "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 2, and a desk 1."
        "\n\nYour task is to: look at cd under the desklamp."
    )
    assert lines(after(start=room))["Goal"] == "desklamp"
    moves = [
        ("go to desk 2", "On the desk 2, you see a cd 1, and a desklamp 1."),
        ("take cd 1 from desk 2", "You pick up the cd 1 from the desk 2."),
        ("go to bed 1", "On the bed 1, you see nothing."),
    ]
    shown = lines(after(*moves, start=room))
    assert (shown["Goal"], shown["Hold"]) == ("desklamp 1 at desk 2", "cd 1, ready")
    assert lines(after(*moves[:2], start=room))["Goal"] == "desklamp 1 at desk 2 here"


def test_what_another_found_is_known_before_the_first_step():
    memory = after()
    memory.learn([("mug 1", "cabinet 2"), ("mug 10", "narnia 1")], ["cabinet 1", "cabinet 2", "narnia 1"])
    shown = lines(memory)
    assert shown["Seen"] == "mug 1 at cabinet 2"
    assert shown["Unseen"] == "coffeemachine 1, countertop 1, fridge 1, microwave 1, sinkbasin 1"
    assert (shown["At"], shown["Last"], shown["Hold"]) == ("start", "none", "none")
    memory.update("go to cabinet 2", "On the cabinet 2, you see nothing.")  # what is there is truer than what was told
    assert lines(memory)["Seen"] == "none"


def test_a_game_begun_again_has_everything_where_it_was_first_seen():
    memory = after(
        *CLEANED,
        ("put mug 2 in/on sinkbasin 1", "You put the mug 2 in/on the sinkbasin 1."),
        ("go to sinkbasin 1", "On the sinkbasin 1, you see a fork 1, a mug 2, and a mug 1."),
    )
    for again in (memory.restart(KITCHEN), memory.restart(KITCHEN).restart(KITCHEN)):
        shown = lines(again)
        assert shown["Seen"] == "mug 2 at cabinet 1, mug 1 at sinkbasin 1"
        assert (shown["Hold"], shown["At"], shown["Last"]) == ("none", "start", "none")
        assert shown["Unseen"] == "cabinet 2, coffeemachine 1, countertop 1, fridge 1, microwave 1"
        again.update("go to cabinet 1", "The cabinet 1 is closed.")
        shown = lines(again)  # it is closed, and what is inside is known all the same
        assert (shown["At"], shown["Seen"]) == ("cabinet 1 closed", "mug 2 at cabinet 1, mug 1 at sinkbasin 1")


def test_a_game_begun_again_knows_what_shares_a_place_and_what_is_closed():
    memory = after(*LOOKED, ("go to cabinet 2", "Nothing happens.")).restart(KITCHEN)
    memory.update("go to cabinet 2", "The cabinet 2 is closed.")
    assert lines(memory)["At"] == "cabinet 2 closed; cabinet 1 closed"
