"""`constrained train sft` and `constrained train self-learning`: tune a model on texts, or on its own play."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from constrained.agents.levels import LEVELS
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS, STRATEGIES
from constrained.cli.bench import find_benchmarks
from constrained.cli.options import (
    KNOWLEDGE,
    add_level,
    add_model,
    add_prompt,
    add_tuning,
    own_device,
    tuning_of,
    whole_number,
)
from constrained.cli.parser import examples
from constrained.environments.suite import Suite, choose_suite
from constrained.errors import ConstrainedError
from constrained.files import check_separate, to_json, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.models.source import check_adapter, check_source, to_adapt
from constrained.training.settings import Tuning
from constrained.training.trajectory import RULES
from constrained.waiting import waiting


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "train",
        help="tune a model on given texts (sft) or on its own play (self-learning)",
        description="Tune a model, or an adapter (LoRA) of it. An interrupted command goes on when it is started again "
        "with the same arguments, with the same result.",
        epilog=examples(
            "constrained train sft --data chats.jsonl --model smollm2 --out tuned",
            "constrained train self-learning --train alfworld/practice:510 --test alfworld/held_out",
        ),
    )
    kinds = parser.add_subparsers(dest="training", metavar="KIND", required=True)
    _add_sft(kinds)
    _add_self_learning(kinds)


def _add_sft(kinds) -> None:
    parser = kinds.add_parser(
        "sft",
        help="supervised fine-tuning on chats, Lumos's conversations, or Alpaca data such as FireAct's",
        description="Supervised fine-tuning: tune a model to write the assistant's turns of conversations, or the "
        "responses of Alpaca data. Only these are learned; what comes before them is the prompt, as agents use it.",
        epilog=examples(
            "constrained train sft --data chats.jsonl --model smollm2 --out tuned",
            "constrained train sft --data lumos-maths-planner --model org/model --out planner",
            note="On several GPUs, begin with: accelerate launch --multi_gpu -m constrained train sft",
        ),
    )
    add = parser.add_argument
    words = """a .jsonl or .json file (.gz too) of rows with messages (chat), or instruction, input and output (Alpaca);
        or lumos-maths, lumos-qa, lumos-svamp, with -planner or -grounder and -iterative or -onetime after it for a
        part; repeatable"""
    add("--data", required=True, action="append", metavar="DATA", help=words)
    add_model(parser)
    add("--adapter", metavar="FOLDER", help="continue from this adapter of the model")
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the adapter, or the whole model, is saved")
    add("--limit", type=whole_number, metavar="N", help="read only the first N rows of each DATA (default: all)")
    add("--json", type=Path, metavar="FILE", help="also write the report to FILE")
    add_tuning(parser)
    parser.set_defaults(run=run_sft)


def run_sft(arguments: argparse.Namespace) -> int:
    check_separate(arguments.json, *arguments.data)
    tuning = tuning_of(arguments)
    if arguments.adapter:
        check_adapter(arguments.adapter, f"adapter {arguments.adapter}")
    # What is missing is said before torch, transformers and peft are imported, which takes seconds.
    check_source(arguments.model or "embedded")
    with waiting("loading the model"):
        from constrained.models import load
        from constrained.training.sft_data import read_source
        from constrained.training.tuning import tune

        model = load(to_adapt(arguments.model), device=arguments.device or own_device())
    sources = {name: read_source(name, model, arguments.limit) for name in arguments.data}
    texts = [text for source in sources.values() for text in source.texts]
    first = os.environ.get("RANK", "0") == "0"
    if first:
        for name, source in sources.items():
            print(f"{name}: {len(source.texts):,} texts of {source.rows:,} rows", file=sys.stderr)
            for reason, count in source.left_out.most_common():
                print(f"note: {count:,} rows left out: {reason}", file=sys.stderr)
    tuned = tune(model, texts, tuning, arguments.out, adapter=arguments.adapter)
    if not first:
        return 0
    report = {
        "model": model.name,
        "data": {
            name: {"rows": source.rows, "texts": len(source.texts), "left out": dict(source.left_out.most_common())}
            for name, source in sources.items()
        },
        "settings": asdict(tuning),
        "tuned": asdict(tuned) | {"folder": str(tuned.folder)},
    }
    if arguments.json:
        write_whole(arguments.json, to_json(report))
    if tuned.left_out:
        limit = f"longer than {tuning.max_length:,} tokens, or than the model's context"
        print(f"note: {tuned.left_out:,} texts left out: {limit}", file=sys.stderr)
    speed = f"{tuned.tokens:,} tokens in {tuned.seconds:.0f} s ({tuned.tokens / tuned.seconds:,.0f} a second)"
    what = "model" if tuning.whole else "adapter"
    print(f"{what} in {tuned.folder}: {tuned.steps:,} steps, {speed}, loss {tuned.loss:.4f}")
    return 0


def _add_self_learning(kinds) -> None:
    parser = kinds.add_parser(
        "self-learning",
        help="KnowAgent's loop: play, keep correct and ordered trajectories, merge, tune, test, repeat",
        description="Let a model learn from its own play (KnowAgent, Algorithm 1). Each round plays the training "
        "tasks, keeps the trajectories that succeed and break no rule of the action knowledge, merges them with those "
        "of earlier rounds (the shortest for each task), tunes a LoRA adapter on them and tests it.",
        epilog=examples(
            "constrained train self-learning --train alfworld/practice:510 --test alfworld/held_out",
            "constrained train self-learning --pddl domain.pddl problem.pddl --rounds 4 --samples 2",
            note="TASKS is NAME, NAME/SPLIT, or FILE.py:FUNCTION, which returns your own suite. With :N after it,\n"
            "N tasks, drawn evenly from all kinds; with :M-N, those from position M up to, not including, N.",
        ),
    )
    add = parser.add_argument
    add("--train", metavar="TASKS", help="tasks to learn from; none may be in --test")
    words = """tasks to test each round on; repeatable. The first decides when to stop and which round is best: report
        another"""
    add("--test", action="append", metavar="TASKS", help=words)
    words = """in place of --train, --test and --model: a PDDL domain and problems, from whose initial states tasks are
        made by random walks; a small graph network learns them from random weights (docs/training.md)"""
    add("--pddl", nargs="+", metavar=("DOMAIN", "PROBLEM"), help=words)
    add("--tasks", type=int, default=150, metavar="N", help="with --pddl: tasks that a round plays (default: 150)")
    add("--test-tasks", type=int, default=100, metavar="N", help="with --pddl: tasks of the test (default: 100)")
    add("--walk", type=int, default=20, metavar="N", help="with --pddl: actions of a walk, at most (default: 20)")
    add_model(parser)
    add("--knowledge", metavar="FILE", help=f"{KNOWLEDGE} (default: that of the training tasks)")
    words = "how the agent works, see docs/agents.md (default: knowagent; with --pddl always act)"
    add("--strategy", choices=tuple(STRATEGIES), help=words)
    add("--masks", choices=("on", "off"), default="on", help="masks in training play (default: on)")
    add("--test-masks", choices=("on", "off"), help="masks in tests (default: as --masks)")
    add_level(parser)
    add("--test-level", choices=LEVELS, help="the level of masks in tests (default: as --level)")
    add_prompt(parser)
    add("--max-steps", type=int, help="actions at most in a task (default: the environment's published limit)")
    add("--rounds", type=int, default=2, help="rounds at most (default: 2, as in the paper)")
    words = "stop when the first test gains at most this many percentage points (default: run all rounds)"
    add("--epsilon", type=float, metavar="POINTS", help=words)
    add("--samples", type=int, default=1, help="trajectories of each task in a round (default: 1)")
    words = "of sampling in training play; tests take the likeliest token (default: 0)"
    add("--temperature", type=float, default=0.0, metavar="T", help=words)
    words = """paper: drop trajectories that fail or break the action knowledge; released: as the paper's program, which
        doesn't look at the knowledge (default: paper)"""
    add("--rule", choices=RULES, default="paper", help=words)
    add("--play-batch", type=int, default=32, help="tasks played side by side (default: 32)")
    folder = Path("runs/self-learning")
    add("--output", type=Path, metavar="FOLDER", default=folder, help=f"everything is kept there (default: {folder})")
    add("--plot", type=Path, metavar="FILE", help="draw the rounds to FILE: .svg, .png or .pdf")
    add("--json", type=Path, metavar="FILE", help="also write the reports of all rounds to FILE")
    add_tuning(parser)
    parser.set_defaults(run=run_self_learning)


