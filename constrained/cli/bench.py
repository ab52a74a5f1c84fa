"""`constrained bench` and `plot`: run the benchmarks in a checkout's `benchmarks/`, and draw their recorded results."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from constrained.cli.parser import examples
from constrained.errors import ConstrainedError

RECORDED = {
    "engine": "engine.json",
    "agents": "agents_alfworld_valid_seen.json",
    "self-learning": "self_learning.json",
}
"""Kind of plot -> the result that the documentation shows."""

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder that holds `benchmarks/` beside the package; an installed copy has none there."""

HELP = "run a benchmark: masks against other engines, agents against the papers' tables, and more"

MODULES = {
    "agents": "agents.command",
    "bfcl": "bfcl.command",
    "binding": "binding",
    "distilled": "distilled",
    "engine": "engine.command",
    "errors": "errors",
    "example-worlds": "example_worlds",
    "executor": "executor",
    "figures": "figures.command",
    "generation": "engine.generation",
    "gpu": "gpu.command",
    "guard": "guard",
    "imported": "imported",
    "ipc": "planbench.ipc",
    "lumos": "lumos.command",
    "maskbench": "maskbench.command",
    "masks": "planbench.masks",
    "merge": "merge",
    "original": "original",
    "planbench": "planbench.command",
    "replay": "replay",
    "retrieval": "retrieval",
    "rules": "paper_rules",
    "scienceworld": "scienceworld",
    "scienceworld-play": "scienceworld_play",
    "self-learning": "self_learning.command",
    "serve": "serve",
    "tau": "tau",
    "worlds": "worlds",
}
"""Name of a benchmark -> its module."""


def find_benchmarks() -> None:
    """Make `benchmarks` importable from the checkout. Raises ConstrainedError: the package is not in a checkout."""
    if not (CHECKOUT / "benchmarks" / "papers.py").is_file():
        raise ConstrainedError(
            "the benchmarks are not part of the installed package",
            "clone the repository, run `pip install -e .` in it, and call this command again",
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))  # an editable install makes only `constrained` importable


def add_bench(commands) -> None:
    parser = commands.add_parser(
        "bench",
        help=HELP,
        description="Run a benchmark: each prints a table and, with --json, writes its figures. The benchmarks are in "
        "a checkout of the repository.",
        epilog=examples(
            "constrained bench engine --workload step", "constrained bench agents --games 12 --level state"
        ),
    )
    try:
        find_benchmarks()
    except ConstrainedError:
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="needs a checkout of the repository")
        parser.set_defaults(run=lambda _: find_benchmarks())
        return
    benchmarks = parser.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    for name, module_name in MODULES.items():
        module = import_module(f"benchmarks.{module_name}")
        summary, *more = (module.__doc__ or "").strip().split("\n")
        # Of the module's text: what is indented and begins so; what the call does may follow after two blanks.
        calls = [line.strip() for line in more if line.startswith(f"    constrained bench {name}")]
        benchmark = benchmarks.add_parser(name, help=summary, description=summary, epilog=examples(*calls))
        module.add_arguments(benchmark)
        benchmark.set_defaults(run=module.run_command)


def add_plot(commands) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw recorded results: engines, agents, or rounds of self-learning",
        description="Draw what a benchmark recorded, without running it: the engine beside others, agents beside the "
        "papers' tables, or self-learning round by round.",
        epilog=examples("constrained plot agents", "constrained plot self-learning rounds.json --output rounds.png"),
    )
    parser.add_argument("kind", choices=tuple(RECORDED), help="what to draw")
    words = "the file that `constrained bench KIND` wrote with --json (default: the one that the documentation shows)"
    parser.add_argument("path", nargs="?", default="", metavar="RESULT", help=words)
    words = "a .svg, .png or .pdf file (default: KIND.svg here; in a checkout and without RESULT, in docs/)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=words)
    parser.set_defaults(run=run_plot)


def run_plot(arguments: argparse.Namespace) -> int:
    find_benchmarks()
    from benchmarks import plot_style
    from benchmarks.result_files import DOCS, RESULTS, read_result

    package = f"benchmarks.{arguments.kind.replace('-', '_')}"
    plot = import_module(f"{package}.plot")
    result = Path(arguments.path) if arguments.path else RESULTS / RECORDED[arguments.kind]
    folder = DOCS if DOCS.is_dir() and not arguments.path else Path()
    picture = arguments.output or folder / f"{arguments.kind.replace('-', '_')}.svg"
    plot_style.check(picture)
    plot.draw(read_result(result, f"constrained bench {arguments.kind}", plot.form), picture)
    print(f"wrote {picture}")
    return 0
