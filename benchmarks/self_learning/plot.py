"""The picture of self-learning: success, mistakes and pruned mass from round to round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import papers
from benchmarks.plot_style import INK, SMALL, SOFT, caption, cut, drawing, plain
from benchmarks.result_files import COUNT, FIGURE, TEXT, Maybe
from benchmarks.self_learning.tables import PRUNED, SAME_GAMES, suites
from constrained.errors import ConstrainedError

_FIGURES = {"tasks": COUNT, "success %": FIGURE, "invalid %": FIGURE, "misordered %": FIGURE, PRUNED: FIGURE}
ROUNDS = [{"round": COUNT, "test": {"*": {name: Maybe(kind) for name, kind in _FIGURES.items()}}}]
PANELS = {
    "success %": "success, % of tasks\n↑ up is better",
    "invalid %": "invalid, % of actions\n↓ down is better",
    "misordered %": "misordered, % of actions\n↓ down is better",
    PRUNED: "probability masked out, %\n↓ down: nearer to the knowledge",
}
STYLES = (
    ("D", "-"), ("o", "--"), ("s", ":"), ("^", "-."),
    ("v", (0, (6, 2, 1, 2, 1, 2))), ("P", (0, (1, 3))), ("X", (0, (8, 3))), ("p", (0, (3, 1, 1, 1))),
)  # fmt: skip
"""Marker and dash pattern of each line, in order; every second marker is open."""

MOST_SUITES = 12

_NAME = 30
"""Most characters of a run's name."""

_PANEL = 1.65
"""Width of a panel in inches; the names of its lines are to the right of it."""

_APART = 0.1
"""Least distance between the names of two lines, as a share of a panel's height."""


def form(result):
    """The fields that the picture needs, of `constrained train self-learning --json` or of the benchmark's."""
    runs = {"runs": [{"name": TEXT, "words": Maybe(TEXT), "rounds": ROUNDS}]}
    return ROUNDS if isinstance(result, list) else runs


def draw(result: Sequence[Mapping] | Mapping, path: Path) -> None:
    """Draw one line per run and one row of panels per test suite.

    Raises ConstrainedError if no round was tested, or there are too many runs or suites for one picture.
    """
    runs = result["runs"] if isinstance(result, Mapping) else [{"name": "", "rounds": result}]
    tested = suites(runs)
    if not tested:
        raise ConstrainedError("no round was tested yet, so there is nothing to draw", "let a round end first")
    if len(runs) > len(STYLES):
        raise ConstrainedError(f"{len(runs)} runs are too many for one picture", f"draw at most {len(STYLES)}")
    if len(tested) > MOST_SUITES:
        raise ConstrainedError(f"{len(tested)} suites are too many for one picture", f"draw at most {MOST_SUITES}")
    # All sizes are in inches, and axes take shares of the whole: room for the names beside each panel, for words above.
    words = [cut(f"{run['name']}: {run['words']}", 150) for run in runs if run.get("words")]
    beside = 0.35 + 0.06 * (max(len(cut(run["name"], _NAME)) for run in runs) + 5)
    above, width = 1.1 + 0.16 * len(words), 0.5 + len(PANELS) * (_PANEL + beside)
    height = above + 2.65 * len(tested)
    with drawing(
        path, "Self-learning, round by round", width, height, nrows=len(tested), ncols=len(PANELS), squeeze=False
    ) as (figure, axes):
        figure.subplots_adjust(
            left=0.5 / width, right=1 - beside / width, top=1 - above / height, bottom=0.75 / height,
            wspace=beside / _PANEL, hspace=0.75,
        )  # fmt: skip
        figure.text(0.1 / width, 1 - 0.35 / height, "\n".join(words), va="top", color=SOFT, fontsize=8, linespacing=1.3)
        for row, suite in zip(axes, tested):
            _row(row, suite, runs)
        caption(
            figure,
            "Played and tuned by `constrained bench self-learning`, drawn by `constrained plot self-learning`. "
            "Round 0: before any. Figures at the right: after the last round.",
        )


def _row(axes: Sequence, suite: str, runs: Sequence[Mapping]) -> None:
    counts = {report["test"].get(suite, {}).get("tasks") for run in runs for report in run["rounds"]} - {None}
    words = f"{suite}, {max(counts)} tasks" if counts else suite
    axes[0].annotate(
        cut(words, 90), (0, 1), xycoords="axes fraction", xytext=(-29, 36), textcoords="offset points",
        fontweight="bold", annotation_clip=False,
    )  # fmt: skip
    for axis, (key, title) in zip(axes, PANELS.items()):
        lines = {run["name"]: _points(run["rounds"], suite, key) for run in runs}
        _panel(axis, title, lines)
        if axis is axes[0]:
            axis.set_ylim(0, 105)
            _levels(axis, suite)
        _names(axis, lines)


def _points(rounds: Sequence[Mapping], suite: str, key: str) -> dict[int, float]:
    """Round -> figure, where it was measured; without masks there is no pruned mass, rather than one of 0."""
    result = {report["round"]: report["test"].get(suite, {}).get(key) for report in rounds}
    points = {number: figure for number, figure in result.items() if figure is not None}
    return points if key != PRUNED or any(points.values()) else {}


def _panel(axis, title: str, lines: Mapping[str, Mapping[int, float]]) -> None:
    plain(axis, title, along="y")
    axis.set_xlabel("round", labelpad=1)
    for number, points in enumerate(lines.values()):
        axis.plot(list(points), list(points.values()), clip_on=False, zorder=3, **_style(number))
    axis.set_xticks(sorted({number for points in lines.values() for number in points}))
    highest = max((value for points in lines.values() for value in points.values()), default=0)
    axis.set_ylim(0, 1.1 * highest or 1)


def _names(axis, lines: Mapping[str, Mapping[int, float]]) -> None:
    """Write each line's name and last figure at its right end, moved apart where they would touch."""
    ends = {name: list(points.values())[-1] for name, points in lines.items() if points}
    room = axis.get_ylim()[1] * _APART
    lowest = -room
    for name, value in sorted(ends.items(), key=lambda end: end[1]):
        lowest = max(lowest + room, value)
        axis.annotate(
            f"{cut(name, _NAME)} {value:.3g}".strip(), (1, lowest), xycoords=axis.get_yaxis_transform(), xytext=(2, 0),
            textcoords="offset points", va="center", fontsize=SMALL, annotation_clip=False,
        )  # fmt: skip


def _levels(axis, suite: str) -> None:
    """Mark KnowAgent's success on the same games with each of its models."""
    column = SAME_GAMES.get(suite, "")
    for (method, model), figures in papers.KNOWAGENT_TABLE_1.items():
        if method == "KnowAgent" and column in figures:
            axis.axhline(figures[column], color=SOFT, linewidth=0.7, zorder=1)
            words = f"{method}, {model}: {figures[column]:.1f}"
            axis.annotate(
                words, (0.5, figures[column]), xycoords=axis.get_yaxis_transform(), xytext=(0, -1.5),
                textcoords="offset points", ha="center", va="top", color=SOFT, fontsize=SMALL,
            )  # fmt: skip


def _style(number: int) -> dict:
    marker, dash = STYLES[number]
    face = "white" if number % 2 else INK
    return {"marker": marker, "linestyle": dash, "color": INK, "markerfacecolor": face, "linewidth": 1.2}
