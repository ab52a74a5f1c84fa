"""What is in view is what can be done: slots, admissible commands and rules never disagree."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.original import every_command
from constrained.environments.household import HouseholdEnv, load_games, make_game
from tests.data import shared
from tests.environments.household.small_house import small_house, wander


def commands_from(view: dict) -> set[str]:
    """Spell out the commands that the slots of a view admit, as grammars/household.lark would."""
    place = next(iter(view["REACH"]), None)
    held = view.get("HELD", [None])[0]

    def here(slot: str) -> list[str]:
        return view[slot].get(place, []) if view.get(slot) else []

    commands = {"look", "inventory"}
    commands |= {f"go to {r}" for r in view.get("RECEPTACLE", [])}
    commands |= {f"open {r}" for r in here("CLOSED")} | {f"close {r}" for r in here("OPENED")}
    commands |= {f"examine {name}" for name in here("EXAMINABLE")} | {f"use {thing}" for thing in here("LAMP")}
    if held is None:
        commands |= {f"take {o} from {r}" for r in here("REACH") for o in view["OBJECT"].get(r, [])}
        return commands
    commands |= {f"put {held} in/on {r}" for r in here("FITS")} | {f"slice {o} with {held}" for o in here("SLICEABLE")}
    for verb, slot in (("clean", "CLEANER"), ("heat", "HEATER"), ("cool", "COOLER")):
        commands |= {f"{verb} {held} with {r}" for r in here(slot)}
    return commands


def check_moment(env: HouseholdEnv, tried: list[str]) -> None:
    """The commands tried have an effect exactly if they are admissible, and the slots admit the same."""
    admissible = set(env.admissible())
    view = env.view()
    assert commands_from(view) == admissible
    for slot, values in view.items():
        lists = values.values() if isinstance(values, dict) else [values]
        assert all(entries and len(set(entries)) == len(entries) for entries in lists), slot
    for command in tried:
        probe = HouseholdEnv(env.game)
        probe.truth = env.truth
        probe.step(command)
        assert probe.had_effect == (command in admissible), command
        assert probe.had_effect or probe.truth is env.truth


def test_in_the_small_house_exactly_the_admissible_commands_have_an_effect():
    env = HouseholdEnv(small_house())
    for _ in wander(env, random.Random(1), 60):
        check_moment(env, every_command(env.game))


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), walk=st.randoms(use_true_random=False))
def test_in_made_games_slots_and_admissible_commands_agree_with_the_rules(seed, walk):
    env = HouseholdEnv(make_game(seed))
    spelled = every_command(env.game)
    for _ in wander(env, walk, 12):
        check_moment(env, env.admissible() + walk.sample(spelled, 40))


def test_in_alfworld_games_slots_and_admissible_commands_agree_with_the_rules():
    shared("alfworld/games_2.1.1_train.tar.xz")
    rng = random.Random(0)
    for game in load_games("train", every=150):
        env = HouseholdEnv(game)
        spelled = every_command(env.game)
        for _ in wander(env, rng, 15):
            check_moment(env, env.admissible() + rng.sample(spelled, 40))


def test_before_the_first_move_nothing_is_in_reach():
    view = HouseholdEnv(small_house()).view()
    assert view["RECEPTACLE"] == [
        "cabinet 2", "cabinet 1", "fridge 1", "microwave 1", "shelf 1", "sinkbasin 1", "table 1",
    ]  # fmt: skip
    assert "HELD" not in view
    assert not any(view[slot] for slot in view if slot != "RECEPTACLE")


def test_slots_are_keyed_by_the_place_one_went_to_and_include_its_neighbours():
    env = HouseholdEnv(small_house())
    env.step("go to table 1")
    view = env.view()
    assert env.standing_at == "table 1"
    assert view["REACH"] == {"table 1": ["shelf 1", "table 1"]}
    assert view["OBJECT"] == {"shelf 1": ["mug 1", "pot 1"], "table 1": ["knife 1", "pot 1", "potato 2"]}
    assert view["LAMP"] == {"table 1": ["desklamp 1"]}
    assert view["EXAMINABLE"] == {"table 1": ["shelf 1", "table 1"]}
    assert "table 1" not in view["RECEPTACLE"] and "shelf 1" not in view["RECEPTACLE"]
    env.step("take knife 1 from table 1")
    view = env.view()
    assert view["HELD"] == ["knife 1"]
    assert view["FITS"] == {"table 1": ["table 1"]}
    assert view["SLICEABLE"] == {"table 1": ["potato 2"]}
    assert view["EXAMINABLE"] == {"table 1": ["shelf 1", "table 1", "knife 1"]}


@pytest.mark.parametrize("door", ["CLOSED", "OPENED"])
def test_a_cabinet_is_either_closed_or_opened(door):
    env = HouseholdEnv(small_house())
    env.step("go to cabinet 2")
    if door == "OPENED":
        env.step("open cabinet 2")
        assert env.view()["OBJECT"] == {"cabinet 2": ["box 1", "pen 1"]}
        assert env.view()["CLOSED"] == {"cabinet 2": ["cabinet 1"]}
    assert "cabinet 2" in env.view()[door]["cabinet 2"]
