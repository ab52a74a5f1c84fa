"""Convert published solutions into Lumos's actions by rule, and execute them: do they give the gold answers?

    constrained bench executor --dataset gsm8k --limit 100

Every row of GSM8K, SVAMP and StrategyQA is converted without a model. Every text of a conversion is checked by the
grammars of `grammars/lumos/`, with the slots bound at that point, and the actions are executed from their text.
StrategyQA's results depend on an index and a model: its conversions are only checked.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict

from tqdm import tqdm

from benchmarks.reporting import add_json, report
from constrained.cli.options import whole_number
from constrained.training.annotations.convert import DATASETS, converted, refused


def measure(dataset: str, limit: int | None = None) -> dict:
    """Convert, check and execute a data set.

    Returns
    -------
    dict
        "rows"; "converted"; "admitted", conversions whose every text the grammars admit; "reproduced", those whose
        execution gives the answer; "actions"; "readings", how solutions were read; "failed", reason -> rows; "seconds".
    """
    counts: Counter[str] = Counter()
    readings: Counter[str] = Counter()
    failed: dict[str, list[str]] = defaultdict(list)
    began = time.perf_counter()
    for row in tqdm(converted(dataset, limit=limit), desc=dataset, unit=" rows", leave=False, disable=None):
        counts["rows"] += 1
        if row.failure:
            failed[row.failure].append(row.name)
        if row.annotation is None:
            continue
        counts["converted"] += 1
        readings[row.annotation.reading] += 1
        counts["actions"] += sum(step.turn.count("; R") + 1 for step in row.annotation.steps)
        if refused(row.annotation) is None:
            counts["admitted"] += 1
        else:
            failed["the grammars don't admit it"].append(row.name)
        counts["reproduced"] += not row.failure and dataset != "strategyqa"
    return {
        **{name: counts[name] for name in ("rows", "converted", "admitted", "reproduced", "actions")},
        "readings": dict(readings.most_common()),
        "failed": dict(failed),
        "seconds": round(time.perf_counter() - began, 1),
    }


def table(figures: dict[str, dict]) -> str:
    """The figures as lines of text, and the failures with their rows."""
    lines = [_line("data set", "rows", "converted", "admitted", "reproduced", "actions", "seconds")]
    for name, f in figures.items():
        share = f"{f['reproduced']} = {f['reproduced'] / f['rows']:.2%}" if f["reproduced"] else "needs QA"
        lines.append(_line(name, f["rows"], f["converted"], f["admitted"], share, f["actions"], f["seconds"]))
    for name, f in figures.items():
        lines += ["", f"{name}: read by " + ", ".join(f"{how} {count}" for how, count in f["readings"].items())]
        for reason, names in f["failed"].items():
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            lines.append(f"  {len(names):>4} {reason}: {shown}")
    return "\n".join(lines)


def _line(name, rows, converted, admitted, reproduced, actions, seconds) -> str:
    return f"{name:<11} {rows:>6} {converted:>10} {admitted:>9} {reproduced:>16} {actions:>8} {seconds:>8}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", choices=DATASETS, action="append", help="only this one; may be given again")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="only the first N rows of each")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    figures = {name: measure(name, options.limit) for name in options.dataset or DATASETS}
    return report(table(figures), figures, options)
