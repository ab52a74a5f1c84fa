"""`constrained train self-learning`: a model learns from its own play, round by round."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from constrained.agents.strategies import STEP_FORMATS, STRATEGIES
from constrained.cli.bench import find_benchmarks
from constrained.cli.tuning import add_tuning, own_device, tuning_of
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.training.filter import RULES

EXAMPLE = (
    "constrained train self-learning --train alfworld/practice:510 --test alfworld/held_out --test alfworld/valid_seen"
)


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "self-learning",
        help="KnowAgent's loop: play, keep what is correct and in order, merge, tune, test, again",
        description="Let a model learn from its own play (KnowAgent, Algorithm 1). Each round plays the training tasks, "
        "keeps what is correct and breaks no rule of the action knowledge, merges it with the rounds before (of each "
        "task the shorter path), tunes a LoRA adapter on it and tests it. Everything is kept in --output; started again "
        "with the same arguments, a run goes on where it was.",
        epilog=f"example: {EXAMPLE}. Tasks: NAME, NAME/SPLIT, or FILE.py:FUNCTION for a suite of your own; with :N behind "
        "it N tasks drawn evenly from all kinds, with :M-N those from position M up to N. Training and test tasks must "
        "not overlap.",
    )
    add = parser.add_argument
    add("--train", required=True, metavar="TASKS", help="what to learn from, e.g. alfworld/practice:510")
    add("--test", required=True, action="append", metavar="TASKS", help="what each round is measured on; repeatable, "
        "and the first decides when to stop: rather not the one you report")  # fmt: skip
    add("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    add("--device", default=None, help="cpu, cuda, cuda:1 ... (default: the GPU if there is one)")
    add("--knowledge", help="shipped name or path of a .lark file (default: that of the training tasks)")
    add("--strategy", default="knowagent", choices=tuple(STRATEGIES), help="how tasks are played (default: knowagent)")
    add("--masks", choices=("on", "off"), default="on", help="in training play (default: on)")
    add("--test-masks", choices=("on", "off"), help="in tests (default: as --masks)")
    add("--detours", action="store_true", help="masks admit moves that the memory knows to be pointless, too")
    add("--max-steps", type=int, help="of a task (default: the environment's published limit)")
    add("--rounds", type=int, default=2, help="at most (default: 2, the paper's)")
    add("--epsilon", type=float, metavar="POINTS", help="stop when the first test gains no more than so many percentage "
        "points (default: all rounds are run)")  # fmt: skip
    add("--samples", type=int, default=1, help="trajectories of each task in a round (default: 1)")
    add("--temperature", type=float, default=0.0, help="of training play; tests are greedy (default: 0)")
    add("--rule", choices=RULES, default="paper", help="what is dropped: what isn't correct or breaks the knowledge "
        "(paper, the default), or as the paper's program does, which never looks at the knowledge (released)")  # fmt: skip
    add("--play-batch", type=int, default=32, help="tasks played side by side (default: 32)")
    add(
        "--output",
        type=Path,
        default=Path("runs/self-learning"),
        help="folder of the run (default: runs/self-learning)",
    )
    add("--plot", type=Path, metavar="FILE", help="draw the rounds: .svg, .png or .pdf")
    add("--json", type=Path, metavar="FILE", help="write the reports of all rounds to this file, too")
    add_tuning(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from constrained.agents.episode import Settings
    from constrained.environments.suite import choose_suite
    from constrained.training.self_learning import Schedule, best, self_learning

    if arguments.plot:
        find_benchmarks()
        from benchmarks import plot_style

        plot_style.check(arguments.plot)
    tuning = tuning_of(arguments)
    train = choose_suite(arguments.train, tuning.seed)
    tests = [choose_suite(text, tuning.seed) for text in arguments.test]
    see_apart(train, tests)
    greedy = Settings(
        arguments.strategy, STEP_FORMATS[arguments.strategy], (arguments.test_masks or arguments.masks) == "on",
        arguments.max_steps or train.max_steps, detours=arguments.detours, seed=tuning.seed,
    )  # fmt: skip
    synthesis = replace(greedy, constrained=arguments.masks == "on", temperature=arguments.temperature)
    reports = self_learning(
        train,
        tests,
        arguments.output,
        synthesis=synthesis,
        test=greedy,
        model=arguments.model,
        knowledge=ActionKnowledge.from_lark(arguments.knowledge) if arguments.knowledge else None,
        schedule=Schedule(arguments.rounds, arguments.epsilon, arguments.samples, arguments.rule),
        tuning=tuning,
        batch=arguments.play_batch,
        device=arguments.device or own_device(),
        on_round=lambda report: print(round_line(report), flush=True),
    )
    chosen = best(tests[0].name, reports, tests[0].measures[0])
    where = (
        f"its adapter is {arguments.output / f'round-{chosen}' / 'adapter'}" if chosen else "the model as it was given"
    )
    print(f"Best on {tests[0].name}: round {chosen}; {where}.")
    if arguments.json:
        write_whole(arguments.json, to_json(reports))
    if arguments.plot:
        from benchmarks.self_learning.plot import draw

        draw(reports, arguments.plot)
    return 0


def see_apart(train: Suite, tests: Sequence[Suite]) -> None:
    """Raise ConstrainedError if a task is both learned from and tested on."""
    learned = {task.name for task in train.tasks}
    for test in tests:
        both = learned.intersection(task.name for task in test.tasks)
        if both:
            raise ConstrainedError(
                f"{len(both)} tasks are in {train.name} and in {test.name}, e.g. {min(both)}",
                "test on others: another split, or other positions, as in --train hotpotqa:0-400 --test hotpotqa:400-500",
            )


def round_line(report: dict) -> str:
    """A round in a line or two."""
    lines = []
    if "synthesis" in report:
        dropped = ", ".join(f"{count} {reason}" for reason, count in report["dropped"].items()) or "none"
        lines.append(
            f"round {report['round']}: kept {report['kept']} trajectories, dropped {dropped}; {report['merged']} merged, "
            f"{report['texts']} texts, loss {report['tuning']['loss']:.3f}"
        )
    for name, figures in report["test"].items():
        measure = next(iter(key for key in figures if key.endswith(" %")))
        lines.append(
            f"round {report['round']}: {name}: {measure.removesuffix(' %')} {figures[measure]:.1f} %, "
            f"invalid {figures['invalid %']:.2f} %, misordered {figures['misordered %']:.2f} %, "
            f"pruned mass {figures['pruned mass %']:.2f} %"
        )
    return "\n".join(lines)
