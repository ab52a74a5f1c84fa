"""The picture: the times of every engine, workload by workload."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.dot_chart import Group, Line, Panel, draw_dots
from benchmarks.engine.engines import NAMES
from benchmarks.engine.report import amount, rows
from benchmarks.engine.workloads import WORKLOADS
from benchmarks.result_files import FLAG, TEXT, TIME, Maybe
from constrained.errors import ConstrainedError

_MEASUREMENT = {"vocabulary": TEXT, "workload": Maybe(TEXT), "engine": TEXT, "status": TEXT, "reason": Maybe(TEXT)}
_MEASURED = _MEASUREMENT | {"correct": FLAG, "first": Maybe(TIME), "p50": Maybe(TIME), "worst": Maybe(TIME)}

BETTER = "time, log scale; ← further left is faster"
PANELS = {
    "first": Panel("text → first mask", BETTER, amount, log=True),
    "p50": Panel("a later mask, typical (p50)", BETTER, amount, log=True),
    "worst": Panel("a later mask, worst", BETTER, amount, log=True),
}
MARKS = {"ours": "constrained (ours)", "other": "peer", "crossed": "peer with wrong masks"}


def form(result):
    """The fields of `command.result` that the picture needs."""
    return {"machine": {"processor": TEXT}, "versions": {"*": TEXT}, "measurements": [_measurement]}


def _measurement(record):
    timed = isinstance(record, Mapping) and record.get("status") == "measured" and record.get("workload")
    return _MEASURED if timed else _MEASUREMENT


def draw(result: Mapping, path: Path) -> None:
    """Draw a result of `command.result`: the largest vocabulary measured, Tekken if it is among them.

    Raises ConstrainedError if nothing was measured.
    """
    vocabularies = [r["vocabulary"] for r in result["measurements"]]
    vocabulary = "tekken" if "tekken" in vocabularies else vocabularies[-1] if vocabularies else ""
    here = [r for r in result["measurements"] if r["vocabulary"] == vocabulary]
    found = {(row.workload, row.figure): row for row in rows(here, vocabulary)}
    groups = []
    for name in WORKLOADS:
        lines = [line for engine in NAMES if (line := _line(engine, name, here, found))]
        if any(line.points for line in lines):
            groups.append(Group(f"{name}: {WORKLOADS[name]().summary}", lines))
    if not groups:
        raise ConstrainedError("nothing was measured, so there is nothing to draw")
    versions = ", ".join(f"{name} {result['versions'][name]}" for name in NAMES if name in result["versions"])
    draw_dots(
        path,
        f"Masks over the {vocabulary} vocabulary: how long each engine takes, by workload",
        MARKS,
        PANELS,
        groups,
        f"Measured by `constrained bench engine`, drawn by `constrained plot engine`. One thread, "
        f"{result['machine']['processor']}; {versions}.",
    )


def _line(engine: str, workload: str, records: list[dict], found: Mapping) -> Line | None:
    """An engine's figures, or why it has none; None where it can't read the workload at all."""
    given = [r for r in records if (r["engine"], r["workload"]) == (engine, workload)]
    rows_here = {figure: found[workload, figure] for figure in PANELS if (workload, figure) in found}
    points = {
        figure: {"ours" if engine == "ours" else "crossed" if engine in row.wrong else "other": row.values[engine]}
        for figure, row in rows_here.items()
        if engine in row.values
    }
    over = [r["reason"].partition(",")[0] for r in given if r["status"] == "over time" and r.get("reason")]
    if not points and not over:
        return None
    return Line("constrained" if engine == "ours" else engine, points, {"first": over[0]} if over else {})
