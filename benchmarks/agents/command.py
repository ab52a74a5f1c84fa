"""Play a suite of tasks with agents of the papers, masks on and off, and print the papers' tables with ours.

    constrained bench agents --environment alfworld --strategy knowagent --strategy react

Every step is a line of a `.jsonl` file in `--output`, written as it happens; a run that was interrupted goes on
where it was. Invalid and misordered follow KnowAgent's Table 3 as defined here: *invalid* has no such action or
arguments that are not there, *misordered* is an action that the rules don't admit at that point.
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
from constrained import __version__
from constrained.agents.episode import Settings
from constrained.agents.messages import POLICY, ROLES
from constrained.agents.metrics import read_prices, summarise
from constrained.agents.strategies import GROUNDED, STEP_FORMATS, STRATEGIES
from constrained.agents.strategies.lumos.suites import grounded, most_subgoals
from constrained.environments.suite import SUITES, Suite, open_suite
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import: only who plays pays for it
    from constrained.agents.ray_workers import RayWorkers
    from constrained.models import LoadedModel

BATCH = 8
"""Tasks played side by side by default.

Household games in KnowAgent's form, played by the embedded model on one core, took half the time with 8 that they took
one at a time; of the writing alone, 8 at a time made 2.1 times as many tokens a second, 32 2.4 times, 64 2.6 times.
Each open task also holds its environment, which may be a process of its own.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench agents`."""
    parser.add_argument(
        "--environment",
        metavar="NAME|FILE.py:FUNCTION",
        default="alfworld",
        help=f"what is played: {', '.join(SUITES)}; or a function of your own that returns a Suite (default: alfworld)",
    )
    parser.add_argument("--split", help="of the environment's data (default: the one that the papers report)")
    parser.add_argument("--strategy", action="append", choices=tuple(STRATEGIES), help="repeatable; default: knowagent")
    parser.add_argument("--masks", choices=("on", "off", "both"), default="both", help="default: both")
    parser.add_argument("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    parser.add_argument(
        "--knowledge",
        metavar="NAME|FILE",
        help="hold agents to this action knowledge, to compare; the environment's own still judges. "
        f"{DOMAIN}: imported from ALFWorld's planning domain, slots bound to the game's state",
    )
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE=MODEL",
        help=f"another model for a role, or the folder of an adapter of --model; the roles: {', '.join(ROLES)}",
    )
    parser.add_argument("--device", default=None)
    parser.add_argument("--games", type=int, default=None, help="only the first so many tasks")
    parser.add_argument("--max-steps", type=int, default=None, help="default: the environment's published limit")
    parser.add_argument(
        "--repeats",
        action="store_true",
        help="masks admit again what was done before in the same situation, to compare",
    )
    parser.add_argument(
        "--detours",
        action="store_true",
        help="masks admit moves that are known to lead nowhere of use, too, to compare",
    )
    parser.add_argument(
        "--explore-steps", type=int, metavar="N", help="of WESE's exploration (default: as --max-steps)"
    )
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="ROLE=IN/OUT",
        help="dollars for a million tokens read and written by a role's model, such as policy=2.5/10; "
        "a role without a price has the one of the model that serves it",
    )
    parser.add_argument("--trials", type=int, default=3, help="of Reflexion, at most (default: 3)")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=BATCH, help=f"tasks played side by side (default {BATCH})")
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="play in so many processes, here or on the cluster of RAY_ADDRESS (default: in this one)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("runs/agents"), help="folder of the runs (default: runs/agents)"
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="keep every token with what the mask took from the model, for `constrained view RUN.jsonl`",
    )
    parser.add_argument("--json", type=Path, help="write the figures as JSON to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures: .svg, .png or .pdf")


def run_command(options: argparse.Namespace) -> int:
    """Play, print the table, write the JSON."""
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
    print(table(rows, suite.measures, published(suite.name)))
    names = {role: _shown(model) for role, model in models.items()}
    data = {"version": __version__, "suite": suite.name, "models": names, "rows": rows}
    if options.json:
        write_whole(options.json, to_json(data))
    if options.plot:
        draw(data, options.plot)
    return 0


def _opener(options: argparse.Namespace) -> Callable[[], dict[str, LoadedModel]]:
    """What loads the models, here or in a worker."""
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
    """The suite, and the knowledge of that name, bound in its games."""
    if lumos:
        raise ConstrainedError("Lumos's strategies are held to Lumos's actions", "leave out --knowledge, or use others")
    return in_domain(suite) if name == DOMAIN else (suite, ActionKnowledge.from_lark(name))


def run(
    suite: Suite, knowledge: ActionKnowledge, models, settings: Settings, options, workers=None, judge=None
) -> list[dict]:
    """What came of every task, those played before included."""
    from constrained.agents.suite_runner import header, label, play_all

    path = options.output / f"{label(header(suite, knowledge, models, settings, judge))}.jsonl"
    words = f"{settings.strategy}, masks {'on' if settings.constrained else 'off'}"
    return play_all(
        suite, knowledge, models, settings, path, batch=options.batch, workers=workers, words=words, judge=judge
    )
