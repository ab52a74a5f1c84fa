"""Small Lumos: what is trained on, and the whole table from models that are trained for a few steps."""

import json
from collections import Counter
from fractions import Fraction

import pytest

from benchmarks.lumos.command import SUITES, table
from benchmarks.lumos.models import modules
from benchmarks.lumos.problems import in_figures, number, training_problems, worked
from benchmarks.lumos.recipe import PAPER_MODEL, QUICK, VARIANTS
from benchmarks.papers import LUMOS_TABLE_2B
from constrained.cli import main
from constrained.environments.maths.problems import WordProblem
from constrained.environments.similarity import VariationFinder
from constrained.environments.suite import open_suite
from tests.data import shared

SPENT, BOUGHT = "He spent $1.5 because", "He bought 6 ounces because"
SODA = WordProblem(
    "row", "", "How many ounces?",
    f"{SPENT} 2 - .5 = <<2-.5=1.5>>1.5\n{BOUGHT} 1.5/ .25 = <<1.5/.25=6>>6", Fraction(6),
)  # fmt: skip


@pytest.fixture
def data():
    shared("svamp/SVAMP_first700.json"), shared("gsm8k/train.jsonl.gz")


def test_every_row_of_the_papers_table_is_compared():
    assert [(variant.paper, PAPER_MODEL) for variant in VARIANTS] == list(LUMOS_TABLE_2B)
    assert set(SUITES.values()) == {column for row in LUMOS_TABLE_2B.values() for column in row}


def test_a_planner_and_a_grounder_are_two_models_and_all_else_one():
    names = [name for variant in VARIANTS for name in modules(variant)]
    assert len(set(names)) == len(names) == 7
    assert Counter(len(modules(variant)) for variant in VARIANTS) == {1: 3, 2: 2}


def test_nothing_held_out_is_trained_on_nor_a_variation_of_it(data):
    problems = training_problems(QUICK)
    assert {name: len(part) for name, part in problems.items()} == {"svamp": 8, "gsm8k": 8}
    held_out = [task.make().task for name in SUITES for task in open_suite(name, split="held_out").tasks]
    assert len(held_out) == 136 + 761
    likeness = VariationFinder(held_out)
    assert not any(likeness.similar(problem.question) for part in problems.values() for problem in part)


def test_what_each_way_of_training_teaches():
    found = worked("gsm8k", SODA)
    first, second = (f"Find what belongs in the blank: {words} ___" for words in (SPENT, BOUGHT))
    assert found.answers["answer"] == (" Finish[6]",)
    assert found.answers["reasoning"] == (f" {SPENT} 2 - .5 = 1.5 {BOUGHT} 1.5/ .25 = 6\nAction: Finish[6]",)
    assert found.answers["onetime"] == (
        f"Subgoal 1: {first}; Subgoal 2: {second}", "R1 = Calculator(2-.5); R2 = Calculator(R1/.25)"
    )  # fmt: skip
    assert found.answers["iterative"] == (
        f"Subgoal 1: {first}", "R1 = Calculator(2-.5)", f"No, I will keep planning. Subgoal 2: {second}",
        "R2 = Calculator(R1/.25)", "Yes, I will stop planning.",
    )  # fmt: skip
    assert in_figures(["R1 = Calculator(7 - 2)", "R2 = Calculator(R1 * 3)"]) == "7 - 2 = 5. 5 * 3 = 15."
    assert (number(Fraction(-3)), number(Fraction(5, 2))) == ("-3", "2.5")


def test_the_whole_table_from_nothing_and_again_at_once(data, tmp_path, capsys):
    sizes = f"--quick --rows 4 --problems 1 --output {tmp_path} --json {tmp_path}/figures.json"
    command = ["bench", "lumos", *sizes.split()]
    assert main(command) == 0
    figures, printed = json.loads((tmp_path / "figures.json").read_text()), capsys.readouterr().out
    assert len(figures["rows"]) == len(VARIANTS) * len(SUITES) * 2 and table(figures["rows"]) in printed
    for row in figures["rows"]:
        assert row["tasks"] == 1 and row["failed"] == 0
        assert not row["masks"] or row["invalid %"] == row["misordered %"] == 0
    assert all(tuned["steps"] > 1 for tuned in figures["models"].values())
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    made = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in (".safetensors", ".json")}
    (tmp_path / "figures.json").unlink()
    assert main(command) == 0
    again = json.loads((tmp_path / "figures.json").read_text())
    assert again["models"] == figures["models"] and again["rows"] == figures["rows"]
    assert made == {path: path.stat().st_mtime_ns for path in made}
