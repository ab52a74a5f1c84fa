"""Small Lumos: what is trained on, and the tables from models that are trained for a few steps."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.lumos.command import table
from benchmarks.lumos.dataset import make_dataset, played, tokenizer_texts, training_texts, work_out
from benchmarks.lumos.models import modules
from benchmarks.lumos.problems import (
    held_out_term,
    maths_problems,
    number,
    training_questions,
    worked,
    worked_question,
)
from benchmarks.lumos.recipe import DOMAINS, PAPER_MODEL, PUBLISHED, QUICK, SUITES, VARIANTS
from benchmarks.papers import LUMOS_TABLE_2B, LUMOS_TABLE_2C, LUMOS_TABLE_4
from constrained.cli import main
from constrained.environments.maths.problems import WordProblem
from constrained.environments.similarity import VariationFinder
from constrained.models import load
from constrained.training.annotations import strategyqa
from tests.data import shared
from tools.embedded_model.pretraining import Recipe, make_model
from tools.embedded_model.tokenizer import train_tokenizer

SPENT, BOUGHT = "He spent $1.5 because", "He bought 6 ounces because"
SODA = WordProblem(
    "row", "", "How many ounces?",
    f"{SPENT} 2 - .5 = <<2-.5=1.5>>1.5\n{BOUGHT} 1.5/ .25 = <<1.5/.25=6>>6", Fraction(6),
)  # fmt: skip


KINGS = strategyqa.DecomposedQuestion(
    "q", "Louis XIV", "Did Louis XIV outlive Louis XV?", True,
    ("Louis XIV became 76 years old.", "Louis XV became 64 years old."),
    ("How old became Louis XIV?", "How old became Louis XV?", "Is #1 more years than #2?"),
    (("Louis XIV",), ("Louis XV",), ()), (False, False, True),
)  # fmt: skip


@pytest.fixture
def data():
    for name in ("svamp/SVAMP_first700.json", "gsm8k/train.jsonl.gz", "strategyqa/train.json.gz"):
        shared(name)
    shared("hotpotqa/hotpot_train_500_with_context.json.gz")


def test_every_row_of_the_papers_tables_is_compared():
    for domain, tables in (("maths", [LUMOS_TABLE_2B]), ("questions", [LUMOS_TABLE_2C, LUMOS_TABLE_4])):
        compared = [variant.paper for variant in VARIANTS if domain in variant.domains]
        for published in tables:
            assert {method for method, model in published if model == PAPER_MODEL} <= set(compared)
            assert {column for row in published.values() for column in row} == {SUITES[s] for s in DOMAINS[domain]}
    assert all(PUBLISHED[v.paper, SUITES[suite]] for v in VARIANTS if v.paper for suite in v.suites)


def test_a_planner_and_a_grounder_are_two_models_and_all_else_one():
    roles = {variant.name: modules(variant) for variant in VARIANTS}
    names = [name for made in roles.values() for name in made]
    assert len(set(names)) == len(names) == 6 * 1 + 7 * 2
    assert roles["one model for all steps, QA"] == {"one-model-for-all-steps-qa": ("planner", "grounder")}
    assert list(roles["Lumos-I, both domains"].values()) == [("planner",), ("grounder",)]
    assert list(roles["vanilla training, maths"].values()) == [("policy",)]


def test_nothing_held_out_is_trained_on_nor_a_variation_of_it(data):
    problems = maths_problems(replace(QUICK, rows=80))
    held_out = {name: [task.make().task for task in played(name, 2_000).tasks] for name in SUITES}
    assert 60 < len(problems) <= 80 and len(held_out["svamp"]) == 136 and len(held_out["gsm8k"]) == 761
    likeness = VariationFinder([*held_out["svamp"], *held_out["gsm8k"]])
    assert not any(likeness.similar(problem.question) for problem in problems)
    questions = list(training_questions())
    terms = {p.term.casefold() for p in strategyqa.load_problems() if held_out_term(p)}
    assert 150 < len(held_out["strategyqa"]) < 260 and len(held_out["strategyqa"]) + len(questions) == 2_061
    assert not any(question.term.casefold() in terms for question in questions)


def test_what_each_way_of_training_teaches():
    found = worked(SODA)
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
    assert (number(Fraction(-3)), number(Fraction(5, 2))) == ("-3", "2.5")


def test_what_each_way_teaches_about_questions():
    found = worked_question(KINGS)
    first, second = "Louis XIV became 76 years old", "Louis XV became 64 years old"
    assert found.answers["answer"] == (" Finish[yes]",)
    assert found.answers["reasoning"] == (f" {first}. {second}.\nAction: Finish[yes]",)
    plan, actions, *answers = found.answers["onetime"]
    assert plan.count("Subgoal ") == 3 + 2 and actions.count(" = ") == 7 and answers == [first, second, "yes"]
    iterative, low = found.answers["iterative"], found.answers["low"]
    assert iterative[1].startswith("R1 = KnowledgeQuery(Louis XIV); R2 = ") and iterative[2] == first
    assert [text for text in low if text.startswith("R")][:2] == [
        "R1 = KnowledgeQuery(Louis XIV)", "R2 = ParagraphRetrieve(R1, Query: How old became Louis XIV?)"
    ]  # fmt: skip
    assert len(iterative) == 3 * 3 + 1 and len(low) == 7 * 2 + 3 + 1
    assert found.answers["rewoo"][0].count("#E") > 5 and found.answers["rewoo"][1:] == (
        first,
        second,
        "yes",
        "Finish[yes]",
    )


@pytest.mark.parametrize(
    "facts, why", [((), "no fact answers"), (("Louis XIV became " + "very " * 50 + "old.",) * 2, "no fact answers")]
)
def test_a_question_without_answers_is_left_out(facts, why):
    assert worked_question(replace(KINGS, facts=facts)).startswith(why)


def test_questions_are_taught_as_they_are_asked_in_every_way(data):
    recipe = replace(QUICK, rows=3, questions=3)
    short, base, left_out = work_out(recipe)
    tokenizer = train_tokenizer(tokenizer_texts(short, base), recipe.entries, digits=True, context=2_048)
    dataset = make_dataset(short, base, left_out, load((make_model(Recipe(32, 1, 2, 64), tokenizer, 2_048), tokenizer)))
    roles = {key: {role for role, _, _ in texts} for key, texts in dataset.asked.items()}
    assert roles["questions/iterative"] == roles["questions/low"] == {"planner", "grounder", "answerer"}
    assert roles["questions/rewoo"] == {"planner", "policy"} and roles["questions/answer"] == {"policy"}
    both = training_texts(dataset, "iterative", ["maths", "questions"], ["planner"])
    parts = [training_texts(dataset, "iterative", [domain], ["planner"]) for domain in DOMAINS]
    assert len(both) == sum(map(len, parts)) and all(parts)
    assert any("The executed result for Subgoal 1 is" in text.spans[0].text for text in parts[1])


WAYS = ["vanilla training, maths", "Lumos-O, maths", "ReWOO's plans, QA"]


def test_the_tables_from_nothing_and_again_at_once(data, tmp_path, capsys):
    sizes = f"--quick --rows 30 --questions 2 --problems 1 --output {tmp_path} --json {tmp_path}/figures.json"
    command = ["bench", "lumos", *sizes.split(), *(word for way in WAYS for word in ("--way", way))]
    assert main(command) == 0
    figures, printed = json.loads((tmp_path / "figures.json").read_text()), capsys.readouterr().out
    assert len(figures["rows"]) == len(WAYS) * 2 * 2
    assert all(table(figures["rows"], domain) in printed for domain in DOMAINS)
    for row in figures["rows"]:
        assert row["tasks"] == 1 and row["failed"] == 0
        assert not row["masks"] or row["invalid %"] == row["misordered %"] == 0
    assert len(figures["models"]) == 1 + 1 + 2 + 2 and all(tuned["steps"] for tuned in figures["models"].values())
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    made = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in (".safetensors", ".json")}
    (tmp_path / "figures.json").unlink()
    assert main(command) == 0
    again = json.loads((tmp_path / "figures.json").read_text())
    assert again["models"] == figures["models"] and again["rows"] == figures["rows"]
    assert made == {path: path.stat().st_mtime_ns for path in made}
