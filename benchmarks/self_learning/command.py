"""Self-learning with parts of it left out, round by round, beside KnowAgent's tables.

    constrained bench self-learning --variant full --variant no-knowledge --plot rounds.svg

Each variant runs `constrained train self-learning` in a folder of its own below `--output`: one that was interrupted is
resumed, and one that is finished is only read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import plot_style
from benchmarks.reporting import add_json, describe_machine, report
from benchmarks.self_learning.plot import draw
from benchmarks.self_learning.tables import paper_tables, rounds_table
from constrained import __version__
from constrained.agents.levels import GOAL, STATE
from constrained.agents.settings import Settings
from constrained.cli.options import MODELS, add_device, add_tuning, own_device, tuning_of
from constrained.cli.train import check_disjoint, round_summary
from constrained.environments.suite import Suite, choose_suite
from constrained.training.settings import Tuning

DEFAULT = ("full", "no-masks", "no-knowledge")
TRAIN = "alfworld/practice:126"
"""21 games of each kind, drawn as the paper draws its 85 (appendix A): with two samples each, a quarter of its time."""
SAMPLES = 2
TESTS = ("alfworld/held_out:72", "alfworld/valid_seen")
"""The first, 12 training games of each kind that are not learned from, decides which round is best."""


@dataclass(frozen=True)
class Variant:
    """One way to run self-learning.

    Attributes
    ----------
    name : str
    words : str
        Description, for the tables.
    step_format : str
        "knowagent" writes the path so far into every step, "react" does not.
    masks, test_masks : bool
        In synthesis, and where a round is tested.
    rule : str
        Of `constrained.training.trajectory`: "paper" drops what breaks the action knowledge, "released" does not.
    level : str
        What the masks hold; one of `constrained.agents.levels.LEVELS`.
    """

    name: str
    words: str
    step_format: str = "knowagent"
    masks: bool = True
    test_masks: bool = True
    rule: str = "paper"
    level: str = GOAL

    @property
    def told(self) -> bool:
        """Whether prompts tell the action knowledge that the filter uses; the embedded model reads none anyway."""
        return self.rule == "paper"


_WITHOUT_MASKS = {"masks": False, "test_masks": False}
_WITHOUT_KNOWLEDGE = {**_WITHOUT_MASKS, "step_format": "react", "rule": "released"}

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("full", "action knowledge in masks, path and filter"),
        Variant("no-masks", "the same in path and filter, nothing masked: the paper's own setting", **_WITHOUT_MASKS),
        Variant("state", "as full, but masks hold the state alone, nothing of the goal", level=STATE),
        Variant("masks-in-training", "masks while it plays to learn, none in the tests", test_masks=False),
        Variant("no-knowledge", "ReAct's steps, whatever won is learned from", **_WITHOUT_KNOWLEDGE),
    )
}
"""By name. *full* against *no-knowledge* is KnowAgent's Figure 3, the rounds of each its Figure 4."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--variant", action="append", choices=tuple(VARIANTS), help=f"repeatable; default: {', '.join(DEFAULT)}")
    add("--rounds", type=int, default=4, help="rounds of each variant (default: 4, as in the paper's Figure 4)")
    add("--train", default=TRAIN, metavar="TASKS", help=f"household games to learn from (default: {TRAIN})")
    add("--test", action="append", metavar="TASKS", help=f"repeatable; default: {', '.join(TESTS)}")
    add("--model", help=f"{MODELS} (default: the embedded model)")
    add_device(parser)
    add(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="of sampling in training play; tests take the likeliest token (default: 1)",
    )
    add("--samples", type=int, default=SAMPLES, help=f"trajectories of each game in a round (default: {SAMPLES})")
    add("--play-batch", type=int, default=32, help="games played side by side (default: 32)")
    add("--output", type=Path, default=Path("runs/self-learning"), help="default: runs/self-learning")
    add_json(parser)
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
    check_disjoint(train, tests)
    runs = []
    for name in dict.fromkeys(options.variant or DEFAULT):
        variant = VARIANTS[name]
        rounds = learn(variant, train, tests, tuning, options)
        runs.append({**asdict(variant), "model": model_name(options.model), "rounds": rounds})
    result = {
        "version": __version__, "machine": describe_machine(), "train": train.name, "temperature": options.temperature,
        "samples": options.samples, "tuning": asdict(tuning), "runs": runs,
    }  # fmt: skip
    report("\n\n".join(part for part in (rounds_table(runs), paper_tables(runs)) if part), result, options)
    if options.plot:
        draw(result, options.plot)
    return 0


def learn(
    variant: Variant, train: Suite, tests: Sequence[Suite], tuning: Tuning, options: argparse.Namespace
) -> list[dict]:
    """The reports of one variant's rounds; the seed of tuning is also that of the games and of play."""
    from constrained.training.self_learning import Schedule, self_learning

    def print_round(round_report: dict) -> None:
        for line in round_summary(round_report).splitlines():
            print(f"{variant.name}, {line}", flush=True)

    def settings(masks: bool, temperature: float) -> Settings:
        return Settings(
            variant.step_format, variant.step_format, masks, train.max_steps, level=variant.level,
            temperature=temperature, seed=tuning.seed, knowledge_in_prompt=variant.told,
        )  # fmt: skip

    return self_learning(
        train,
        tests,
        options.output / variant.name,
        synthesis=settings(variant.masks, options.temperature),
        test=settings(variant.test_masks, 0.0),
        model=options.model,
        schedule=Schedule(options.rounds, None, options.samples, variant.rule),
        tuning=tuning,
        batch=options.play_batch,
        device=options.device or own_device(),
        on_round=print_round,
    )


def model_name(model: str | None) -> str:
    """The name of a base model in the tables: of a path the last two folders, as in a hub name."""
    return "/".join(Path(model).parts[-2:]) if model else "embedded"
