"""Self-learning's tables and picture say what its reports say, and stand beside the papers' figures."""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import papers
from benchmarks.self_learning import command
from benchmarks.self_learning.command import VARIANTS
from benchmarks.self_learning.tables import paper_tables, rounds_table
from constrained.agents.levels import GOAL
from constrained.cli import main
from constrained.cli.options import tuning_of
from constrained.errors import ConstrainedError
from constrained.training.settings import PRESETS
from constrained.training.trajectory import RULES

RESULTS = Path(command.__file__).parents[1] / "results" / "self_learning.json"


def figures_of(success: float, **figures: float) -> dict:
    rest = {"tasks": 140, "won": 1, "steps of won": 7.5, "invalid %": 0.0, "misordered %": 0.0, "pruned mass %": 0.0}
    return {**rest, "success %": success, **figures}


def report(number: int, seen: float, made: float = 10.0, **figures: float) -> dict:
    return {
        "round": number,
        "synthesis": figures_of(60.0, tasks=510, **{"pruned mass %": 1.25}),
        "kept": 300,
        "dropped": {"misordered action": 6, "not correct": 204},
        "merged": 340,
        "texts": 2720,
        "tuning": {"steps": 3400, "tokens": 10, "loss": 0.123, "seconds": 61.0},
        "test": {"alfworld/valid_seen": figures_of(seen, **figures), "household/seed 0": figures_of(made)},
    }


def run(name: str, *rounds: dict) -> dict:
    return {**asdict(VARIANTS[name]), "model": "embedded", "rounds": list(rounds)}


RUNS = [
    run("full", report(0, 90.0, **{"pruned mass %": 0.7}), report(1, 95.0, **{"pruned mass %": 0.4})),
    run("no-knowledge", report(0, 80.0, **{"invalid %": 20.5, "misordered %": 0.25}), report(1, 78.5)),
]


def cells(text: str, *beginning: str) -> list[str]:
    """What a line of a Markdown table says after its first cells."""
    start = "| " + " | ".join(beginning) + " |"
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.removeprefix(start).strip("|").split("|")]


def test_each_round_has_its_line_in_each_suite():
    text = rounds_table(RUNS)
    seen, made = text.split("household/seed 0, by round:")
    assert cells(seen, "full", "1") == ["140", "95.0 %", "7.5", "0.00 %", "0.00 %", "0.40 %"]
    assert cells(seen, "no-knowledge", "0") == ["140", "80.0 %", "7.5", "20.50 %", "0.25 %", "–"]
    assert cells(made.split("learned from")[0], "full", "0")[:2] == ["140", "10.0 %"]


def test_what_a_round_learned_from_is_told_with_every_reason():
    text = rounds_table(RUNS)
    learned = text.split("learned from:")[1]
    expected = ["510", "60.0 %", "0.00 %", "0.00 %", "1.25 %", "300", "340", "2,720", "3,400", "0.1230", "61 s"]
    assert cells(learned, "full", "1") == expected
    assert "full, round 0, dropped: 204 not correct, 6 misordered action." in text
    assert cells(learned, "no-knowledge", "1")[4] == "–"  # without masks, no pruned mass


def test_what_was_not_measured_is_a_dash():
    only_tested = {"round": 0, "test": {"household/seed 0": {"tasks": 4, "success %": 0.0}}}
    text = rounds_table([run("full", only_tested)])
    assert cells(text, "full", "0") == ["4", "0.0 %", "–", "–", "–", "–"]
    assert "dropped:" not in text


def test_the_papers_rows_stand_below_ours():
    text = paper_tables(RUNS)
    scores, untuned, mistakes = text.split("\n\n")[1::2]
    assert cells(scores, "full, round 1", "embedded") == ["95.00 %", "–"]
    assert cells(scores, "*KnowAgent*", "Llama-2-70b") == ["77.14 %", "78.36 %"]
    assert len(scores.splitlines()) == 2 + 2 + sum("ALFWorld seen" in row for row in papers.KNOWAGENT_TABLE_1.values())
    assert cells(untuned, "ReAct", "embedded")[0] == "80.00 %"
    assert cells(untuned, "KnowAgent, masks on", "embedded")[0] == "90.00 %"
    assert cells(untuned, "*KnowAgent, not tuned*", "Llama-2-13b") == ["30.00 %", "38.06 %"]
    assert cells(mistakes, "no-knowledge, not tuned", "embedded") == ["20.50 %", "0.25 %"]
    assert cells(mistakes, "*KnowAgent*", "Llama-2-13b") == ["0.35 %", "1.23 %"]


