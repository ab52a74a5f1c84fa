"""What the benchmarks over the expert's play have in common: which games, and where their figures go."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from constrained.files import to_json, write_whole


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """`--every` and `--json`; `verb` is what is done with a game."""
    parser.add_argument("--every", type=int, default=1, help=f"{verb} each N-th training game only")
    parser.add_argument("--json", type=Path, help="write the figures to this file")


def give(figures: dict, table: Callable[[dict], str], options: argparse.Namespace) -> None:
    """Print the table, write the JSON."""
    print(table(figures))
    if options.json:
        write_whole(options.json, to_json(figures))
