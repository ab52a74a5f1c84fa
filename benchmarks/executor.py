"""Convert published solutions into Lumos's actions by rule, and execute them: do they come to the gold answers?

    constrained bench executor [--dataset NAME] [--limit N] [--json FILE]

Every row of GSM8K, SVAMP and StrategyQA is converted without a model. Of each conversion every text is held
against the grammars of `grammars/lumos/`, the slots bound as they stand there, and the actions are executed from
their text. What StrategyQA's actions come to depends on an index and a model: its conversions are only checked.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from constrained.files import to_json, write_whole
from constrained.training.annotations.convert import DATASETS, converted, refused

RESULTS = Path("benchmarks/results/executor.json")


@dataclass
class Tally:
    """What converting a data set came to.

    Attributes
    ----------
    rows, converted, admitted, reproduced : int
        `admitted`: conversions whose every text the grammars admit; `reproduced`: whose execution gives the answer.
    actions : int
    readings : Counter
        How solutions were read.
    failed : dict of str to list of str
        By reason, the rows' names.
    seconds : float
    """

    rows: int = 0
    converted: int = 0
    admitted: int = 0
    reproduced: int = 0
    actions: int = 0
    readings: Counter = field(default_factory=Counter)
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0

    def to_json(self) -> dict:
        return {
            "rows": self.rows,
            "converted": self.converted,
            "admitted": self.admitted,
            "reproduced": self.reproduced,
            "actions": self.actions,
            "readings": dict(self.readings.most_common()),
            "failed": dict(self.failed),
            "seconds": round(self.seconds, 1),
        }


def measure(dataset: str, limit: int | None = None) -> Tally:
    """Convert, check and execute a data set."""
    tally, began = Tally(), time.perf_counter()
    for row in tqdm(converted(dataset, limit=limit), desc=dataset, unit=" rows", leave=False):
        tally.rows += 1
        if row.failure:
            tally.failed[row.failure].append(row.name)
        if row.annotation is None:
            continue
        tally.converted += 1
        tally.readings[row.annotation.reading] += 1
        tally.actions += sum(step.turn.count("; R") + 1 for step in row.annotation.steps)
        text = refused(row.annotation)
        if text is None:
            tally.admitted += 1
        else:
            tally.failed["the grammars don't admit it"].append(row.name)
        tally.reproduced += not row.failure and dataset != "strategyqa"
    tally.seconds = time.perf_counter() - began
    return tally


def table(tallies: dict[str, dict]) -> str:
    """The figures as lines of text; where something failed, how often and in which rows."""
    lines = [_line("data set", "rows", "converted", "admitted", "reproduced", "actions", "seconds")]
    for name, t in tallies.items():
        share = f"{t['reproduced']} = {t['reproduced'] / t['rows']:.2%}" if t["reproduced"] else "needs QA"
        lines.append(_line(name, t["rows"], t["converted"], t["admitted"], share, t["actions"], t["seconds"]))
    for name, t in tallies.items():
        lines += ["", f"{name}: read by " + ", ".join(f"{how} {count}" for how, count in t["readings"].items())]
        for reason, names in t["failed"].items():
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            lines.append(f"  {len(names):>4} {reason}: {shown}")
    return "\n".join(lines)


def _line(name, rows, converted, admitted, reproduced, actions, seconds) -> str:
    return f"{name:<11} {rows:>6} {converted:>10} {admitted:>9} {reproduced:>16} {actions:>8} {seconds:>8}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", choices=list(DATASETS), action="append", help="only this one; may be given again")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N rows of each")
    parser.add_argument("--json", type=Path, help=f"write the figures to this file, as {RESULTS} has them")


def run_command(options: argparse.Namespace) -> int:
    """Print the table, write the JSON."""
    tallies = {name: measure(name, options.limit).to_json() for name in options.dataset or DATASETS}
    print(table(tallies))
    if options.json:
        write_whole(options.json, to_json(tallies))
    return 0
