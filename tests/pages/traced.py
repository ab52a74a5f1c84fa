"""Runs for the tests of pages: real ones, played by the embedded model in rooms that are made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from constrained.cli import main


def play(folder: Path, *options: str, strategy: str = "knowagent", level: str = "goal", games: int = 2) -> Path:
    """The file of a run of some games, with these options of the command."""
    command = ["bench", "agents", "--environment", "household", "--games", str(games), "--level", level]
    command += ["--strategy", strategy, "--random", "0", "--output", str(folder), *options]
    assert main(command) == 0
    [run] = folder.glob("*.jsonl")
    return run


def lines_of(run: Path) -> list[dict]:
    """The lines of a run's file."""
    return [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]


def rewritten(run: Path, target: Path, change: Callable[[list[dict]], Iterable[dict]]) -> Path:
    """A copy of a run's file with its lines changed."""
    text = "".join(json.dumps(line) + "\n" for line in change(lines_of(run)))
    target.write_text(text, encoding="utf-8")
    return target
