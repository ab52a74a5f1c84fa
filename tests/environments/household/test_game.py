"""Game files: ALFWorld's own are read whole; damaged ones are refused, saying where."""

import json
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.environments.data import data_file
from constrained.environments.household import Game, HouseholdEnv, load_games, load_named
from constrained.environments.household.game import game_files, household_world
from constrained.environments.suite import open_suite
from constrained.errors import DataError, GameError
from constrained.planning.problem import read_problem_of
from tests.data import shared
from tests.environments.household.small_house import GAME_FILE, PROBLEM


def test_a_problem_is_read_under_the_players_names():
    game = Game.from_json(GAME_FILE)
    assert game.problem.objects["agent1"] == "agent" and game.problem.objects["sinkbasin 1"] == "receptacle"
    assert ("inreceptacle", "mug 1", "shelf 1") in game.problem.init
    assert game.receptacles[:3] == ["cabinet 2", "cabinet 1", "fridge 1"]
    assert game.kind("sinkbasin 1") == "SinkBasinType" and game.kind("mug 1") == "MugType" and game.kind("loc 1") == ""


def test_a_game_is_read_from_a_file(tmp_path):
    folder = tmp_path / "put-Mug" / "trial_1"
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text(GAME_FILE)
    game = Game.from_file(folder / "game.tw-pddl")
    assert game.name == "put-Mug/trial_1"
    assert game.task == "put a clean mug in sinkbasin."


@pytest.mark.parametrize(
    "text, message",
    [
        (GAME_FILE[:200], "not a whole JSON file"),
        ("", "not a whole JSON file"),
        ("[1, 2]", "no 'pddl_problem' and 'grammar'"),
        ("{}", "no 'pddl_problem' and 'grammar'"),
        (b"\xff\xfe\x00", "not a whole JSON file"),
        ("[" * 100_000, "not a whole JSON file"),
        (json.dumps({"pddl_problem": PROBLEM, "grammar": "{}"}), "no 'Your task is to"),
    ],
)
def test_text_that_is_no_game_is_refused(text, message):
    with pytest.raises(GameError, match=message):
        Game.from_json(text, "broken")


@pytest.mark.parametrize(
    "problem, message",
    [
        (PROBLEM[: PROBLEM.index("(canContain")], r"ends inside \(:init .* opened on line 13"),
        (PROBLEM[: PROBLEM.index("(:goal")] + ")", r"no \(:goal"),
        (PROBLEM.replace("(:init", "(:nothing"), "unknown section :nothing"),
        (PROBLEM.replace("(:objects", "(:things"), "unknown section :things"),
        ("", "is empty"),
        ("define", "instead of a parenthesis"),
        ("(problem)", "doesn't begin with"),
        (")", "has a closing parenthesis too many"),
        ("(" * 100, "nests deeper than 60"),
        (" " * 5_000_000, "more than 4,000,000"),
        (PROBLEM.replace("(openable Fridge_bar_1)", "(openable Oven_bar_1)"), "no object 'Oven_bar_1'"),
        (PROBLEM.replace("(atLocation agent1 loc_bar_0)", ""), "0 agents"),
        (
            PROBLEM.replace("(inReceptacle Mug_bar_1 Shelf_bar_1)", "(inReceptacle Mug_bar_1)"),
            "has 2 arguments, not 1",
        ),
        (PROBLEM.replace("(openable Fridge_bar_1)", "(openable Fridge_bar_1 agent1)"), "has 1 arguments, not 2"),
        (PROBLEM.replace("(isClean ?o)", "(isSparkling ?o)"), "no predicate 'isSparkling'"),
        (PROBLEM.replace("(isClean ?o)", "(isClean ?x)"), r"variable \?x is not declared"),
        (PROBLEM.replace("?o - object", "?o - ghost"), "no type 'ghost'"),
        (PROBLEM.replace("(isClean ?o)", "isClean"), r"a condition such as \(at \?x\) belongs here"),
    ],
)
def test_a_broken_problem_is_refused_saying_where(problem, message):
    text = json.dumps({"pddl_problem": problem, "grammar": "Your task is to: x"})
    with pytest.raises(GameError, match=message) as caught:
        Game.from_json(text, "broken")
    assert str(caught.value).startswith("broken:")


