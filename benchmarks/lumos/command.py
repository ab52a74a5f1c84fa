"""Train Lumos's planner and grounder, small and from nothing, beside other ways (Lumos, Tables 2b, 2c, 4 and 1).

    constrained bench lumos

One base model learns problems and questions with their solutions; each way of training continues from it, with models
of one size, on the same tasks, read equally often. They play tasks that are held out, with and without masks: SVAMP and
HotpotQA, which nothing is trained on, and parts of GSM8K and StrategyQA. Everything is kept in a folder of `--output`
named by the recipe; an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.lumos.recipe import DOMAINS, PUBLISHED, QUICK, SUITES, VARIANTS, Recipe
from benchmarks.reporting import add_json, markdown, report
from constrained import __version__
from constrained.agents.metrics import summarise
from constrained.environments.suite import Suite
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

PROBLEMS = 60
"""Tasks that are played of each data set by default."""

BATCH = 32
"""Tasks played side by side."""

OPTIONS = {
    "hidden": "width of every model", "layers": "layers of every model", "heads": "attention heads of every model",
    "inner": "width of the layers' inner part", "entries": "entries of the vocabulary", "context": "tokens of context",
    "characters": "longest of GSM8K's problems that is used", "calculations": "most calculations of one that is used",
    "rows": "only the first training problems of GSM8K", "questions": "only the first questions of StrategyQA",
    "base_epochs": "epochs of the base model",
    "epochs": "epochs of each model trained from it", "base_rate": "peak learning rate of the base model",
    "rate": "peak learning rate of the others", "batch": "texts in a step", "seed": "of training and play",
}  # fmt: skip
"""What each field of a `Recipe` is, for --help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="very small, to try it in a few minutes")
    add("--problems", type=int, metavar="N", help=f"tasks to play of each data set (default: {PROBLEMS}; with "
        "--quick 2)")  # fmt: skip
    add("--way", action="append", choices=[variant.name for variant in VARIANTS], help="only this way of training; "
        "repeatable (default: all)")  # fmt: skip
    for part in fields(Recipe):
        words = f"{OPTIONS[part.name]} (default: {part.default:g})"
        add(f"--{part.name.replace('_', '-')}", type=type(part.default), metavar="N", help=words)
    add("--output", type=Path, default=Path("runs/lumos"), help="folder of the runs (default: runs/lumos)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    from benchmarks.lumos.dataset import played
    from benchmarks.lumos.models import models_by_role, prepare, run_folder, train_all

    settings = {p.name: getattr(options, p.name) for p in fields(Recipe) if getattr(options, p.name) is not None}
    recipe = replace(QUICK if options.quick else Recipe(), **settings)
    folder = run_folder(recipe, options.output)
    model, dataset = prepare(recipe, folder)
    variants = [variant for variant in VARIANTS if not options.way or variant.name in options.way]
    made = {}
    for name, tuned in train_all(recipe, folder, model, dataset, variants):
        print(f"{name}: {tuned.tokens:,} tokens in {tuned.seconds:.0f} s, loss {tuned.loss:.3f}", flush=True)
        made[name] = {k: v for k, v in asdict(tuned).items() if k != "folder"}
    limit = options.problems or (2 if options.quick else PROBLEMS)
    suites = {name: played(name, limit) for name in dict.fromkeys(s for v in variants for s in v.suites)}
    rows = [
        {"variant": variant.name, "suite": suite, "masks": masks}
        | play(variant.asked, suites[suite], masks, roles, recipe.seed, folder)
        for variant in variants
        for roles in [models_by_role(variant, folder)]
        for suite in variant.suites
        for masks in (True, False)
    ]
    data = {"version": __version__, "recipe": asdict(recipe), "parameters": model.parameters, "texts": dataset.facts,
            "models": made, "rows": rows}  # fmt: skip
    shown = [domain for domain in DOMAINS if any(domain in variant.domains for variant in variants)]
    return report("\n\n".join(table(rows, domain) for domain in shown), data, options)


def play(way: str, suite: Suite, masks: bool, models: dict[str, LoadedModel], seed: int, folder: Path) -> dict:
    """Play a suite with models that are asked in this way; returns the metrics."""
    from benchmarks.lumos.dataset import suite_and_settings
    from constrained.agents.suite_runner import header, label, play_all

    suite, settings = suite_and_settings(way, suite, masks, seed)
    knowledge = ActionKnowledge.from_lark(suite.knowledge)
    path = folder / f"{label(header(suite, knowledge, models, settings))}.jsonl"
    words = f"{suite.name}, {models['policy'].name}, masks {'on' if masks else 'off'}"
    return summarise(play_all(suite, knowledge, models, settings, path, batch=BATCH, words=words), suite.measures)


def table(rows: list[dict], domain: str) -> str:
    """Accuracy of each way of training of a domain as Markdown; rows have "variant", "suite", "masks" and metrics."""
    result = {(row["variant"], row["suite"], row["masks"]): row for row in rows}
    head = ["training"]
    for suite in DOMAINS[domain]:
        tasks = next(row["tasks"] for key, row in result.items() if key[1] == suite)
        head += [f"{SUITES[suite]} ({tasks}), masks on", "masks off", "wrong, masks off", f"*{SUITES[suite]}, paper*"]
    lines = []
    for variant in VARIANTS:
        if domain not in variant.domains or (variant.name, DOMAINS[domain][0], True) not in result:
            continue
        line = [variant.name]
        for suite in DOMAINS[domain]:
            on, off = (result[variant.name, suite, masks] for masks in (True, False))
            published = PUBLISHED.get((variant.paper, SUITES[suite]))
            wrong = off["invalid %"] + off["misordered %"]
            line += [_percent(on["success %"]), _percent(off["success %"]), _percent(wrong)]
            line.append("–" if published is None else f"*{_percent(published)}*")
        lines.append(line)
    return markdown(head, lines, left=None)


def _percent(value: float) -> str:
    return f"{value:.1f} %"
