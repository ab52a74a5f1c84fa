"""Self-learning with parts of it left out, round by round, and what of KnowAgent's tables and figures that answers.

    constrained bench self-learning --variant full --variant no-knowledge --plot rounds.svg

Each variant is what `constrained train self-learning` runs, in a folder of its own below `--output`: one that was
killed goes on where it was, and one that is finished is only read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import plot_style
from benchmarks.engine.machine import describe
from benchmarks.self_learning.compare import tables
from benchmarks.self_learning.plot import draw
from benchmarks.self_learning.rounds import rounds_table
from benchmarks.self_learning.variants import VARIANTS, Variant
from constrained import __version__
from constrained.agents.episode import Settings
from constrained.cli.self_learning import round_line, see_apart
from constrained.cli.tuning import add_tuning, own_device, tuning_of
from constrained.environments.suite import Suite, choose_suite
from constrained.files import to_json, write_whole
from constrained.training.settings import Tuning

DEFAULT = ("full", "no-masks", "no-knowledge")
TRAIN = "alfworld/practice:126"
"""21 games of each kind, drawn as the paper draws its 85 (appendix A): with two samples of each, a quarter of its time."""
SAMPLES = 2
TESTS = ("alfworld/held_out:72", "alfworld/valid_seen")
"""The first, 12 training games of each kind that nobody learned from, tells which round is best."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench self-learning`."""
    add = parser.add_argument
    add("--variant", action="append", choices=tuple(VARIANTS), help=f"repeatable; default: {', '.join(DEFAULT)}")
    add("--rounds", type=int, default=4, help="of each (default: 4, as many as the paper's Figure 4 shows); "
        "with the defaults a round took three to ten minutes on one core, the busier the longer")  # fmt: skip
    add("--train", default=TRAIN, metavar="TASKS", help=f"household games to learn from (default: {TRAIN})")
    add("--test", action="append", metavar="TASKS", help=f"repeatable; default: {', '.join(TESTS)}")
    add("--model", help="instead of the embedded model: folder, GGUF file or hub name")
    add("--device", help="cpu, cuda, cuda:1 ... (default: the GPU if there is one)")
    add("--temperature", type=float, default=1.0, help="of training play; tests are greedy (default: 1)")
    add("--samples", type=int, default=SAMPLES, help=f"trajectories of each game in a round (default: {SAMPLES})")
    add("--play-batch", type=int, default=32, help="games played side by side (default: 32)")
    add("--output", type=Path, default=Path("runs/self-learning"), help="default: runs/self-learning")
    add("--json", type=Path, help="write all reports to this file")
    add("--plot", type=Path, metavar="FILE", help="draw the rounds: .svg, .png or .pdf")
    add_tuning(parser)
    parser.set_defaults(preset="small")


def run_command(options: argparse.Namespace) -> int:
    """Run the variants, print the tables, write the JSON and the picture."""
    if options.plot:
        plot_style.check(options.plot)
    tuning = tuning_of(options)
    train = choose_suite(options.train, tuning.seed)
    tests = [choose_suite(text, tuning.seed) for text in options.test or TESTS]
    see_apart(train, tests)
    runs = []
    for name in dict.fromkeys(options.variant or DEFAULT):
        variant = VARIANTS[name]
        rounds = learn(variant, train, tests, tuning, options)
        runs.append({**asdict(variant), "model": model_name(variant, options.model), "rounds": rounds})
    print("\n\n".join(part for part in (rounds_table(runs), tables(runs)) if part))
    result = {
        "version": __version__, "machine": describe(), "train": train.name, "temperature": options.temperature,
        "samples": options.samples, "tuning": asdict(tuning), "runs": runs,
    }  # fmt: skip
    if options.json:
        write_whole(options.json, to_json(result))
    if options.plot:
        draw(result, options.plot)
    return 0


def learn(
    variant: Variant, train: Suite, tests: Sequence[Suite], tuning: Tuning, options: argparse.Namespace
) -> list[dict]:
    """The reports of one variant's rounds; the tuning's seed is the games' and the play's, too."""
    from benchmarks.self_learning.small_start import make_small_start
    from constrained.training.self_learning import Schedule, self_learning

    model = make_small_start(options.output / "small-start-base") if variant.base == "small" else options.model

    def told(report: dict) -> None:
        for line in round_line(report).splitlines():
            print(f"{variant.name}, {line}", flush=True)

    def played(masks: bool, temperature: float) -> Settings:
        return Settings(
            variant.step_format, variant.step_format, masks, train.max_steps, detours=variant.detours,
            temperature=temperature, seed=tuning.seed,
        )  # fmt: skip

    return self_learning(
        train,
        tests,
        options.output / variant.name,
        synthesis=played(variant.masks, options.temperature),
        test=played(variant.test_masks, 0.0),
        model=model,
        schedule=Schedule(options.rounds, None, options.samples, variant.rule),
        tuning=tuning,
        batch=options.play_batch,
        device=options.device or own_device(),
        on_round=told,
    )


def model_name(variant: Variant, model: str | None) -> str:
    """What the tables call the model that a variant begins with: of a path, the last two folders, as of a hub name."""
    if variant.base == "small":
        return "small start"
    return "/".join(Path(model).parts[-2:]) if model else "embedded"
