"""`constrained bench`: the benchmarks, each a module of `benchmarks/` in a checkout."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from constrained.errors import ConstrainedError

CHECKOUT = Path(__file__).resolve().parents[2]
"""Where `benchmarks/` stands beside the package; an installed copy has none there."""

MODULES = {
    "agents": "agents.command",
    "binding": "binding",
    "device": "device",
    "engine": "engine.command",
    "executor": "executor",
    "generation": "engine.generation",
    "imported": "imported",
    "lumos": "lumos.command",
    "merge": "merge",
    "original": "original",
    "replay": "replay",
    "retrieval": "retrieval",
    "rules": "paper_rules",
    "scienceworld": "scienceworld",
    "self-learning": "self_learning.command",
}
"""Name of a benchmark -> its module."""


def find_benchmarks() -> None:
    """Make `benchmarks` importable from the checkout.

    Raises
    ------
    ConstrainedError
        The package is not in a checkout.
    """
    if not (CHECKOUT / "benchmarks" / "papers.py").is_file():
        raise ConstrainedError(
            "the benchmarks are not part of the installed package",
            "clone the repository, run `pip install -e .` in it, and call this command again",
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))  # an editable install makes only `constrained` importable


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure: agents on games, masks beside other engines', the household against published transcripts",
        description="Run a benchmark; each prints a table and writes JSON.",
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
        summary = (module.__doc__ or "").strip().split("\n")[0]
        benchmark = benchmarks.add_parser(name, help=summary, description=summary)
        module.add_arguments(benchmark)
        benchmark.set_defaults(run=module.run_command)