def run_self_learning(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        find_benchmarks()
        from benchmarks import plot_style

        plot_style.check(arguments.plot)
    if arguments.pddl:
        return _in_domain(arguments)
    if not arguments.train or not arguments.test:
        raise ConstrainedError(
            "give --train and --test, or --pddl", "constrained train self-learning --help shows examples"
        )
    tuning = tuning_of(arguments)
    check_source(arguments.model or "embedded")  # before the tasks and torch, which take seconds
    train = choose_suite(arguments.train, tuning.seed)
    tests = [choose_suite(text, tuning.seed) for text in arguments.test]
    check_disjoint(train, tests)
    masks = (arguments.test_masks or arguments.masks) == "on"
    steps = arguments.max_steps or train.max_steps
    strategy = arguments.strategy or "knowagent"
    test = Settings(
        strategy, STEP_FORMATS[strategy], masks, steps, level=arguments.test_level or arguments.level,
        seed=tuning.seed, demonstrations=arguments.demonstrations,
        knowledge_in_prompt=not arguments.no_knowledge_prompt,
    )  # fmt: skip
    synthesis = replace(
        test, constrained=arguments.masks == "on", temperature=arguments.temperature, level=arguments.level
    )
    return _learn(
        arguments, train, tests, synthesis, test, tuning,
        model=arguments.model,
        knowledge=ActionKnowledge.from_lark(arguments.knowledge) if arguments.knowledge else None,
        device=arguments.device or own_device(),
    )  # fmt: skip


def _in_domain(arguments: argparse.Namespace) -> int:
    """Self-learning in a planning domain."""
    from constrained.environments.pddl import read_pddl
    from constrained.knowledge.pddl import import_pddl
    from constrained.planning import read_problem_of
    from constrained.training.learners import ChooserLearner
    from constrained.training.walks import key, walk_problem_of, walk_suite

    if arguments.train or arguments.test or arguments.model:
        raise ConstrainedError("--pddl makes its own tasks and model", "leave out --train, --test and --model")
    if arguments.knowledge or arguments.device:
        raise ConstrainedError(
            "with --pddl the domain is the action knowledge, and the network is tuned on the CPU",
            "leave out --knowledge and --device",
        )
    if arguments.strategy not in (None, "act") or "off" in (arguments.masks, arguments.test_masks):
        raise ConstrainedError(
            "the network that --pddl tunes chooses among the actions that masks admit, and writes no thoughts",
            "leave out --strategy, --masks and --test-masks",
        )
    if arguments.demonstrations is not None or arguments.no_knowledge_prompt:
        raise ConstrainedError(
            "the network that --pddl tunes reads no prompt", "leave out --demonstrations and --no-knowledge-prompt"
        )
    for name in ("tasks", "test_tasks", "walk"):
        if getattr(arguments, name) < 1:
            raise ConstrainedError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}", "use 1 or more")
    # The domain is the action knowledge; tasks are walks from the problems' initial states, new ones in each round. The
    # test's walks come first, so that no round plays one of them.
    domain_file, *problem_files = arguments.pddl
    if not problem_files:
        raise ConstrainedError("--pddl has a domain and no problem", "give problems of it: --pddl DOMAIN PROBLEM ...")
    arguments.preset = arguments.preset or "chooser"
    tuning = tuning_of(arguments)
    text, source = read_pddl(Path(domain_file))
    knowledge = import_pddl(text, source=source).knowledge()
    assert knowledge.world is not None
    domain = knowledge.world.domain
    problems = [read_problem_of(domain, *read_pddl(Path(name))) for name in problem_files]
    steps = arguments.max_steps or arguments.walk + arguments.walk // 2
    make = partial(walk_suite, knowledge, problems, longest=arguments.walk, max_steps=steps)
    test = make(name=f"held-out walks, seed {tuning.seed}", number=arguments.test_tasks)
    held_out = [key(walk_problem_of(task)) for task in test.tasks]

    def train(number: int) -> Suite:
        name = f"walks of round {number}, seed {tuning.seed}"
        return make(name=name, number=arguments.tasks, other_than=held_out)

    settings = Settings("act", "act", True, steps, level=arguments.test_level or arguments.level, seed=tuning.seed)
    synthesis = replace(settings, temperature=arguments.temperature or 1.0, level=arguments.level)
    learner = ChooserLearner(domain, tuning)
    return _learn(arguments, train, [test], synthesis, settings, tuning, knowledge=knowledge, learner=learner)


