"""The table: our rows, then the papers'."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.agents.published import Published
from benchmarks.reporting import markdown

COLUMNS = {
    "steps of won": ("steps when won", "{:.1f}"),
    "invalid %": ("invalid", "{:.2f} %"),
    "misordered %": ("misordered", "{:.2f} %"),
    "pruned mass %": ("pruned mass", "{:.2f} %"),
    "prompt tokens": ("tokens read", "{:,.0f}"),
    "tokens": ("tokens written", "{:,.0f}"),
    "dollars": ("cost", "${:.4f}"),
    "seconds": ("s/task", "{:.2f}"),
}
"""Figure -> its heading and format; tokens, cost and seconds are per task."""


def table(rows: list[dict], measures: Sequence[str], published: Sequence[Published] = ()) -> str:
    """Our figures and the papers' as Markdown, with success by kind of task below.

    Parameters
    ----------
    rows : list of dict
        `metrics.summarise`, with "strategy", "masks" and "model"; "knowledge" if it is not the suite's own.
    measures : sequence of str
        The first columns.
    published : sequence of Published
    """
    columns = {f"{measure} %": (measure, "{:.1f} %") for measure in measures} | COLUMNS
    given = [*rows, *(row.figures for row in published)]
    columns = {key: column for key, column in columns.items() if any(key in figures for figures in given)}
    head = ["strategy", "model", "masks", "tasks", *(heading for heading, _ in columns.values())]
    cells = [[row_name(row), row["model"], _on(row), row["tasks"], *_cells(columns, row)] for row in rows]
    cells += [[f"*{row.method}*", row.model, "", "", *_cells(columns, row.figures)] for row in published]
    text = [markdown(head, cells, left=None)]
    sources = list(dict.fromkeys(row.paper for row in published))
    text += [f"\n*In italics*: as published. {'. '.join(sources)}."] if sources else []
    text += [
        f"\n{row['failed']} tasks of {row_name(row)} failed, counted as lost: run again to take them up."
        for row in rows
        if row["failed"]
    ]
    text.append(f"\n{measures[0].capitalize()} by kind of task (%):")
    for row in rows:
        kinds = ", ".join(f"{kind} {value:.0f}" for kind, value in row[f"{measures[0]} % by kind"].items())
        text.append(f"  {row_name(row)}, masks {_on(row)}: {kinds}")
    return "\n".join(text)


def row_name(row: dict) -> str:
    """The strategy, and the knowledge it was masked with if not the environment's own."""
    return row["strategy"] + (f", held to {row['knowledge']}" if "knowledge" in row else "")


def _on(row: dict) -> str:
    return "on" if row["masks"] else "off"


def _cells(columns: dict, figures: dict) -> list[str]:
    return [form.format(figures[key]) if key in figures else "–" for key, (_, form) in columns.items()]
