"""A general model in the worlds of `examples/worlds`: goals reached, by strategy, worked examples, prompt and masks.

    constrained bench example-worlds --model smollm2 --json benchmarks/results/example_worlds.json

Each row plays the same tasks, four a world, ten steps each, greedily. The prompt was written on two other worlds. How
many examples it shows, and where it tells the scene, was chosen on those, hotel, library and workshop. Bakery and
clinic were written afterwards, and nothing was chosen on them.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.reporting import add_json, describe_machine, markdown, report, write_json
from benchmarks.result_files import finished_rows
from constrained import __version__, generate_plan
from constrained.cli.options import add_model

WORLDS = Path(__file__).parents[1] / "examples" / "worlds"

TASKS = {
    "hotel": ("book r303 for alice", "confirm r202 to bob", "sell r303 to carol", "give bob the key of r202"),
    "library": ("bring dracula to the desk", "lend ulysses to anna", "get emma back from dora",
                "return ulysses to shelf 2"),
    "workshop": ("pick up the lever", "take the tyre off the red bike", "fit a new chain to the blue bike",
                 "repair the red bike"),
    "bakery": ("let the dough of brioche rise", "bake baguette", "pack rye bread", "sell brioche to zoe"),
    "clinic": ("have ivan seen by dr silva", "measure the fever of lena", "get a prescription for nora",
               "admit lena to ward 2"),
}  # fmt: skip

STEPS = 10
"""Most steps of a task; the longest needs eight."""

ROWS: dict[str, dict[str, Any]] = {
    "act": {"strategy": "act"},
    "act, no example": {"strategy": "act", "demonstrations": 0},
    "act, one example": {"strategy": "act", "demonstrations": 1},
    "act, knowledge not in the prompt": {"strategy": "act", "knowledge_in_prompt": False},
    "act, masks off": {"strategy": "act", "constrained": False},
    "act, level form": {"strategy": "act", "level": "form"},
    "react": {"strategy": "react"},
    "knowagent": {"strategy": "knowagent"},
    "any admitted action": {"strategy": "act", "model": "random", "seeds": 10},
}
"""Row -> the options of `generate_plan` that make it, and the number of seeds, of which the mean is shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    words = "repeatable; default: all"
    parser.add_argument("--row", action="append", choices=tuple(ROWS), help=f"{'; '.join(ROWS)}. {words}")
    add_json(parser)
    parser.add_argument("--anew", action="store_true", help="play rows again that the file holds already")


def run_command(options: argparse.Namespace) -> int:
    from constrained.models import load

    model = load(options.model or "smollm2", device=options.device)
    facts = {
        "version": __version__, "model": model.name, "runs": type(model).__name__, "steps": STEPS,
        "tasks": {world: list(tasks) for world, tasks in TASKS.items()},
    }  # fmt: skip
    rows: dict[str, Any] = {} if options.anew else dict(finished_rows(options.json, facts))
    figures = {**facts, "date": time.strftime("%Y-%m-%d"), "machine": describe_machine(), "rows": rows}
    for name in options.row or ROWS:
        if name not in rows:
            rows[name] = play(name, {"model": model, **ROWS[name]})
            write_json(figures, options)
    return report(table({name: rows[name] for name in ROWS if name in rows}), figures, options)


def play(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Play every task; the figures of one row."""
    seeds = options.get("seeds", 1)
    options = {key: value for key, value in options.items() if key != "seeds"}
    reached: dict[str, list[bool]] = {}
    wrong = steps = tokens = 0
    began = time.monotonic()
    for world, tasks in tqdm(TASKS.items(), desc=name, unit="world", disable=None, leave=False):
        for task, seed in itertools.product(tasks, range(seeds)):
            plan = generate_plan(task, str(WORLDS / f"{world}.lark"), max_steps=STEPS, seed=seed, **options)
            reached.setdefault(world, []).append(bool(plan.success))
            wrong += plan.invalid + plan.misordered
            steps += len(plan.steps)
            tokens += int(plan.usage["completion_tokens"])
    seconds = time.monotonic() - began
    return {
        "seeds": seeds,
        "reached": reached,
        "steps": steps,
        "wrong": wrong,
        "tokens": tokens,
        "seconds": round(seconds, 1),
    }


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The rows as Markdown."""
    head = ["", *TASKS, "all", "impossible actions", "tokens a step", "s a step"]
    return markdown(head, [[name, *cells(row)] for name, row in rows.items()])


def cells(row: Mapping[str, Any]) -> list[str]:
    """One row's cells: goals reached in each world and in all, the share of impossible actions, the cost of a step."""
    by_world = {world: sum(row["reached"].get(world, ())) / row["seeds"] for world in TASKS}
    return [
        *(f"{won:.3g} of {len(TASKS[world])}" for world, won in by_world.items()),
        f"{sum(by_world.values()):.3g} of {sum(map(len, TASKS.values()))}",
        f"{row['wrong'] / row['steps']:.0%}",
        f"{row['tokens'] / row['steps']:.0f}",
        f"{row['seconds'] / row['steps']:.1f}",
    ]
