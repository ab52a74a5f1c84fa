"""Play a suite of tasks with agents of the papers, by levels of masks, and print the papers' tables beside ours.

    constrained bench agents --environment alfworld --strategy knowagent --strategy react

Each strategy is played at each level: off (no masks), form, state, goal-sound, goal (docs/agents.md). Below them a
uniformly random choice among the admitted actions takes the model's place: what it reaches, the masks do; what a model
reaches beyond it, the model does.

Every step is appended to a `.jsonl` file in `--output` as it happens; an interrupted run is resumed. Invalid and
misordered are those of KnowAgent's Table 3: *invalid* means that there is no such action, or its arguments are not
present; *misordered*, that the rules don't admit the action at that point.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import plot_style
from benchmarks.agents.plot import draw
from benchmarks.agents.prices import dollars, read_prices
from benchmarks.agents.published import published
from benchmarks.agents.report import ANY, table
from benchmarks.imported import DOMAIN, in_domain
from benchmarks.lumos import suites
from benchmarks.reporting import add_json, report
from constrained import __version__
from constrained.agents.levels import LEVELS, STATE
from constrained.agents.messages import POLICY, ROLES
from constrained.agents.metrics import summarise
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS, STRATEGIES
from constrained.cli.options import CHOOSERS, LEVEL_WORDS, MODELS, add_device, add_prompt, add_sampling
from constrained.decoding.choosers import Chooser, Uniform
from constrained.environments.household.env import KNOWLEDGE
from constrained.environments.suite import SUITES, Suite, choose_suite, open_suite
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.waiting import waiting

if TYPE_CHECKING:  # torch takes seconds to import
    from benchmarks.agents.ray_workers import RayWorkers
    from constrained.models import LoadedModel

BATCH = 8
"""Tasks played side by side by default.

Household games in KnowAgent's form, played by the embedded model on one core, took half the time with 8 that they took
one at a time; generation alone made 2.1 times as many tokens a second with 8, 2.4 times with 32, 2.6 times with 64.
Each open task also holds its environment, which may be a process of its own.
"""


WESE_STEPS = 8
"""WESE's limit on the steps of each phase, on questions."""

OVER = ("wese", "sese")
"""Strategies that are put over another one: WESE's Act-WESE and ReAct-WESE, Act-SESE and ReAct-SESE."""

