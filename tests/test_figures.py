"""README and docs show what `benchmarks/results` records (`constrained bench figures`); records say their source."""

import json
from pathlib import Path

import pytest

from benchmarks.figures import command as figures
from benchmarks.figures.agents import interval, mean_of_means
from benchmarks.figures.records import provenance
from benchmarks.result_files import DOCS, RESULTS
from tests.conformance.cases import read_cases

CONFORMANCE = Path(__file__).parent / "conformance"


def test_every_table_and_sentence_is_made_from_its_record():
    assert "\n\n".join(figures.differences()) == ""


def test_the_page_about_correctness_counts_the_conformance_cases():
    cases = [case for path in CONFORMANCE.glob("*.cases") for case in read_cases(path)]
    words = f"holds {len(cases)} grammars with {sum(len(case.texts) for case in cases):,} texts"
    assert words in (DOCS / "evidence.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page, told",
    [
        ("<!-- figures: nothing -->\n| a |\n", "names a table 'nothing'"),
        ("<!-- figures: tau-gold -->\n| a |\n|---|\n| 1 |\n", "the table tau-gold must be"),
    ],
)
def test_a_page_that_shows_other_figures_is_told(monkeypatch, tmp_path, page, told):
    path = tmp_path / "page.md"
    path.write_text(page)
    monkeypatch.setattr(figures, "pages", lambda: [path])
    assert any(told in words for words in figures.differences())


def test_a_marked_table_is_written_anew_and_nothing_else_is():
    page = "Before.\n\n<!-- figures: tau-gold -->\n| a |\n|---|\n| 1 |\n\nAfter, | no table |.\n"
    made = figures.written(page)
    assert made == f"Before.\n\n<!-- figures: tau-gold -->\n{figures.TABLES['tau-gold']()}\n\nAfter, | no table |.\n"
    assert figures.written(made) == made


def test_an_interval_holds_the_mean_and_is_a_point_where_nothing_varies():
    tasks = [[0.0, 50.0, 100.0], [100.0, 100.0, 40.0]]
    low, high = interval(tasks)
    assert low < mean_of_means(tasks) < high
    assert interval([[70.0, 70.0], [50.0]]) == (60.0, 60.0)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_every_record_says_when_where_and_how_it_was_made(path):
    facts = provenance(path.stem)
    assert facts.keys() == {"command", "date", "commit", "machine", "seeds", "sample"}
    assert all(isinstance(value, str) and value for value in facts.values())
    assert facts["command"].startswith(("constrained bench ", "constrained train "))
    assert json.loads(path.read_text(encoding="utf-8"))
