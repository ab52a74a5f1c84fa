"""Playing side by side: what is the same is counted, what differs is kept; the engine itself isn't needed here."""

import json

import pytest

from benchmarks import original
from constrained.environments.household import HouseholdEnv
from constrained.errors import DataError
from tests.environments.household.small_house import small_house

COMPARED = ("moments compared", "answers identical", "admissible commands identical")
MOVES = ["go to shelf 1", "take mug 1 from shelf 1", "fly to shelf 1", lambda: "look"]


def played(one: HouseholdEnv, other: HouseholdEnv) -> original.Comparison:
    found = original.Comparison()
    original.side_by_side(one, other, MOVES, found)
    return found


def test_equal_games_are_equal_at_every_moment():
    found = played(HouseholdEnv(small_house()), HouseholdEnv(small_house()))
    assert [found.counts[name] for name in COMPARED] == [5, 5, 5]
    assert (found.counts["without effect"], found.differences) == (1, [])


class Announcing(HouseholdEnv):
    """A household that says where one arrives."""

    def step(self, action: str) -> tuple[str, float, bool]:
        observation, reward, done = super().step(action)
        return (f"You arrive at loc 1. {observation}" if action.startswith("go to ") else observation), reward, done


def test_a_difference_is_kept_with_its_action():
    found = played(Announcing(small_house()), HouseholdEnv(small_house()))
    assert [found.counts[name] for name in COMPARED] == [5, 4, 5]
    (difference,) = found.differences
    assert (difference["action"], difference["of"]) == ("go to shelf 1", "answers")
    assert difference["theirs"][0].startswith("You arrive at") and difference["ours"][0].startswith("On the shelf 1")


def test_playing_stops_where_the_game_is_won():
    game = small_house()
    moves = ["go to shelf 1", "take mug 1 from shelf 1", "go to sinkbasin 1", "clean mug 1 with sinkbasin 1",
             "put mug 1 in/on sinkbasin 1", "look"]  # fmt: skip
    one, other, found = HouseholdEnv(game), HouseholdEnv(game), original.Comparison()
    original.side_by_side(one, other, moves, found)
    assert other.done and found.counts["moments compared"] == 6 and not found.differences


@pytest.mark.parametrize(
    "row, message",
    [({"name": "a"}, "row 1: no list under 'walkthrough_move_syntax'"), ({"name": 1}, "row 1: no text under 'name'")],
)
def test_a_malformed_walkthrough_is_named(tmp_path, monkeypatch, row, message):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    (tmp_path / "alfworld").mkdir()
    (tmp_path / "alfworld/index.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match=message):
        original.walkthroughs()


def test_walkthroughs_are_told_in_the_words_of_the_game_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    (tmp_path / "alfworld").mkdir()
    moves = ["go to desk 1", "move mug 1 to desk 10"]
    (tmp_path / "alfworld/index.jsonl").write_text(json.dumps({"name": "a", "walkthrough_move_syntax": moves}))
    assert original.walkthroughs() == {"a": ["go to desk 1", "put mug 1 in/on desk 10"]}
