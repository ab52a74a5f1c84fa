"""constrained bench scienceworld: its figures how it goes on, and what was measured last."""

import json

import pytest

from benchmarks import scienceworld
from constrained.cli import main
from tests.environments.scienceworld.present import needs_scienceworld

TASK = "find-non-living-thing"


@pytest.fixture
def walked(tmp_path, capsys):
    needs_scienceworld()
    file = tmp_path / "figures.json"
    assert main(["bench", "scienceworld", "--task", TASK, "--json", str(file)]) == 0
    return file, capsys.readouterr().out


def test_a_walk(walked):
    file, out = walked
    (row,) = json.loads(file.read_text())["rows"]
    assert row["task"] == TASK and row["score"] == 1.0
    assert row["gold"] == row["understood"] == row["admitted"] == 5
    assert sum(row["drawn"].values()) == scienceworld.DRAWN and row["drawn"]["unknown"] == 0
    assert f"| {TASK} | 5 | 5 | 5 | 5 | 1.00 |" in out


def test_what_was_walked_is_not_walked_again(walked, capsys, monkeypatch):
    file, out = walked
    with monkeypatch.context() as patch:
        patch.setattr(scienceworld, "walk", lambda *_: pytest.fail("walked again"))
        assert main(["bench", "scienceworld", "--task", TASK, "--json", str(file)]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}'])
def test_a_file_of_another_kind_is_not_written_over(tmp_path, capsys, text):
    file = tmp_path / "figures.json"
    file.write_text(text)
    assert main(["bench", "scienceworld", "--task", TASK, "--json", str(file)]) == 1
    assert "is not a file of this benchmark" in capsys.readouterr().err and file.read_text() == text