def _learn(
    arguments: argparse.Namespace,
    train: Suite | Callable[[int], Suite],
    tests: Sequence[Suite],
    synthesis: Settings,
    settings: Settings,
    tuning: Tuning,
    **more: Any,
) -> int:
    """Run the rounds; print the best one, write and draw the results."""
    with waiting("importing torch, transformers and peft"):
        from constrained.training.self_learning import Schedule, best, self_learning

    reports = self_learning(
        train,
        tests,
        arguments.output,
        synthesis=synthesis,
        test=settings,
        schedule=Schedule(arguments.rounds, arguments.epsilon, arguments.samples, arguments.rule),
        tuning=tuning,
        batch=arguments.play_batch,
        on_round=lambda report: print(round_summary(report), flush=True),
        **more,
    )
    test = tests[0]
    chosen = best(test.name, reports, test.measures[0])
    adapter = arguments.output / f"round-{chosen}" / "adapter"
    where = f"its adapter is {adapter}" if chosen else "the model as it was given"
    print(f"Best on {test.name}: round {chosen}; {where}.")
    if arguments.json:
        write_whole(arguments.json, to_json(reports))
    if arguments.plot:
        from benchmarks.self_learning.plot import draw

        draw(reports, arguments.plot)
    return 0


def check_disjoint(train: Suite, tests: Sequence[Suite]) -> None:
    """Raise ConstrainedError if a training task is also a test task."""
    learned = {task.name for task in train.tasks}
    for test in tests:
        both = learned.intersection(task.name for task in test.tasks)
        if both:
            raise ConstrainedError(
                f"{len(both)} tasks are in {train.name} and in {test.name}, e.g. {min(both)}",
                "test on another split, or on other positions, as in --train hotpotqa:0-400 --test hotpotqa:400-500",
            )


def round_summary(report: dict) -> str:
    """The report of a round in one or more lines."""
    lines = []
    number = f"round {report['round']}"
    if "synthesis" in report:
        dropped = ", ".join(f"{count} {reason}" for reason, count in report["dropped"].items()) or "none"
        lines.append(
            f"{number}: kept {report['kept']} trajectories, dropped {dropped}; {report['merged']} merged, "
            f"{report['texts']} texts, loss {report['tuning']['loss']:.3f}"
        )
    for name, figures in report["test"].items():
        measure = next(key for key in figures if key.endswith(" %"))
        lines.append(
            f"{number}: {name}: {measure.removesuffix(' %')} {figures[measure]:.1f} %, invalid "
            f"{figures['invalid %']:.2f} %, misordered {figures['misordered %']:.2f} %, pruned mass "
            f"{figures['pruned mass %']:.2f} %"
            + (
                f"; since round 0 gained {figures['gained']}, lost {figures['lost']}, p = {figures['p']:.2g}"
                if number != "round 0"
                else ""
            )
        )
    return "\n".join(lines)