@settings(max_examples=300)
@given(st.data())
def test_damage_anywhere_gives_a_game_or_a_clear_error(data):
    start = data.draw(st.integers(0, len(PROBLEM)))
    length = data.draw(st.integers(0, 40))
    middle = data.draw(st.sampled_from(["", "(", ")", " ", "()", "?o", "- object", "(and)", "(not)", "(exists)"]))
    damaged = PROBLEM[:start] + middle + PROBLEM[start + length :]
    try:
        game = Game.from_problem("damaged", "x", read_problem_of(household_world().domain, damaged))
    except GameError as error:
        assert error.message
    else:
        HouseholdEnv(game).step("look")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(GameError, match="can't be read"):
        Game.from_file(tmp_path / "game.tw-pddl")


def test_an_unknown_split_is_refused_with_the_known_ones():
    with pytest.raises(GameError, match="valid_seen, valid_unseen, train"):
        next(load_games("test"))


def test_missing_data_names_the_folder_and_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(DataError, match="CONSTRAINED_DATA"):
        data_file("alfworld/index.jsonl")


def test_an_archive_cut_short_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    (tmp_path / "alfworld").mkdir()
    archive = tmp_path / "alfworld" / "games_2.1.1_valid_seen.tar.xz"
    game = tmp_path / "game.tw-pddl"
    game.write_text(GAME_FILE)
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(game, "json_2.1.1/valid_seen/put-Mug/trial_1/game.tw-pddl")
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    assert [game.name for game in load_games("valid_seen")] == ["put-Mug/trial_1"]
    archive.write_bytes(archive.read_bytes()[:-600])
    with pytest.raises(DataError, match="can't be read to its end"):
        list(load_games("valid_seen"))


def test_games_are_read_as_alfworlds_download_lays_them_out(tmp_path, monkeypatch):
    def add(folder, text=GAME_FILE, name="game.tw-pddl"):
        place = tmp_path / "json_2.1.1" / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)

    for split in ("train", "valid_seen", "valid_unseen"):
        add(f"{split}/put-Mug-1/trial_1")
        add(f"{split}/put-Mug/trial_2")
    add("valid_unseen/put-Mug/trial_3", name="traj_data.json")  # the download has these beside or without games
    add("valid_unseen/put-Mug/trial_4", json.dumps(json.loads(GAME_FILE) | {"solvable": False}))
    add("valid_unseen/pick_and_place_with_movable_recep-Mug/trial_1")
    add("valid_unseen/put-MugSliced/trial_1")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    for split in ("train", "valid_seen", "valid_unseen"):
        names = [task.name for task in open_suite("alfworld", split=split).tasks]
        assert names == ["put-Mug-1/trial_1", "put-Mug/trial_2"]
    assert list(load_named(["put-Mug/trial_2"], "valid_unseen")) == ["put-Mug/trial_2"]
    assert open_suite("alfworld", split="valid_unseen").tasks[0].make().task == "put a clean mug in sinkbasin."


def test_without_games_both_places_and_the_download_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(DataError, match="games_2.1.1_valid_unseen.tar.xz") as caught:
        next(load_games("valid_unseen"))
    assert "alfworld-download" in str(caught.value) and "ALFWORLD_DATA" in str(caught.value)
    (tmp_path / "json_2.1.1" / "valid_unseen").mkdir(parents=True)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(DataError, match="no .*/game.tw-pddl in"):
        next(load_games("valid_unseen"))


def test_the_unpacked_archive_and_the_archive_have_the_same_games(tmp_path, monkeypatch):
    archive = shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    packed = list(game_files("valid_seen"))
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert list(game_files("valid_seen")) == packed and len(packed) == 140


def test_all_games_of_the_validation_split_are_read():
    shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    games = list(load_games("valid_seen"))
    assert len(games) == 140
    assert not any(game.start.reached_goal for game in games)
    ladle = next(
        game for game in games if game.name.startswith("pick_clean_then_place_in_recep-Ladle-None-CounterTop-14/")
    )
    assert ladle.task in ("put a clean ladle in countertop.", "clean some ladle and put it in countertop.")
    with pytest.raises(DataError, match="no game 'nowhere'"):
        load_named(["nowhere"], "valid_seen")
