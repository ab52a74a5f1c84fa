"""Train Lumos's planner and grounder for mathematics, small and from nothing, beside other ways (Lumos, Table 2b).

    constrained bench lumos

One base model learns the problems with their solutions; from it each way of training makes its models, all of one
size, on the same problems, read equally often. They play the problems held out, with masks and without. All is kept in
a folder of `--output` that the recipe names: what was broken off goes on where it was.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from benchmarks.lumos.recipe import QUICK, VARIANTS, Recipe
from benchmarks.lumos.report import SUITES, table
from constrained import __version__
from constrained.agents.metrics import summarise
from constrained.agents.run_file import RunFile
from constrained.environments.suite import Suite, open_suite
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import: only who trains pays for it
    from constrained.models import LoadedModel

PROBLEMS = 150
"""Held-out problems that are played of each data set by default."""

BATCH = 32
"""Problems played side by side."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench lumos`."""
    parser.add_argument("--quick", action="store_true", help="very small, to see it run through in a minute or two")
    parser.add_argument(
        "--problems",
        type=int,
        default=None,
        metavar="N",
        help=f"held-out problems to play of each data set (default: {PROBLEMS}; with --quick 3)",
    )
    for part in fields(Recipe):
        kind = int if part.name == "rows" else type(part.default)
        parser.add_argument(
            f"--{part.name.replace('_', '-')}",
            type=kind,
            metavar="N",
            help="of the recipe" if part.default is None else f"default: {part.default:g}",
        )
    parser.add_argument(
        "--output", type=Path, default=Path("runs/lumos"), help="folder of the runs (default: runs/lumos)"
    )
    parser.add_argument("--json", type=Path, help="write the figures as JSON to this file")


def run_command(options: argparse.Namespace) -> int:
    """Train, play, print the table, write the JSON."""
    from benchmarks.lumos.models import folder_of, of_roles, prepared, trained

    given = {p.name: getattr(options, p.name) for p in fields(Recipe) if getattr(options, p.name) is not None}
    recipe = replace(QUICK if options.quick else Recipe(), **given)
    folder = folder_of(recipe, options.output)
    model, texts = prepared(recipe, folder)
    made = {}
    for name, tuned in trained(recipe, folder, model, texts):
        print(f"{name}: {tuned.tokens:,} tokens in {tuned.seconds:.0f} s, loss {tuned.loss:.3f}", flush=True)
        made[name] = {k: v for k, v in asdict(tuned).items() if k != "folder"}
    limit = options.problems or (3 if options.quick else PROBLEMS)
    suites = [open_suite(name, split="held_out", limit=limit) for name in SUITES]
    rows = [
        {"variant": variant.name, "suite": suite.name, "masks": masks}
        | play(variant.asked, suite, masks, roles, recipe.seed, folder)
        for variant in VARIANTS
        for roles in [of_roles(variant, folder)]
        for suite in suites
        for masks in (True, False)
    ]
    print(table(rows))
    if options.json:
        data = {
            "version": __version__,
            "recipe": asdict(recipe),
            "parameters": model.parameters,
            "texts": texts.facts,
            "models": made,
            "rows": rows,
        }
        write_whole(options.json, to_json(data))
    return 0


def play(way: str, suite: Suite, masks: bool, models: dict[str, LoadedModel], seed: int, folder: Path) -> dict:
    """Play a suite with models that are asked in this way; what came of it."""
    from benchmarks.lumos.texts import played
    from constrained.agents.suite_runner import header, label, play_suite

    suite, settings = played(way, suite, masks, seed)
    knowledge = ActionKnowledge.from_lark(suite.knowledge)
    head = header(suite, knowledge, models, settings)
    words = f"{suite.name}, {models['policy'].name}, masks {'on' if masks else 'off'}"
    records = []
    with RunFile(folder / f"{label(head)}.jsonl", head) as file, tqdm(total=len(suite.tasks), desc=words) as bar:
        for task, end in play_suite(suite, knowledge, models, settings, file, BATCH):
            records.append({"name": task.name, "kind": task.kind, **end})
            bar.set_postfix_str(f"{sum(r['success'] for r in records)} right")
            bar.update()
    return summarise(records, suite.measures)
