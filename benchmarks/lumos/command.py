"""Train Lumos's planner and grounder for mathematics, small and from nothing, beside other ways (Lumos, Table 2b).

    constrained bench lumos

One base model learns the problems with their solutions; each way of training continues from it, with models of one
size, on the same problems, read equally often. They play the held-out problems, with and without masks. Everything is
kept in a folder of `--output` named by the recipe; an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.lumos.recipe import PAPER_MODEL, QUICK, VARIANTS, Recipe
from benchmarks.papers import LUMOS_TABLE_2B
from benchmarks.reporting import add_json, markdown, report
from constrained import __version__
from constrained.agents.metrics import summarise
from constrained.environments.suite import Suite, open_suite
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

PROBLEMS = 150
"""Held-out problems that are played of each data set by default."""

BATCH = 32
"""Problems played side by side."""

SUITES = {"svamp": "SVAMP", "gsm8k": "GSM8K"}
"""Our name of a data set, and the papers'."""

OPTIONS = {
    "hidden": "width of every model", "layers": "layers of every model", "heads": "attention heads of every model",
    "inner": "width of the layers' inner part", "entries": "entries of the vocabulary", "context": "tokens of context",
    "copies": "copies of each of SVAMP's training problems, with other numbers",
    "characters": "longest of GSM8K's problems that is used", "calculations": "most calculations of one that is used",
    "rows": "only the first training problems of each data set", "base_epochs": "epochs of the base model",
    "epochs": "epochs of each model trained from it", "base_rate": "peak learning rate of the base model",
    "rate": "peak learning rate of the others", "batch": "texts in a step", "seed": "of training and play",
}  # fmt: skip
"""What each field of a `Recipe` is, for --help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="very small, to try it in a minute or two")
    add("--problems", type=int, metavar="N", help=f"held-out problems to play of each data set (default: {PROBLEMS}; "
        "with --quick 3)")  # fmt: skip
    for part in fields(Recipe):
        kind = int if part.name == "rows" else type(part.default)
        words = f"{OPTIONS[part.name]} (default: {'all' if part.default is None else f'{part.default:g}'})"
        add(f"--{part.name.replace('_', '-')}", type=kind, metavar="N", help=words)
    add("--output", type=Path, default=Path("runs/lumos"), help="folder of the runs (default: runs/lumos)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    from benchmarks.lumos.models import models_by_role, prepare, run_folder, train_all

    given = {p.name: getattr(options, p.name) for p in fields(Recipe) if getattr(options, p.name) is not None}
    recipe = replace(QUICK if options.quick else Recipe(), **given)
    folder = run_folder(recipe, options.output)
    model, dataset = prepare(recipe, folder)
    made = {}
    for name, tuned in train_all(recipe, folder, model, dataset):
        print(f"{name}: {tuned.tokens:,} tokens in {tuned.seconds:.0f} s, loss {tuned.loss:.3f}", flush=True)
        made[name] = {k: v for k, v in asdict(tuned).items() if k != "folder"}
    limit = options.problems or (3 if options.quick else PROBLEMS)
    suites = [open_suite(name, split="held_out", limit=limit) for name in SUITES]
    rows = [
        {"variant": variant.name, "suite": suite.name, "masks": masks}
        | play(variant.asked, suite, masks, roles, recipe.seed, folder)
        for variant in VARIANTS
        for roles in [models_by_role(variant, folder)]
        for suite in suites
        for masks in (True, False)
    ]
    data = {"version": __version__, "recipe": asdict(recipe), "parameters": model.parameters, "texts": dataset.facts,
            "models": made, "rows": rows}  # fmt: skip
    return report(table(rows), data, options)


def play(way: str, suite: Suite, masks: bool, models: dict[str, LoadedModel], seed: int, folder: Path) -> dict:
    """Play a suite with models that are asked in this way; returns the metrics."""
    from benchmarks.lumos.dataset import suite_and_settings
    from constrained.agents.suite_runner import header, label, play_all

    suite, settings = suite_and_settings(way, suite, masks, seed)
    knowledge = ActionKnowledge.from_lark(suite.knowledge)
    path = folder / f"{label(header(suite, knowledge, models, settings))}.jsonl"
    words = f"{suite.name}, {models['policy'].name}, masks {'on' if masks else 'off'}"
    return summarise(play_all(suite, knowledge, models, settings, path, batch=BATCH, words=words), suite.measures)


def table(rows: list[dict]) -> str:
    """Accuracy of each way of training as Markdown; rows have "variant", "suite", "masks" and the metrics."""
    found = {(row["variant"], row["suite"].partition("/")[0], row["masks"]): row for row in rows}
    head = ["training"]
    for suite in SUITES:
        tasks = next(row["tasks"] for key, row in found.items() if key[1] == suite)
        head += [f"{SUITES[suite]} ({tasks}), masks on", "masks off", "invalid, masks off", f"*{SUITES[suite]}, paper*"]
    lines = []
    for variant in VARIANTS:
        line = [variant.name]
        for suite, column in SUITES.items():
            on, off = (found[variant.name, suite, masks] for masks in (True, False))
            published = LUMOS_TABLE_2B[variant.paper, PAPER_MODEL][column]
            line += [_percent(on["success %"]), _percent(off["success %"]), _percent(off["invalid %"])]
            line.append(f"*{published:.1f} %*")
        lines.append(line)
    invalid = max(row["invalid %"] + row["misordered %"] for row in rows if row["masks"])
    return "\n".join(
        [
            markdown(head, lines, left=None),
            f"\nWith masks on, invalid or misordered actions are at most {invalid:.2f} % in any row.",
            "*In italics*: Lumos, Table 2b, Llama-2-7B tuned on the paper's annotations, whole test sets.",
        ]
    )


def _percent(value: float) -> str:
    return f"{value:.1f} %"
