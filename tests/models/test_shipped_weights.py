"""The weights that ship reach what is published of them, at the level `state`, on a few of the published tasks.

Each plays anew: a change of the code that costs a model its skill fails here. A random choice at `state` wins hardly a
household game, and scores below 20 in ScienceWorld.
"""

import json

import pytest

from benchmarks.scienceworld_play import play_with, points
from constrained import ActionKnowledge
from constrained.cli import main
from constrained.models import load_roles
from tests.data import shared
from tests.environments.scienceworld.present import needs_scienceworld


def row_of(folder, *command: str) -> dict:
    """The only row of a benchmark's figures."""
    file = folder / "figures.json"
    assert main(["bench", *command, "--output", str(folder), "--json", str(file)]) == 0
    [row] = json.loads(file.read_text())["rows"]
    return row


@pytest.mark.parametrize(
    "tasks, least", [("alfworld/valid_seen:12", 10), ("household:0-10", 6)], ids=["published games", "generated rooms"]
)
def test_the_embedded_model_wins_households_at_the_default_level(tmp_path, tasks, least):
    """Published: 94.3 % of ALFWorld's seen games, 71.7 % of 60 generated rooms."""
    if tasks.startswith("alfworld"):
        shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    row = row_of(tmp_path, "agents", "--environment", tasks, "--strategy", "react", "--level", "state", "--random", "0")
    assert row["won"] >= least and row["tasks"] <= 12
    assert row["invalid %"] == row["misordered %"] == 0


def test_the_scienceworld_model_solves_what_it_solved_when_it_was_measured():
    needs_scienceworld()
    model, knowledge = load_roles("scienceworld")["policy"], ActionKnowledge.from_lark("scienceworld")
    reached = []
    for task, variation in (
        ("chemistry-mix-paint-secondary-color", 27), ("find-animal", 243), ("find-non-living-thing", 238),
        ("lifespan-longest-lived-then-shortest-lived", 106), ("use-thermometer", 512),
    ):  # fmt: skip
        scores: list[float] = []
        assert play_with(model, knowledge, task, variation, scores, masks=True)["invalid"] == 0
        reached.append(points({"scores": list(enumerate(scores, 1))}))
    assert sum(reached) / len(reached) >= 80  # 100 when it was measured


def test_the_chooser_solves_planbenchs_problems_with_shortest_plans(tmp_path):
    """Published: all of blocksworld and of the depots, each plan as short as can be."""
    shared("planbench/instances.tar.xz")
    command = ["--domain", "blocksworld", "--limit", "4", "--model", "chooser", "--level", "state"]
    file = tmp_path / "figures.json"
    assert main(["bench", "planbench", *command, "--output", str(tmp_path), "--json", str(file)]) == 0
    for row in json.loads(file.read_text())["rows"]:
        assert row["solved"] == row["instances"] == 4 and row["impossible"] == 0
        assert row["times the optimum"] <= 1.1
