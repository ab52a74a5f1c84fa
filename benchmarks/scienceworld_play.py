"""Play ScienceWorld's test variations: a small model and random choice, with masks and without, beside the papers.

    constrained bench scienceworld-play --variations 3 --seed 3 --without benchmarks/results/scienceworld_play.json \
        --without benchmarks/results/scienceworld_play_seed_1.json \
        --without benchmarks/results/scienceworld_play_seed_2.json \
        --json benchmarks/results/scienceworld_play_seed_3.json

The score is the simulator's, 0 to 100, and 0 where a wrong `focus` failed the task. It is noted after each action: what
was reached within WESE's 50 steps and within the package's 100 is read from the same episode. Variations are drawn from
each task's test split by the seed. Random choice draws each next byte evenly among those that the masks allow. The
small model is a network that chooses whole actions: without masks any thing in view may stand in any place of one.

An interrupted run is resumed: episodes that the JSON file holds are not played again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Container
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.papers import WESE_TABLE_2
from benchmarks.reporting import add_json, describe_machine, markdown, note_record
from benchmarks.result_files import finished_rows
from benchmarks.scienceworld import draw
from constrained import ActionKnowledge, __version__
from constrained.agents.settings import Settings
from constrained.decoding.choosers import Chooser
from constrained.environments.base import Binding
from constrained.environments.data import read_json
from constrained.environments.scienceworld import ScienceWorldEnv
from constrained.environments.scienceworld.simulator import borrow, give_back
from constrained.environments.suite import Task
from constrained.errors import GameError
from constrained.files import to_json, write_whole

MAX_STEPS = 100
"""The package's own limit."""

LIMITS = (50, MAX_STEPS)

PLAYERS = ("masks", "no masks", "random")

COUNTED = ("invalid", "no effect")
"""What is counted of the actions, beside their number."""


KEPT = ("FREE", "OTHER", "WAIT", "NUMBER")
"""Slots that hold no things."""


class Scored(ScienceWorldEnv):
    """A task that notes its score after each action; without masks, each slot takes any thing in view."""

    def __init__(self, name: str, variation: int, scores: list[float], masks: bool = True):
        super().__init__(name, variation)
        self._scores, self._masks = scores, masks

    def view(self) -> dict[str, Binding]:
        view = super().view()
        if self._masks or view["NUMBER"]:
            return view
        things = sorted({*view["THING"], *view["TERMINAL"]})
        return {slot: view[slot] if slot in KEPT else things for slot in view}

    def step(self, action: str) -> tuple[str, float, bool]:
        result = super().step(action)
        self._scores.append(self.score)
        return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="scienceworld", help="who plays where it isn't random (default: scienceworld)"
    )
    parser.add_argument("--player", action="append", choices=PLAYERS, help="only this one; repeatable (default: all)")
    parser.add_argument("--task", action="append", help="only this one; repeatable (default: all 30)")
    parser.add_argument("--variations", type=int, default=3, help="of each task's test split (default: 3)")
    parser.add_argument("--split", choices=("test", "dev"), default="test", help="default: test")
    parser.add_argument("--seed", type=int, default=0, help="of the variations and of random choice (default: 0)")
    parser.add_argument("--limit", type=int, help="play only so many episodes, and go on next time")
    words = "leave out the variations that this file of figures holds; repeatable"
    parser.add_argument("--without", type=Path, action="append", default=[], metavar="FILE", help=words)
    add_json(parser)
    parser.add_argument("--anew", action="store_true", help="play episodes again that the file holds already")


def run_command(options: argparse.Namespace) -> int:
    facts = {"version": __version__, "split": options.split, "seed": options.seed, "model": str(options.model)}
    rows = finished_rows(None if options.anew else options.json, facts)
    held = {(row["task"], row["variation"], row["player"]) for row in rows}
    players = options.player or list(PLAYERS)
    left_out = {(row["task"], row["variation"]) for file in options.without for row in read_json(file)["rows"]}
    tasks = chosen(options.task, options.split, options.variations, options.seed, left_out)
    todo = [(*task, player) for task in tasks for player in players if (*task, player) not in held][: options.limit]
    knowledge = ActionKnowledge.from_lark("scienceworld")
    from constrained.models import load_roles  # torch takes seconds to import

    model = load_roles(options.model)["policy"] if any(player != "random" for *_, player in todo) else None
    with tqdm(todo, unit="episode", disable=None) as bar:
        for name, variation, player in bar:
            bar.set_description(f"{name}, {player}")
            scores: list[float] = []
            if player == "random":
                counted = play_randomly(knowledge, name, variation, scores, options.seed)
            else:
                counted = play_with(model, knowledge, name, variation, scores, player == "masks")
            rows.append({"task": name, "variation": variation, "player": player, **counted, "scores": changes(scores)})
            if options.json:
                write_whole(options.json, to_json({**facts, "machine": describe_machine(), "rows": rows}))
    if options.json:
        note_record(options.json)
    print(table(rows))
    return 0


