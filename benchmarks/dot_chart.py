"""A dot chart: named lines in groups with headings; each panel shows one figure per line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.plot_style import FAINT, MARKS, SMALL, SOFT, caption, cut, drawing, key, plain
from constrained.errors import ConstrainedError

_NAMES, _PANEL, _LINE, _INDENT = 2.25, 2.75, 0.2, 0.14
"""Inches: the column of names, a panel, the height of a line, and the indentation of names under headings."""

_GAP = 0.4
"""Space above a heading, in lines."""

MOST_LINES = 200
"""With more, the picture can't be read."""


@dataclass(frozen=True)
class Line:
    """One line: for each panel, kind of mark (see `plot_style.MARKS`) -> figure; notes say why there is none."""

    name: str
    points: Mapping[str, Mapping[str, float]]
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Lines under a heading."""

    heading: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Panel:
    """One column: `unit` is written under the axis, `words` formats a figure, the axis ends at `most` (None: auto)."""

    title: str
    unit: str
    words: Callable[[float], str]
    log: bool = False
    most: float | None = None


def draw_dots(
    path: Path, title: str, marks: Mapping[str, str], panels: Mapping[str, Panel], groups: Sequence[Group], source: str
) -> None:
    """Draw the chart; `marks` is its legend, `source` its caption. Raises ConstrainedError above `MOST_LINES` lines."""
    names = [cut(line.name, 40) for group in groups for line in group.lines]
    if len(names) > MOST_LINES:
        raise ConstrainedError(f"{len(names)} lines are too many for one picture", f"draw at most {MOST_LINES}")
    # Heights in lines from the top: a heading, its lines, a gap.
    lines, headings, end = [], [], 0.0
    for group in groups:
        headings.append((end, group.heading))
        lines += [(end + 1 + number, line) for number, line in enumerate(group.lines)]
        end += 1 + len(group.lines) + _GAP
    width, height = _NAMES + _PANEL * len(panels), 1.6 + _LINE * end
    with drawing(path, title, width, height, ncols=len(panels), sharey=True) as (figure, axes):
        axes[0].set_ylim(end - _GAP - 0.3, -0.7)
        axes[0].set_yticks([y for y, _ in lines], names)
        beside = _names(axes[0], headings)
        figure.subplots_adjust(
            left=(_INDENT + beside + 0.1) / width, right=0.975, top=1 - 0.9 / height, bottom=0.75 / height, wspace=0.2
        )
        for axis, (name, panel) in zip(axes, panels.items()):
            _panel(axis, panel, name, lines)
        key(figure, marks, 0.36)
        caption(figure, source)


def _names(axis, headings: Sequence[tuple[float, str]]) -> float:
    """Left-align the names, with the headings before them; returns the width of the column in inches."""
    labels = axis.get_yticklabels()
    beside = max(label.get_window_extent().width for label in labels) / axis.figure.dpi + 0.15
    axis.tick_params(axis="y", pad=72 * beside)
    for label in labels:
        label.set_horizontalalignment("left")
    axis.set_zorder(1)  # headings may extend over the panels, where their line is empty
    axis.patch.set_visible(False)
    for y, heading in headings:
        axis.annotate(
            cut(heading, 90), (0, y), xycoords=axis.get_yaxis_transform(), xytext=(-72 * (beside + _INDENT), 0),
            textcoords="offset points", va="center", fontweight="bold", annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    return beside


def _panel(axis, panel: Panel, name: str, lines: Sequence[tuple[float, Line]]) -> None:
    plain(axis, panel.title)
    axis.set_xlabel(panel.unit)
    if panel.log:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: panel.words(value))
        axis.minorticks_off()
    figures = [figure for _, line in lines for figure in line.points.get(name, {}).values()]
    if figures:
        _limits(axis, panel, min(figures), max(figures))
    for y, line in lines:
        _marks(axis, y, line.points.get(name, {}), panel.words)
        if note := line.notes.get(name):
            across = axis.get_yaxis_transform()
            axis.text(0.02, y, cut(note, 40), transform=across, va="center", color=SOFT, fontsize=SMALL)


def _limits(axis, panel: Panel, least: float, most: float) -> None:
    """Leave room for the text beside the marks, on both sides."""
    if panel.log:
        span = (most / least) ** 0.18 if most > least else 10.0
        axis.set_xlim(least / span**0.5, most * span**1.6)
        axis.locator_params(axis="x", numticks=5)
        return
    end = panel.most or most or 1.0
    axis.set_xlim(-0.1 * end, 1.12 * end)
    axis.set_xticks([tick for tick in axis.get_xticks() if 0 <= tick <= end])
    axis.spines["bottom"].set_bounds(0, end)


def _marks(axis, y: float, points: Mapping[str, float], words: Callable[[float], str]) -> None:
    """Draw the marks of one line, joined; the outer ones are labelled on their outer side."""
    if not points:
        return
    # Where marks would lie on each other, the others are drawn larger, around ours.
    least, most = min(points.values()), max(points.values())
    axis.plot([least, most], [y, y], color=FAINT, linewidth=1, zorder=1)
    apart = axis.transData.transform((most, y))[0] - axis.transData.transform((least, y))[0]
    hidden = len(points) > 1 and apart * 72 / axis.figure.dpi < MARKS["ours"]["markersize"] / 4
    for kind, value in points.items():
        style = {**MARKS[kind], "markersize": 11} if hidden and kind != "ours" else MARKS[kind]
        axis.plot(value, y, zorder=3 if kind == "ours" else 2, clip_on=False, **style)
    for value in dict.fromkeys((least, most)):
        side = -1 if value == least != most else 1
        axis.annotate(
            words(value), (value, y), xytext=(7 * side, 0), textcoords="offset points", va="center",
            ha="left" if side > 0 else "right", fontsize=SMALL, annotation_clip=False,
            fontweight="bold" if points.get("ours") == value else "normal",
        )  # fmt: skip
