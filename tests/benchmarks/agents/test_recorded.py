"""The recorded results: what the documentation shows is what was recorded, and it gets no worse."""

import json

import pytest

from benchmarks.agents.published import published
from benchmarks.agents.report import ANY, table
from benchmarks.result_files import DOCS, RESULTS

PAGE = (DOCS / "agents_figures.md").read_text(encoding="utf-8")
ALFWORLD, HOUSEHOLD = (
    json.loads((RESULTS / f"agents_{name}.json").read_text(encoding="utf-8"))
    for name in ("alfworld_valid_seen", "household")
)
LEAST = {("act", "state"): 92, ("react", "state"): 94, ("act", "goal"): 100, ("react", "goal"): 100, (ANY, "goal"): 96}
"""Percent of ALFWorld's seen games that are won, by strategy and level; it may only rise."""


@pytest.mark.parametrize("recorded", [ALFWORLD, HOUSEHOLD], ids=["alfworld", "household"])
def test_the_page_shows_what_was_recorded(recorded):
    ours, *_ = table(recorded["rows"], ("success",)).split("\n\n")
    assert ours in PAGE


def test_published_figures_stand_in_a_table_of_their_own():
    _, theirs, *_ = table(ALFWORLD["rows"], ("success",), published("alfworld/valid_seen")).split("\n\n")
    assert theirs in PAGE and "| KnowAgent | Llama-2-70b |" in theirs


def test_from_state_on_nothing_is_wrong():
    for row in ALFWORLD["rows"] + HOUSEHOLD["rows"]:
        assert row["level"] in ("off", "form") or row["invalid %"] == row["misordered %"] == 0


def test_success_gets_no_worse():
    for (strategy, level), least in LEAST.items():
        [row] = [row for row in ALFWORLD["rows"] if (row["strategy"], row["level"]) == (strategy, level)]
        assert row["success %"] >= least


def test_every_level_has_a_row_in_which_the_choice_is_random():
    rows = [row for row in ALFWORLD["rows"] if row["strategy"] == ANY]
    assert [row["level"] for row in rows] == ["form", "state", "goal-sound", "goal"]
    assert all(len(row["by seed"]) == row["seeds"] for row in rows)
