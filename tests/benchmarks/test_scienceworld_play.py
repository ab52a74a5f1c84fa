"""constrained bench scienceworld-play: scores from episodes, tables from scores."""

import json

import pytest

from benchmarks import scienceworld_play
from benchmarks.scienceworld_play import changes, points, table
from constrained.cli import main
from tests.environments.scienceworld.present import needs_scienceworld

TASK = "find-non-living-thing"


def test_the_score_at_a_limit_is_the_last_one_reached_within_it():
    row = {"scores": changes([0.0, 0.25, 0.25, 0.5] + [0.5] * 60 + [1.0])}
    assert row["scores"] == [(2, 0.25), (4, 0.5), (65, 1.0)]
    assert [points(row, limit) for limit in (1, 2, 50, 100)] == [0.0, 25.0, 50.0, 100.0]
    assert points({"scores": changes([0.5, -1.0])}) == 0.0 == points({"scores": []})


def test_a_table_has_the_mean_over_tasks_and_what_was_published():
    def row(task, score):
        return {"task": task, "variation": 1, "player": "masks", "actions": 2, "invalid": 0, "no effect": 1,
                "scores": [(2, score)]}  # fmt: skip

    shown = table([row("boil", 0.5), row("boil", 1.0), row("melt", -1.0)])
    assert "| boil | 75.0 | 75.0 |" in shown and "| **2 tasks** | 37.5 | 37.5 |" in shown
    assert "| masks | 3 | 33% | 33% | 0.0% | 50.0% |" in shown and "| ReAct | 15.05 |" in shown


def test_random_choice_is_played_recorded_and_not_played_again(tmp_path, capsys, monkeypatch):
    needs_scienceworld()
    monkeypatch.setattr(scienceworld_play, "MAX_STEPS", 4)
    file = tmp_path / "figures.json"
    command = [
        "bench",
        "scienceworld-play",
        "--player",
        "random",
        "--task",
        TASK,
        "--variations",
        "1",
        "--json",
        str(file),
    ]
    assert main(command) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["task"] == TASK and 1 <= row["actions"] <= 4
    out = capsys.readouterr().out
    monkeypatch.setattr(scienceworld_play, "play_randomly", lambda *_: pytest.fail("played again"))
    assert main(command) == 0 and capsys.readouterr().out == out


def test_a_file_of_another_kind_is_not_written_over(tmp_path, capsys):
    file = tmp_path / "figures.json"
    file.write_text("[]")
    assert main(["bench", "scienceworld-play", "--json", str(file)]) == 1
    assert "is not a file of this benchmark" in capsys.readouterr().err and file.read_text() == "[]"
