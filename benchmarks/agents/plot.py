"""The picture: each strategy's results by level of masks, and the papers' figures below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.agents.published import Published, published
from benchmarks.agents.report import row_name
from benchmarks.dot_chart import Group, Line, Panel, draw_dots
from benchmarks.result_files import COUNT, FIGURE, TEXT, Kind, Maybe
from constrained.errors import ConstrainedError

MARKS = {
    "other": "masks off",
    "form": "form",
    "ours": "state (the default)",
    "sound": "goal-sound",
    "goal": "goal",
    "crossed": "as published",
}
OF_LEVEL = {"off": "other", "form": "form", "state": "ours", "goal-sound": "sound", "goal": "goal"}
"""Level -> its mark."""

WRONG, STEPS = "wrong %", "steps of won"
LEVEL = Kind(f"one of {', '.join(OF_LEVEL)}", lambda value: isinstance(value, str) and value in OF_LEVEL)
_MISTAKES = ("invalid %", "misordered %", "pruned mass %")


def form(result):
    """The fields of the command's JSON that the picture needs, besides the measures."""
    figures = {"invalid %": FIGURE, "misordered %": FIGURE, "steps of won": Maybe(FIGURE)}
    row = {"strategy": TEXT, "model": TEXT, "level": LEVEL, "tasks": COUNT, "knowledge": Maybe(TEXT), **figures}
    return {"suite": TEXT, "rows": [row]}


def draw(result: Mapping, path: Path) -> None:
    """Draw a result of `constrained bench agents --json`.

    The panels are the suite's first measure, others that papers print, invalid or misordered actions, and the steps of
    tasks won. Raises ConstrainedError if nothing was played.
    """
    rows, papers = result["rows"], published(result["suite"])
    measures = _measures(rows, papers)
    if not measures:
        raise ConstrainedError("nothing was played, so there is nothing to draw")
    percent = "{:.1f}".format
    scored = "% of tasks; right is better →"
    panels = {
        **{measure: Panel(measure.removesuffix(" %"), scored, percent, most=100) for measure in measures},
        WRONG: Panel("invalid or misordered actions", "% of actions; ← left is better", percent),
        STEPS: Panel("steps of tasks won", "steps a task; ← left is shorter", percent),
    }
    groups = [Group(f"{model} model, {tasks} tasks", lines) for (model, tasks), lines in _ours(rows, panels).items()]
    groups += [Group(f"as published: {paper}", lines) for paper, lines in _theirs(papers, panels).items()]
    shown = {kind for group in groups for line in group.lines for points in line.points.values() for kind in points}
    draw_dots(
        path,
        f"Agents on {result['suite']}, by what the masks hold"
        + (", beside the papers' figures" if "crossed" in shown else ""),
        {kind: words for kind, words in MARKS.items() if kind in shown},
        panels,
        groups,
        "Played by `constrained bench agents`, drawn by `constrained plot agents`. Papers' other games and models are "
        "named in their headings.",
    )


def _measures(rows: Sequence[Mapping], papers: Sequence[Published]) -> list[str]:
    measures = [key for row in rows[:1] for key, value in row.items() if key.endswith(" %") and FIGURE.fits(value)]
    first, *more = [key for key in measures if key not in _MISTAKES] or [None]
    return [first, *(key for key in more if any(key in row.figures for row in papers))] if first else []


def _ours(rows: Sequence[Mapping], panels: Mapping[str, Panel]) -> dict[tuple[str, int], list[Line]]:
    """The lines of each model: one per strategy, with a mark for each level."""
    result: dict[tuple[str, int], dict[str, dict]] = {}
    for row in rows:
        points = result.setdefault((row["model"], row["tasks"]), {}).setdefault(row_name(row), {})
        for key, figure in _figures(row, panels).items():
            points.setdefault(key, {})[OF_LEVEL[row["level"]]] = figure
    return {heading: [Line(name, points) for name, points in lines.items()] for heading, lines in result.items()}


def _theirs(papers: Sequence[Published], panels: Mapping[str, Panel]) -> dict[str, list[Line]]:
    result: dict[str, list[Line]] = {}
    for row in papers:
        points = {key: {"crossed": figure} for key, figure in _figures(row.figures, panels).items()}
        if points:
            result.setdefault(row.paper, []).append(Line(f"{row.method}, {row.model}", points))
    return result


def _figures(row: Mapping, panels: Mapping[str, Panel]) -> dict[str, float]:
    """The figures of a row that the panels show."""
    mistakes = {WRONG: row["invalid %"] + row["misordered %"]} if "invalid %" in row else {}
    return {key: figure for key, figure in {**row, **mistakes}.items() if key in panels and figure is not None}