def chosen(
    tasks: list[str] | None, split: str, number: int, seed: int, left_out: Container[tuple[str, int]] = ()
) -> list[tuple[str, int]]:
    """Draw `number` variations of each task, except those left out; the first of all tasks come first."""
    simulator = borrow()
    try:
        drawn = {}
        for name in tasks or simulator.tasks:
            numbers = simulator.variations(name, split)
            random.Random(f"{seed} {name}").shuffle(numbers)
            drawn[name] = [one for one in numbers if (name, one) not in left_out]
    finally:
        give_back(simulator)
    return [(name, numbers[i]) for i in range(number) for name, numbers in drawn.items() if i < len(numbers)]


def play_with(
    model: Any, knowledge: ActionKnowledge, name: str, variation: int, scores: list[float], masks: bool
) -> dict:
    """Let a model play, greedily; return the counts of its actions."""
    chooses = isinstance(model, Chooser)
    task = Task(f"{name}/{variation}", name, partial(Scored, name, variation, scores, masks or not chooses))
    settings = Settings("act", "act", masks or chooses, MAX_STEPS)
    from constrained.agents.suite_runner import play  # the same

    (end,) = [line["end"] for line in play([task], knowledge, {"policy": model}, settings) if "end" in line]
    if "failure" in end:
        raise GameError(f"{task.name}: {end['failure']}")
    return {key: end[key] for key in ("actions", *COUNTED)}


def play_randomly(knowledge: ActionKnowledge, name: str, variation: int, scores: list[float], seed: int) -> dict:
    """Draw actions under the masks; return their counts."""
    rng, environment, without = random.Random(f"{seed} {name} {variation}"), Scored(name, variation, scores), 0
    environment.reset()
    while len(scores) < MAX_STEPS and not environment.done:
        environment.step(draw(knowledge.bind_view(environment.view()).next_action().begin, rng))
        without += not environment.had_effect
    environment.close()
    return {"actions": len(scores), "invalid": 0, "no effect": without}


def changes(scores: list[float]) -> list[tuple[int, float]]:
    """(step, score from it on) where the score changes."""
    before = 0.0
    result = []
    for n, score in enumerate(scores, 1):
        if score != before:
            result.append((n, score))
            before = score
    return result


def points(row: dict, limit: int = MAX_STEPS) -> float:
    """The score, 0 to 100, after `limit` steps."""
    reached = [score for n, score in row["scores"] if n <= limit]
    return 100 * max(0.0, reached[-1]) if reached else 0.0


def table(rows: list[dict]) -> str:
    """The scores by task, their means, and the published figures."""
    players = [player for player in PLAYERS if any(row["player"] == player for row in rows)]
    groups: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["player"]), []).append(row)
    tasks = sorted({row["task"] for row in rows})

    def mean(task: str, player: str, limit: int) -> float | None:
        group = groups.get((task, player))
        return sum(points(row, limit) for row in group) / len(group) if group else None

    # The mean of a column is over tasks, not over episodes, so that all tasks have the same weight.
    head = ["task", *(f"{player}, {limit} steps" for player in players for limit in LIMITS)]
    columns = [(player, limit) for player in players for limit in LIMITS]
    cells = [[mean(task, *column) for column in columns] for task in tasks]
    means = [
        sum(result) / len(result) if (result := [value for value in column if value is not None]) else None
        for column in zip(*cells)
    ]
    shown = [
        [name, *("–" if value is None else f"{value:.1f}" for value in line)]
        for name, line in [*zip(tasks, cells), (f"**{len(tasks)} tasks**", means)]
    ]
    lines = [markdown(head, shown), ""]
    lines += [
        markdown(
            ["", "episodes", "solved", "failed by a wrong focus", "invalid actions", "without effect"],
            [_counts(player, [row for row in rows if row["player"] == player]) for player in players],
        ),
        "",
        markdown(
            ["WESE, Table 2 (text-davinci-003, 8 task types, 296 tasks, 50 steps)", "average reward"],
            [[" + ".join(method), f"{figures['reward']:.2f}"] for method, figures in WESE_TABLE_2.items()],
        ),
    ]
    return "\n".join(lines)


def _counts(player: str, rows: list[dict]) -> list[str]:
    actions = sum(row["actions"] for row in rows)
    solved = sum(points(row) == 100 for row in rows)
    failed = sum(bool(row["scores"]) and row["scores"][-1][1] < 0 for row in rows)
    shares = [f"{count / len(rows):.0%}" for count in (solved, failed)]
    return [player, str(len(rows)), *shares, *(f"{sum(r[key] for r in rows) / actions:.1%}" for key in COUNTED)]
