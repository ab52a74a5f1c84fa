"""`constrained train self-learning`: rounds in words, files and a picture; what can't be learned from is refused."""

import json

import pytest

from constrained.cli import main

SMALL = ["train", "self-learning", "--strategy", "act", "--max-steps", "14", "--epochs", "1", "--rank", "2"]


def test_rounds_are_told_kept_and_drawn(tmp_path, capsys):
    arguments = [*SMALL, "--train", "household:0-3", "--test", "household:3-4", "--rounds", "1", "--temperature", "1",
                 "--test-level", "goal", "--demonstrations", "0", "--output", str(tmp_path / "run"),
                 "--plot", str(tmp_path / "rounds.svg"), "--json", str(tmp_path / "rounds.json")]  # fmt: skip
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "round 0: household/seed 0:3-4: success" in told and "round 1: kept" in told and "Best on" in told
    reports = json.loads((tmp_path / "rounds.json").read_text())
    assert reports == json.loads((tmp_path / "run" / "report.json").read_text())
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (begun["synthesis"]["level"], begun["test"]["level"]) == ("state", "goal")
    assert begun["synthesis"]["demonstrations"] == begun["test"]["demonstrations"] == 0
    assert reports[1]["synthesis"]["invalid %"] == reports[1]["synthesis"]["misordered %"] == 0
    assert (tmp_path / "rounds.svg").read_text().startswith("<?xml")
    assert (tmp_path / "run" / "round-1" / "adapter" / "adapter_config.json").is_file()

    assert main(arguments) == 0  # nothing is left to do
    assert capsys.readouterr().out == told


def test_tasks_to_learn_from_and_to_be_tested_on_must_be_others(tmp_path, capsys):
    overlapping = ["--train", "household:0-3", "--test", "household:2-4", "--output", str(tmp_path / "run")]
    assert main([*SMALL, *overlapping]) == 1
    assert "1 tasks are in household/seed 0:0-3 and in household/seed 0:2-4" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", [["--demonstrations", "1"], ["--no-knowledge-prompt"]])
def test_a_network_reads_no_prompt(option, capsys):
    assert main(["train", "self-learning", "--pddl", "domain.pddl", "problem.pddl", *option]) == 1
    assert "reads no prompt" in capsys.readouterr().err


def test_a_folder_of_another_run_is_left_alone(tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    arguments = ["--train", "household:0-3", "--test", "household:3-4", "--output", str(folder)]
    assert main([*SMALL, *arguments]) == 1
    assert "holds another run" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["run.json"]