OFF = "off"
"""The level without masks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--environment", metavar="NAME|FILE.py:FUNCTION", default="alfworld", help="what is played: "
        f"{', '.join(SUITES)}; or a function of your own that returns a Suite; without --split and --games a part can "
        "be named: alfworld/valid_seen:12 is 12 tasks, drawn evenly from all kinds (default: alfworld)")  # fmt: skip
    add("--split", help="of the environment's data (default: the one that the papers report)")
    add("--strategy", action="append", choices=tuple(STRATEGIES), help="repeatable; default: knowagent")
    add("--level", action="append", choices=(OFF, *LEVELS), help="which actions the masks admit; repeatable "
        f"(default: each). off: no masks; {LEVEL_WORDS}")  # fmt: skip
    add("--model", default=None, help=f"{MODELS}; or {CHOOSERS} (default: the embedded model)")
    add("--random", type=int, default=1, metavar="N", help="also let a uniformly random choice take the model's place, "
        "with N seeds; their mean is shown (default: 1; 0: no such rows)")  # fmt: skip
    add("--knowledge", metavar="NAME|FILE", help="mask with this action knowledge, to compare; the environment's own "
        f"still judges. {DOMAIN}: imported from ALFWorld's planning domain, bound to the game's state")  # fmt: skip
    add("--role", action="append", default=[], metavar="ROLE=MODEL", help="another model for a role, or the folder of "
        f"an adapter of --model; the roles: {', '.join(ROLES)}")  # fmt: skip
    add_device(parser)
    add("--games", type=int, metavar="N", help="only the first N tasks")
    add("--max-steps", type=int, help="default: the environment's published limit")
    add("--explore-steps", type=int, metavar="N", help="of WESE's exploration (default: as --max-steps)")
    add("--explore-stop", action="store_true", help="WESE's explorer may end its exploration before that limit; not "
        "for the embedded model")  # fmt: skip
    add("--over", choices=("act", "react"), help="what wese and sese are put over: act writes bare actions, react "
        "thoughts, too (default: react)")  # fmt: skip
    add("--triples", type=int, default=10, metavar="N", help="most triples that WESE shows (default: 10, as in the "
        "paper's question answering; 0: all)")  # fmt: skip
    add("--hops", type=int, default=1, metavar="N", help="WESE retrieves the triples within N relations of what the "
        "task is about (default: 1, as in the paper)")  # fmt: skip
    add("--supporting", action="store_true", help="show cot the sentences that the answer rests on, as in WESE's "
        "Table 3 (hotpotqa, strategyqa)")  # fmt: skip
    add("--price", action="append", default=[], metavar="ROLE=IN/OUT", help="dollars for a million tokens read and "
        "written by a role's model, such as policy=2.5/10, which other roles have too")  # fmt: skip
    add("--trials", type=int, default=3, help="of Reflexion, at most (default: 3)")
    add_prompt(parser)
    add_sampling(parser)
    add("--batch", type=int, default=BATCH, help=f"tasks played side by side (default {BATCH})")
    add("--workers", type=int, metavar="N", help="play in N processes, here or on the cluster of RAY_ADDRESS "
        "(default: in this one)")  # fmt: skip
    add("--output", type=Path, default=Path("runs/agents"), help="folder of the runs (default: runs/agents)")
    add("--trace", action="store_true", help="record every token with what the mask forbade, for `constrained view "
        "RUN.jsonl`")  # fmt: skip
    add_json(parser)
    add("--plot", type=Path, metavar="FILE", help="draw the figures: .svg, .png or .pdf")


def run_command(options: argparse.Namespace) -> int:
    if options.plot:
        plot_style.check(options.plot)
    for name, least in {"trials": 1, "explore_steps": 1, "random": 0, "triples": 0, "hops": 1}.items():
        value = getattr(options, name)
        if value is not None and value < least:
            raise ConstrainedError(f"--{name.replace('_', '-')} is {value}", f"use {least} or more")
    if options.over and not set(options.strategy or ()) & set(OVER):
        raise ConstrainedError("--over is of wese and sese", "add --strategy wese, or leave it out")
    prices = read_prices(options.price)
    open_models = _opener(options)
    with waiting("loading the models"):
        models = open_models()
    if options.split is None and options.games is None:
        suite = choose_suite(options.environment, options.seed)
    else:
        suite = open_suite(options.environment, split=options.split, limit=options.games, seed=options.seed)
    warn(options.model, suite)
    rows: list[dict] = []
    with _workers(options.workers, open_models, models) as workers:
        for strategy in options.strategy or ["knowagent"]:
            # The masks may be of other knowledge than the environment's own, which then judges the actions.
            lumos = strategy in suites.STRATEGIES
            played = suites.grounded(suite) if lumos else suite
            own = ActionKnowledge.from_lark(played.knowledge, source_map=options.trace)
            played, knowledge = _held_to(options.knowledge, played, lumos) if options.knowledge else (played, own)
            judge = own if options.knowledge else None
            over = options.over if strategy in OVER else None
            for level in _levels(options, models):
                settings = Settings(
                    strategy, over or STEP_FORMATS[strategy], level != OFF,
                    options.max_steps or most_steps(strategy, suite, played.max_steps), None,
                    level if level != OFF else STATE, options.temperature, seed=options.seed, trials=options.trials,
                    explore_steps=options.explore_steps, explore_stop=options.explore_stop,
                    retrieved=options.triples or None, hops=options.hops, supporting=options.supporting,
                    max_subgoals=suites.most_subgoals(suite) if lumos else None, trace=options.trace,
                    demonstrations=options.demonstrations, knowledge_in_prompt=not options.no_knowledge_prompt,
                )  # fmt: skip
                records = run(played, knowledge, models, settings, options, workers, judge)
                figures = summarise(records, suite.measures) | dollars(records, prices)
                row = {"strategy": strategy, "model": _shown(models[POLICY]), "level": level, **figures}
                row |= {"knowledge in prompt": False} if options.no_knowledge_prompt else {}
                row |= {"over": over} if over else {}
                rows.append({**row, "knowledge": knowledge.name} if judge else row)
    if not isinstance(models[POLICY], Chooser):
        rows += random_rows(suite, options, prices)
    names = {role: _shown(model) for role, model in models.items()}
    data = {"version": __version__, "suite": suite.name, "models": names, "rows": rows}
    report(table(rows, suite.measures, published(suite.name)), data, options)
    if options.plot:
        draw(data, options.plot)
    return 0


def most_steps(strategy: str, suite: Suite, most: int) -> int:
    """The published limit on the steps: WESE allows 8 on questions (its section 4.2), KnowAgent 10."""
    asks = suite.name.partition("/")[0] in ("hotpotqa", "hotpotqa_seen", "fever")
    return WESE_STEPS if strategy in OVER and asks else most


def warn(model: str | None, suite: Suite) -> None:
    """Say at once that the embedded model doesn't know a suite's domain."""
    from constrained.agents.generate import unfit  # torch takes seconds to import

    if warning := unfit(model, suite.knowledge == KNOWLEDGE):
        print(f"note: {warning}", file=sys.stderr)


def _levels(options: argparse.Namespace, models) -> list[str]:
    """The levels that were asked for, in order. A chooser has no level without masks."""
    chosen = [level for level in (OFF, *LEVELS) if not options.level or level in options.level]
    return [level for level in chosen if level != OFF or not isinstance(models[POLICY], Chooser)]


def random_rows(suite: Suite, options: argparse.Namespace, prices) -> list[dict]:
    """One row for each level, played by drawing from the admitted actions; none where free text is to be written."""
    from constrained.agents.suite_runner import play

    models = {POLICY: Uniform()}
    own = ActionKnowledge.from_lark(suite.knowledge)
    held, knowledge = _held_to(options.knowledge, suite, False) if options.knowledge else (suite, own)
    judge, rows = own if options.knowledge else None, []
    for level in _levels(options, models) if options.random else ():
        settings = Settings("act", "act", True, options.max_steps or suite.max_steps, level=level)
        first = replace(settings, max_steps=1)
        end = next(line["end"] for line in play(held.tasks[:1], knowledge, models, first, judge=judge) if "end" in line)
        if "failure" in end:
            print(f"note: no row for a random choice at level {level}: {end['failure']}", file=sys.stderr)
            continue
        ends = [
            run(held, knowledge, models, replace(settings, seed=options.seed + number), options, judge=judge)
            for number in range(options.random)
        ]
        records = [end for one in ends for end in one]
        figures = summarise(records, suite.measures) | dollars(records, prices)
        spread = [summarise(one, suite.measures)[f"{suite.measures[0]} %"] for one in ends]
        row = {"strategy": ANY, "model": Uniform.name, "level": level, **figures, "tasks": len(suite.tasks)}
        row |= {"seeds": options.random, "by seed": spread}
        rows.append({**row, "knowledge": knowledge.name} if judge else row)
    return rows


def _opener(options: argparse.Namespace) -> Callable[[], dict[str, LoadedModel]]:
    """A function that loads the models, here or in a worker."""
    from constrained.models import load_roles

    roles = {}
    for given in options.role:
        role, equals, name = given.partition("=")
        if not equals or role not in ROLES:
            raise ConstrainedError(f"--role {given} is not ROLE=MODEL", f"the roles are {', '.join(ROLES)}")
        roles[role] = name
    return partial(load_roles, options.model, roles, device=options.device)


def _workers(count: int | None, open_models, models) -> AbstractContextManager[RayWorkers | None]:
    if count is None:
        return nullcontext()
    from benchmarks.agents.ray_workers import RayWorkers

    return RayWorkers(count, open_models, models)


def _shown(loaded: LoadedModel | Chooser) -> str:
    """A model's name for the tables; of a path, the last part."""
    return Path(loaded.name).name if Path(loaded.name).exists() else loaded.name


def _held_to(name: str, suite: Suite, lumos: bool) -> tuple[Suite, ActionKnowledge]:
    """The knowledge of that name, and the suite with games that bind its slots."""
    if lumos:
        raise ConstrainedError("Lumos's strategies are held to Lumos's actions", "leave out --knowledge, or use others")
    return in_domain(suite) if name == DOMAIN else (suite, ActionKnowledge.from_lark(name))


def run(
    suite: Suite, knowledge: ActionKnowledge, models, settings: Settings, options, workers=None, judge=None
) -> list[dict]:
    """Play the tasks that were not played before; returns the records of all."""
    from constrained.agents.suite_runner import header, label, play_all

    path = options.output / f"{label(header(suite, knowledge, models, settings, judge))}.jsonl"
    words = f"{settings.strategy}, {models[POLICY].name}, {settings.level if settings.constrained else 'masks off'}"
    return play_all(
        suite, knowledge, models, settings, path, batch=options.batch, workers=workers, words=words, judge=judge
    )
