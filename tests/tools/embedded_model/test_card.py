"""The model card states the run it describes."""

from pathlib import Path

from constrained.environments.data import read_json
from constrained.models.source import EMBEDDED
from tools.embedded_model.card import WIDTH, model_card, with_self_learning, wrapped

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "self_learning.json"
FACTS = {
    "parameters": 1_900_000, "source": "Ten games", "games": 9, "held_out": 1, "disturbed": 3, "noises": "10%",
    "other": 2, "informed": 1, "examples": 1234, "layers": 4, "hidden": 192, "heads": 6, "inner": 512, "entries": 777,
    "rate": 0.003, "decay": 0.1, "warmup": 0.03, "batch": 2048, "precision": "bfloat16", "seed": 7,
    "tokens": 5_000_000, "steps": 2500, "passes": 1.25, "minutes": 12.4, "threads": 2, "loss": 0.0123,
    "command": "python -m tools.embedded_model.train --seed 7", "dtype": "float32", "size": 7_600_000,
}  # fmt: skip


def test_card_names_data_recipe_seed_scores_and_command():
    row = {"games": 140, "success": 0.9, "steps": 7.25, "no effect": 0.0}
    card = model_card(FACTS, {"Some games:": {"react, masked": row}})
    for fact in ("1,234", "seed 7", "5,000,000 tokens", "--seed 7", "7,600,000 bytes"):
        assert fact in card
    assert "| `react` | masked | 140 | 90.0% | 7.2 | 0.0% |" in card


def test_paragraphs_are_filled_and_nothing_else_is():
    text = "---\nlicense: x\ntags: y\n---\n\n# Title\n\n" + "word " * 50 + "\n\n    a  command\n\n| a |\n|---|\n"
    front, title, paragraph, command, table = wrapped(text).split("\n\n")
    assert (front, title) == ("---\nlicense: x\ntags: y\n---", "# Title")
    assert (command, table) == ("    a  command", "| a |\n|---|\n")
    lines = paragraph.splitlines()
    assert " ".join(lines) == ("word " * 50).strip() and all(WIDTH - 5 < len(line) <= WIDTH for line in lines[:-1])
    assert wrapped(wrapped(text)) == wrapped(text) and wrapped(model_card(FACTS, {})) == model_card(FACTS, {})


def test_the_shipped_card_tells_the_rounds_that_were_measured():
    card, results = (EMBEDDED / "README.md").read_text(encoding="utf-8"), read_json(RESULTS)
    full, rounds = results["runs"][0], results["runs"][0]["rounds"]
    runs = rounds[1]["synthesis"]["tasks"]
    facts = {
        "number": len(rounds) - 1, "runs": runs, "tasks": runs // results["samples"], "train": results["train"],
        "rule": full["rule"], "suite": next(iter(rounds[0]["test"])), "seed": results["tuning"]["seed"],
        "command": "make embedded",
    }  # fmt: skip
    assert wrapped(card) == card == with_self_learning(card, facts, rounds)


def test_card_tells_the_rounds_once_however_often_they_are_written():
    test = {"won": 70, "success %": 50.0, "steps of won": 7.25, "invalid %": 0, "misordered %": 0, "pruned mass %": 1.5}
    rounds = [
        {"round": 0, "test": {"some/games": {**test, "won": 0}}},
        {"round": 1, "test": {"some/games": test}, "kept": 1234, "merged": 1300, "texts": 9000},
    ]
    facts = {
        "number": 1, "runs": 4000, "tasks": 2000, "train": "other/games", "rule": "paper", "suite": "some/games",
        "seed": 7, "command": "constrained train",
    }  # fmt: skip
    card = model_card(FACTS, {})
    once = with_self_learning(card, facts, rounds)
    assert once.startswith(card) and "seed 7" in once and "    constrained train\n" in once
    assert "| 0 | 50.0% | – | 0.00% | 0.00% | 1.50% | – | – | – |\n" in once
    assert "| 1 | 50.0% | 7.2 | 0.00% | 0.00% | 1.50% | 1,234 | 1,300 | 9,000 |\n" in once
    assert with_self_learning(once, facts, rounds) == once
