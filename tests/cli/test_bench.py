"""constrained bench rules: the table, and the same figures as JSON."""

import json

from constrained.cli import bench, main
from tests.data import shared


def test_the_printed_rules_are_held_against_the_expert(capsys, tmp_path):
    shared("alfworld/games_2.1.1_train.tar.xz")
    shared("alfworld/expert_gt_traj_train.tar.xz")
    file = tmp_path / "rules.json"
    assert main(["bench", "rules", "--every", "500", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert sum(f["games"] for f in figures.values()) == 8
    assert all(f["household.lark: forbidden"] == 0 for f in figures.values())
    assert "| rule set | games |" in out and "Forbidden by the printed rules" in out


def test_without_data_the_error_says_what_to_set(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    assert main(["bench", "rules", "--json", str(tmp_path / "rules.json")]) == 1
    err = capsys.readouterr().err
    assert "no data file" in err and "set CONSTRAINED_DATA" in err
    assert list(tmp_path.iterdir()) == []


def test_an_installed_copy_says_how_to_get_the_benchmarks(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    for arguments in (["bench", "engine", "--exact"], ["plot", "engine"]):
        assert main(arguments) == 1
        assert "clone the repository" in capsys.readouterr().err
