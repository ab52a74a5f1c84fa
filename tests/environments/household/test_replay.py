"""Transcripts of the original game, replayed, are the same text: a sample here, all by benchmarks/replay.py."""

import gzip
import json

import pytest

from benchmarks import replay
from constrained.environments.household import Game, HouseholdEnv, load_games
from constrained.errors import DataError
from tests.data import shared
from tests.environments.household.small_house import small_house

EVERY = 24  # 149 of the 3,553 training games, of all task types


@pytest.fixture(scope="module")
def figures():
    for name in ("alfworld/games_2.1.1_train.tar.xz", *replay.SETS.values()):
        shared(name)
    return replay.run(every=EVERY, progress=False)


@pytest.mark.parametrize("name", list(replay.SETS))
def test_every_observation_is_identical(figures, name):
    found = figures[name]
    assert found["differences"] == []
    assert found["identical"] == found["observations"] > 250
    assert found["outcome_agrees"] == found["transcripts"]


def test_known_walkthroughs_win_their_games():
    # The index writes "move X to Y" where these game files say "put X in/on Y".
    lines = shared("alfworld/index.jsonl").read_text().splitlines()
    walks = {entry["name"]: entry["walkthrough_move_syntax"] for entry in map(json.loads, lines)}
    shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    for game in load_games("valid_seen"):
        env = HouseholdEnv(game)
        for action in walks[game.name]:
            if action.startswith("move "):
                thing, _, receptacle = action[len("move ") :].partition(" to ")
                action = f"put {thing} in/on {receptacle}"
            assert not env.done
            env.step(action)
            assert env.had_effect, (game.name, action)
        assert env.done, game.name


def test_a_difference_is_counted_and_kept():
    turns = [("go to cabinet 1", "The cabinet 1 is closed."), ("look", "You see stars.")]
    first = "You are in the middle of a room. Looking quickly around you, you see a cat.\nYour task is to: purr."
    tally = replay.Tally()
    replay.replay(replay.Transcript("small", first, turns, won=True), small_house(), tally)
    found = tally.to_json()
    assert (found["observations"], found["identical"], found["outcome_agrees"]) == (3, 1, 0)
    assert found["differences_by_kind"] == {"first observation": 1, "look": 1}
    assert "| set | 1 | 3 | 1 |" in replay.table({"set": found})


def test_turns_after_the_game_was_won_count_as_differences():
    game: Game = small_house()
    turns = [
        ("go to shelf 1", "On the shelf 1, you see a desklamp 1, a mug 1, and a pot 1."),
        ("take mug 1 from shelf 1", "You pick up the mug 1 from the shelf 1."),
        ("go to sinkbasin 1", "On the sinkbasin 1, you see nothing."),
        ("clean mug 1 with sinkbasin 1", "You clean the mug 1 using the sinkbasin 1."),
        ("put mug 1 in/on sinkbasin 1", "You put the mug 1 in/on the sinkbasin 1."),
        ("look", "You are facing the sinkbasin 1. Next to it, you see nothing."),
    ]
    tally = replay.Tally()
    replay.replay(replay.Transcript("small", HouseholdEnv(game).reset(), turns, won=True), game, tally)
    assert tally.counts["identical"] == 6
    assert [d["ours"] for d in tally.differences] == ["(game over)"]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-20], lambda raw: b"no gzip", lambda raw: gzip.compress(b"{}\n")])
def test_a_damaged_transcript_file_is_refused_naming_it(tmp_path, monkeypatch, damage):
    path = tmp_path / replay.SETS["knowagent D0"]
    path.parent.mkdir()
    runs = [{"name": f"task/{n}", "traj": "A room.\n> look\nStars.\n", "result": False} for n in range(50)]
    path.write_bytes(damage(gzip.compress("\n".join(map(json.dumps, runs)).encode())))
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(DataError, match="KnowAgentALFWorld_llama-2-13b_D0.jsonl.gz"):
        list(replay.read_knowagent("knowagent D0"))
