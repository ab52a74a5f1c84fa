"""Our masks beside XGrammar's, llguidance's, outlines_core's and lm-format-enforcer's: times, bytes and correctness.

    constrained bench engine --json benchmarks/results/engine.json --plot docs/engine.svg

Every engine runs in a process of its own, with one thread, over the same vocabularies, grammars and texts; every mask
of every engine is compared. A finished measurement is one line of a `.jsonl` file in `--output`; an interrupted run
resumes with what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from benchmarks import plot_style, reporting
from benchmarks.engine import engines, exact, first, report
from benchmarks.engine.comparison import Kept, Settings, SideBySide
from benchmarks.engine.measure import time_threads
from benchmarks.engine.plot import draw
from benchmarks.engine.vocabularies import BY_SIZE, load
from benchmarks.engine.workloads import WORKLOADS, batch
from benchmarks.reporting import add_exact, add_json, check_exact, describe_machine, markdown
from constrained import __version__
from constrained.errors import ConstrainedError

SIZES = (64, 512)
"""Rows of the batches that are filled on several threads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    usual, add = Settings(), parser.add_argument
    add("--vocabulary", action="append", choices=BY_SIZE, help="repeatable; default: all")
    add("--workload", action="append", choices=tuple(WORKLOADS), help="repeatable; default: all")
    add("--engine", action="append", choices=engines.NAMES, help="repeatable; default: all")
    add("--repeats", type=int, default=usual.repeats, help=f"at most (default: {usual.repeats})")
    add("--seconds", type=float, default=usual.seconds, help=f"time for the repeats of one measurement (default: "
        f"{usual.seconds:g})")  # fmt: skip
    add("--limit", type=float, default=usual.limit, help=f"seconds after which an engine is stopped (default: "
        f"{usual.limit:g})")  # fmt: skip
    add("--output", type=Path, default=Path("runs/engine"), help="folder of the runs")
    add("--fresh", action="store_true", help="measure again what is finished")
    add_json(parser)
    add("--plot", type=Path, metavar="FILE", help="draw them: .svg, .png or .pdf")
    add(
        "--threads", type=int, metavar="N", help="no peers: our masks of 64 and 512 rows in one call, on 1 to N threads"
    )
    words = "only text to first mask of `choices`, in CPU time: every engine from a grammar's text, and with caches"
    add("--first", action="store_true", help=words)
    add_exact(parser, exact.RECORD)


def run_command(options: argparse.Namespace) -> int:
    _check(options)
    vocabularies = [name for name in BY_SIZE if not options.vocabulary or name in options.vocabulary]
    workloads = [name for name in WORKLOADS if not options.workload or name in options.workload]
    if options.exact:
        return exact.run_command(vocabularies, workloads, options.update)
    if options.threads:
        return _run_threads(vocabularies, options)
    if options.first:
        rows = [{"vocabulary": name, "seconds": first.measure(load(name))} for name in vocabularies]
        figures = {"rounds": first.ROUNDS, "versions": first.versions(), "rows": rows}
        return reporting.report(first.table(rows), figures, options)
    names = [name for name in engines.NAMES if not options.engine or name in options.engine]
    settings = Settings(options.repeats, options.seconds, options.limit)
    digest = hashlib.sha256(repr((__version__, settings)).encode()).hexdigest()[:10]
    path = options.output / f"engine-{digest}.jsonl"
    if options.fresh:
        path.unlink(missing_ok=True)
    finished = Kept(path)
    with tqdm(total=len(vocabularies) * len(workloads), unit="workload", disable=None) as bar:
        for number, vocabulary in enumerate(vocabularies):
            cases = [WORKLOADS[name]() for name in workloads]
            tell = bar.set_description_str
            for _ in SideBySide(vocabulary, names, settings, finished, vocabularies[:number], tell).run(cases):
                bar.update()
        bar.set_description_str("done")
    asked = {None, *workloads}
    wanted = [
        r
        for r in finished.records
        if r["vocabulary"] in vocabularies and r["engine"] in names and r["workload"] in asked
    ]
    tables = [report.table(wanted, name) for name in reversed(vocabularies)]
    figures = result(wanted, settings)
    reporting.report("\n\n".join(tables) + "\n", figures, options)
    if options.plot:
        draw(figures, options.plot)
    return 0


def _run_threads(vocabularies: list[str], options: argparse.Namespace) -> int:
    """Time batches on several threads, print a table, and write the figures if asked to."""
    measured = []
    for name in tqdm(vocabularies, unit="vocabulary", disable=None):
        measured += [{"vocabulary": name, **row} for row in time_threads(load(name), batch(), SIZES, options.threads)]
    figures = {"command": f"constrained bench engine --threads {options.threads}", "machine": describe_machine()}
    return reporting.report(threads_table(measured), {**figures, "measurements": measured}, options)


def threads_table(measured: list[dict]) -> str:
    """Times of a call, and how many times faster it is than on one thread, as Markdown."""
    alone = {(m["vocabulary"], m["rows"]): m for m in measured if m["threads"] == 1}
    heads = ("vocabulary", "rows", "threads", "new texts", "speed-up", "known texts", "speed-up")
    rows = []
    for m in measured:
        one = alone[m["vocabulary"], m["rows"]]
        cells = ((f"{1e6 * m[kind]:.0f} µs", f"{one[kind] / m[kind]:.2f}") for kind in ("new", "known"))
        rows.append([m["vocabulary"], m["rows"], m["threads"], *chain.from_iterable(cells)])
    return markdown(heads, rows)


def _check(options: argparse.Namespace) -> None:
    """Check the options before anything slow begins."""
    check_exact(options)
    if options.threads is not None and not 1 <= options.threads <= 64:
        raise ConstrainedError("--threads is a number from 1 to 64")
    if options.repeats < 1 or options.seconds <= 0 or options.limit <= 0:
        raise ConstrainedError("--repeats, --seconds and --limit are positive numbers")
    if options.plot:
        plot_style.check(options.plot)


def result(records: list[dict], settings: Settings) -> dict:
    """All figures, the machine and settings, and which targets were reached."""
    versions = {r["engine"]: r["version"] for r in records if r["workload"] is None and r["status"] == "measured"}
    aims = [
        {"vocabulary": vocabulary, "workload": row.workload, "figure": row.figure, "ours / best": row.ratio,
         "best": row.best, "target": report.TARGETS[row.workload, row.figure].words, "reached": row.reached}
        for vocabulary in dict.fromkeys(r["vocabulary"] for r in records)
        for row in report.rows(records, vocabulary)
        if (row.workload, row.figure) in report.TARGETS
    ]  # fmt: skip
    return {
        "command": "constrained bench engine",
        "machine": describe_machine(),
        "versions": versions,
        "settings": asdict(settings),
        "targets": aims,
        "measurements": records,
    }
