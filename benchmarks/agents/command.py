"""Play a suite of tasks with agents of the papers, masks on and off, and print the papers' tables with ours.

    constrained bench agents --environment alfworld --strategy knowagent --strategy react

Every step is appended to a `.jsonl` file in `--output` as it happens; an interrupted run is resumed. Invalid and
misordered are those of KnowAgent's Table 3: *invalid* means that there is no such action, or its arguments are not
present; *misordered*, that the rules don't admit the action at that point.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import plot_style
from benchmarks.agents.plot import draw
from benchmarks.agents.published import published
from benchmarks.agents.report import table
from benchmarks.imported import DOMAIN, in_domain
from benchmarks.reporting import add_json, report
from constrained import __version__
from constrained.agents.episode import Settings
from constrained.agents.messages import POLICY, ROLES
from constrained.agents.metrics import read_prices, summarise
from constrained.agents.strategies import GROUNDED, STEP_FORMATS, STRATEGIES
from constrained.agents.strategies.lumos.suites import grounded, most_subgoals
from constrained.environments.suite import SUITES, Suite, open_suite
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.agents.ray_workers import RayWorkers
    from constrained.models import LoadedModel

BATCH = 8
"""Tasks played side by side by default.

Household games in KnowAgent's form, played by the embedded model on one core, took half the time with 8 that they took
one at a time; generation alone made 2.1 times as many tokens a second with 8, 2.4 times with 32, 2.6 times with 64.
Each open task also holds its environment, which may be a process of its own.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--environment", metavar="NAME|FILE.py:FUNCTION", default="alfworld", help="what is played: "
        f"{', '.join(SUITES)}; or a function of your own that returns a Suite (default: alfworld)")  # fmt: skip
    add("--split", help="of the environment's data (default: the one that the papers report)")
    add("--strategy", action="append", choices=tuple(STRATEGIES), help="repeatable; default: knowagent")
    add("--masks", choices=("on", "off", "both"), default="both", help="default: both")
    add("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    add("--knowledge", metavar="NAME|FILE", help="mask with this action knowledge, to compare; the environment's own "
        f"still judges. {DOMAIN}: imported from ALFWorld's planning domain, bound to the game's state")  # fmt: skip
    add("--role", action="append", default=[], metavar="ROLE=MODEL", help="another model for a role, or the folder of "
        f"an adapter of --model; the roles: {', '.join(ROLES)}")  # fmt: skip
    add("--device", default=None)
    add("--games", type=int, metavar="N", help="only the first N tasks")
    add("--max-steps", type=int, help="default: the environment's published limit")
    add("--repeats", action="store_true", help="masks admit again what was done before in the same state, to compare")
    add("--detours", action="store_true", help="masks admit moves that are known to be useless, too, to compare")
    add("--explore-steps", type=int, metavar="N", help="of WESE's exploration (default: as --max-steps)")
    add("--price", action="append", default=[], metavar="ROLE=IN/OUT", help="dollars for a million tokens read and "
        "written by a role's model, such as policy=2.5/10; default: that of the model serving it")  # fmt: skip
    add("--trials", type=int, default=3, help="of Reflexion, at most (default: 3)")
    add("--temperature", type=float, default=0.0)
    add("--seed", type=int, default=0)
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
    for name in ("trials", "explore_steps"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConstrainedError(f"--{name.replace('_', '-')} is {value}", "use 1 or more")
    prices = read_prices(options.price)
    open_models = _opener(options)
    models = open_models()
    suite = open_suite(options.environment, split=options.split, limit=options.games, seed=options.seed)
    rows = []
    with _workers(options.workers, open_models, models) as workers:
        for strategy in options.strategy or ["knowagent"]:
            lumos = strategy in GROUNDED
            played = grounded(suite) if lumos else suite
            own = ActionKnowledge.from_lark(played.knowledge, source_map=options.trace)
            played, knowledge = _held_to(options.knowledge, played, lumos) if options.knowledge else (played, own)
            for masks in {"on": [True], "off": [False], "both": [True, False]}[options.masks]:
                settings = Settings(
                    strategy, STEP_FORMATS[strategy], masks, options.max_steps or played.max_steps, None,
                    options.repeats, options.detours, options.temperature, seed=options.seed, trials=options.trials,
                    explore_steps=options.explore_steps,
                    max_subgoals=most_subgoals(suite) if lumos else None, trace=options.trace,
                )  # fmt: skip
                judge = own if options.knowledge else None
                records = run(played, knowledge, models, settings, options, workers, judge)
                figures = summarise(records, suite.measures, prices)
                row = {"strategy": strategy, "model": _shown(models[POLICY]), "masks": masks, **figures}
                rows.append({**row, "knowledge": knowledge.name} if judge else row)
    names = {role: _shown(model) for role, model in models.items()}
    data = {"version": __version__, "suite": suite.name, "models": names, "rows": rows}
    report(table(rows, suite.measures, published(suite.name)), data, options)
    if options.plot:
        draw(data, options.plot)
    return 0


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
    from constrained.agents.ray_workers import RayWorkers

    return RayWorkers(count, open_models, models)


def _shown(loaded: LoadedModel) -> str:
    """A model's name: of a folder, its last part."""
    return Path(loaded.name).name if Path(loaded.name).exists() else loaded.name


def _held_to(name: str, suite: Suite, lumos: bool) -> tuple[Suite, ActionKnowledge]:
    """The suite, with its games binding the slots of the knowledge of that name, and that knowledge."""
    if lumos:
        raise ConstrainedError("Lumos's strategies are held to Lumos's actions", "leave out --knowledge, or use others")
    return in_domain(suite) if name == DOMAIN else (suite, ActionKnowledge.from_lark(name))


def run(
    suite: Suite, knowledge: ActionKnowledge, models, settings: Settings, options, workers=None, judge=None
) -> list[dict]:
    """Play the tasks that were not played before; returns the records of all."""
    from constrained.agents.suite_runner import header, label, play_all

    path = options.output / f"{label(header(suite, knowledge, models, settings, judge))}.jsonl"
    words = f"{settings.strategy}, masks {'on' if settings.constrained else 'off'}"
    return play_all(
        suite, knowledge, models, settings, path, batch=options.batch, workers=workers, words=words, judge=judge
    )
