"""constrained bench planbench: rows over seeds, judged anew, recorded and compared."""

import json

import pytest

from benchmarks.planbench import command
from constrained.cli import main
from tests.planning.small import PROBLEMS


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Play two problems of blocks; returns the exit code and the rows."""
    domain, problem = PROBLEMS["blocks"]
    folder = tmp_path / "data" / "blocks" / "basic"
    folder.mkdir(parents=True)
    (folder.parent / "domain.pddl").write_text(domain)
    for number, goal in enumerate(["(table c)", "(held d)"], 1):
        text = problem[: problem.index("(:goal")] + f"(:goal {goal}))"
        (folder / f"instance-{number}.pddl").write_text(text)
    monkeypatch.setattr(command, "RECORD", tmp_path / "record.json")

    def run(*options):
        file = tmp_path / "figures.json"
        file.unlink(missing_ok=True)
        given = "--data", tmp_path / "data", "--output", tmp_path / "runs", "--json", file, "--max-steps", 20, *options
        code = main(["bench", "planbench", *map(str, given)])
        return code, json.loads(file.read_text())["rows"] if file.exists() else []

    return run


def test_a_row_is_the_mean_over_its_seeds(bench, capsys):
    code, (form, state) = bench("--model", "random", "--level", "form", "--level", "state", "--seed", 1, "--seed", 2)
    assert code == 0 and state["seeds"] == [1, 2] and state["solved"] == sum(state["solved by seed"])
    assert form["impossible"] > 0 == state["impossible"] and state["optima known"] == state["solved"] >= 2
    assert f"{25 * state['solved']:.1f} % (" in capsys.readouterr().out


def test_what_was_recorded_may_only_get_better(bench, capsys, monkeypatch):
    options = "--model", "random", "--level", "state", "--exact"
    assert bench(*options)[0] == 1 and "nothing of this is recorded" in capsys.readouterr().err
    assert bench(*options, "--update", "--seed", 3)[0] == 0 and "recorded 1 rows" in capsys.readouterr().out
    code, rows = bench("--exact")  # the other models aren't recorded, and the record's seed is played
    assert code == 0 and "no row is worse" in capsys.readouterr().out
    assert [(row["model"], row["level"], row["seeds"]) for row in rows] == [("random", "state", [3])]
    assert bench("--exact", "--seed", 4)[0] == bench("--exact", "--limit", 1)[0] == 1  # such rows aren't recorded
    record = json.loads(command.RECORD.read_text())
    record["rows"][0]["solved"] += 1
    command.RECORD.write_text(json.dumps(record))
    assert bench(*options)[0] == 1 and "worse:" in capsys.readouterr().out
