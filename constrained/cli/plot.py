"""`constrained plot`: the documents' pictures, and your own, from what benchmarks recorded; nothing is run."""

from __future__ import annotations

import argparse
from pathlib import Path

from constrained.cli.bench import find_benchmarks

RECORDED = {
    "engine": "engine.json",
    "agents": "agents_alfworld_valid_seen.json",
    "self-learning": "self_learning.json",
}
"""What can be drawn -> the result that the documents show."""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw the engine beside its peers, agents beside the papers, or rounds of self-learning",
        description="Draw what a benchmark recorded: the engine beside its peers, agents beside the papers' tables, or "
        "self-learning round by round. Without a file: the results that this project's documents show. Nothing is run.",
        epilog="examples: constrained plot agents; constrained plot self-learning rounds.json --output rounds.png",
    )
    parser.add_argument("kind", choices=tuple(RECORDED), help="what is drawn")
    parser.add_argument(
        "path",
        nargs="?",
        default="",
        metavar="RESULT",
        help="what `constrained bench` of that name wrote with --json (default: the documents' own)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="a picture: .svg, .png or .pdf (default: the kind's name with .svg, here; without "
        "RESULT in a checkout: in its docs/)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    find_benchmarks()
    from benchmarks import plot_style
    from benchmarks.agents import plot as agents
    from benchmarks.engine import plot as engine
    from benchmarks.result_files import DOCS, RESULTS, read_result
    from benchmarks.self_learning import plot as self_learning

    drawn = {"engine": engine, "agents": agents, "self-learning": self_learning}[arguments.kind]
    result = Path(arguments.path) if arguments.path else RESULTS / RECORDED[arguments.kind]
    folder = DOCS if DOCS.is_dir() and not arguments.path else Path()
    picture = arguments.output or folder / f"{arguments.kind.replace('-', '_')}.svg"
    plot_style.check(picture)
    drawn.draw(read_result(result, f"constrained bench {arguments.kind}", drawn.form), picture)
    print(f"wrote {picture}")
    return 0