def test_nothing_is_held_against_the_papers_that_was_not_played_on_their_games():
    elsewhere = [run("full", {"round": 0, "test": {"household/seed 0": figures_of(99.0)}})]
    assert paper_tables(elsewhere) == ""
    assert "Table 2" not in paper_tables(RUNS[:1])  # ReAct was not run


def test_variants_differ_in_what_they_are_named_for():
    full, bare = VARIANTS["full"], VARIANTS["no-knowledge"]
    assert full.masks and full.test_masks and full.rule == "paper" and full.level == GOAL
    assert not VARIANTS["no-masks"].masks and VARIANTS["no-masks"].rule == "paper"
    for name, part in {"masks-in-training": {"test_masks": True}, "state": {"level": GOAL}}.items():
        assert replace(VARIANTS[name], name="full", words=full.words, **part) == full
    assert bare.step_format == "react" and bare.rule == "released" and not bare.masks
    assert {variant.rule for variant in VARIANTS.values()} <= set(RULES)


def test_the_picture_shows_every_variant_and_does_not_change(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.self_learning.plot import STYLES, draw

    assert len(VARIANTS) <= len(STYLES)
    for name in ("a", "b"):
        draw({"runs": RUNS}, tmp_path / f"{name}.svg")
    draw(RUNS[0]["rounds"], tmp_path / "one.svg")
    text = (tmp_path / "a.svg").read_text()
    assert text.startswith("<?xml") and text == (tmp_path / "b.svg").read_text()
    assert text != (tmp_path / "one.svg").read_text()


def test_a_picture_of_nothing_is_an_error(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.self_learning.plot import STYLES, draw

    with pytest.raises(ConstrainedError, match="no round was tested"):
        draw([], tmp_path / "none.svg")
    many = [{**RUNS[0], "name": str(number)} for number in range(len(STYLES) + 1)]
    with pytest.raises(ConstrainedError, match="too many"):
        draw({"runs": many}, tmp_path / "many.svg")
    assert list(tmp_path.iterdir()) == []


def test_the_command_runs_the_variants_writes_everything_and_goes_on(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder, told, picture = tmp_path / "runs", tmp_path / "all.json", tmp_path / "rounds.svg"
    small = "--train household:1-3 --samples 1 --test household:0-1 --rounds 1 --epochs 1 --rank 2 --seed 7"
    where = ["--output", str(folder), "--json", str(told), "--plot", str(picture)]
    given = ["bench", "self-learning", "--variant", "full", "--variant", "masks-in-training", *small.split(), *where]
    assert main(given) == 0
    out, data = capsys.readouterr().out, json.loads(told.read_text())
    assert [run["name"] for run in data["runs"]] == ["full", "masks-in-training"] and data["tuning"]["seed"] == 7
    full, free = (run["rounds"] for run in data["runs"])
    assert [report["round"] for report in full] == [report["round"] for report in free] == [0, 1]
    for synthesis in (full[1]["synthesis"], free[1]["synthesis"]):
        assert synthesis["invalid %"] == synthesis["misordered %"] == 0
    assert "| full | 1 | 2 |" in out and "masks-in-training, round 1: household" in out and picture.exists()

    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.jsonl")}
    told.unlink()
    assert main(given) == 0  # finished: only read
    assert json.loads(told.read_text()) == data
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.jsonl")} == kept


def test_the_recorded_figures_are_those_of_the_commands_own_defaults():
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    options = parser.parse_args([])
    recorded = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert tuning_of(options) == PRESETS["small"]
    assert recorded["tuning"] == json.loads(json.dumps(asdict(PRESETS["small"])))
    for name in ("train", "samples", "temperature"):
        assert recorded[name] == getattr(options, name)
    assert tuple(run["name"] for run in recorded["runs"]) == command.DEFAULT
    for run in recorded["runs"]:
        assert asdict(VARIANTS[run["name"]]).items() <= run.items()
        assert [report["round"] for report in run["rounds"]] == list(range(options.rounds + 1))
        assert all(tuple(report["test"]) == command.TESTS for report in run["rounds"])


def test_a_model_of_ones_own_is_named_by_the_end_of_its_path():
    names = {
        None: "embedded",
        "/somewhere/build/embedded/taught": "embedded/taught",
        "maker/model-7b": "maker/model-7b",
    }
    assert {model: command.model_name(model) for model in names} == names


def test_what_is_learned_from_is_not_tested_on(capsys):
    assert main(["bench", "self-learning", "--train", "household:0-3", "--test", "household:2-4"]) == 1
    assert "1 tasks are in" in capsys.readouterr().err
