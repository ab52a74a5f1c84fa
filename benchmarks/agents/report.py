"""The tables: our rows by level, and the papers' in one of their own."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.agents.published import Published
from benchmarks.reporting import markdown

COLUMNS = {
    "total reward": ("total reward", "{:,.0f}"),
    "steps to reward": ("steps to first reward", "{:.1f}"),
    "steps of won": ("steps when won", "{:.1f}"),
    "invalid %": ("invalid", "{:.2f} %"),
    "misordered %": ("misordered", "{:.2f} %"),
    "wrong paths %": ("wrong paths", "{:.2f} %"),
    "pruned mass %": ("pruned mass", "{:.2f} %"),
    "prompt tokens": ("tokens read", "{:,.0f}"),
    "tokens": ("tokens written", "{:,.0f}"),
    "dollars": ("cost", "${:.4f}"),
    "seconds": ("s/task", "{:.2f}"),
}
"""Figure -> its heading and format; tokens, cost and seconds are per task."""


ANY = "any admitted action"
"""The strategy of the rows in which a random choice takes the model's place."""


def table(rows: list[dict], measures: Sequence[str], published: Sequence[Published] = ()) -> str:
    """Our figures as Markdown, the papers' in a table of their own, then success by kind of task.

    Parameters
    ----------
    rows : list of dict
        `metrics.summarise`, with "strategy", "model" and "level"; "knowledge" if it is not the suite's own; "seeds" of
        a random choice.
    measures : sequence of str
        The first columns.
    published : sequence of Published
    """
    shown = {f"{measure} %": (measure, "{:.1f} %") for measure in measures} | COLUMNS
    columns = {key: column for key, column in shown.items() if any(key in row for row in rows)}
    head = ["strategy", "model", "masks", "tasks", *(heading for heading, _ in columns.values())]
    cells = [[row_name(row), _model(row), row["level"], row["tasks"], *_cells(columns, row)] for row in rows]
    text = [markdown(head, cells, left=None)]
    text += [_published(shown, published)] if published else []
    text += [
        f"\n{row['failed']} tasks of {row_name(row)} failed, counted as lost: run again to take them up."
        for row in rows
        if row["failed"]
    ]
    text.append(f"\n{measures[0].capitalize()} by kind of task (%):")
    for row in rows:
        kinds = ", ".join(f"{kind} {value:.0f}" for kind, value in row[f"{measures[0]} % by kind"].items())
        text.append(f"  {row_name(row)}, {_model(row)}, {row['level']}: {kinds}")
    return "\n".join(text)


def row_name(row: dict) -> str:
    """The strategy, what it is put over, the knowledge it was masked with if not the environment's own, and whether
    it was told none."""
    held = f" over {row['over']}" if "over" in row else ""
    held += f", held to {row['knowledge']}" if "knowledge" in row else ""
    return row["strategy"] + held + ("" if row.get("knowledge in prompt", True) else ", no knowledge told")


def _model(row: dict) -> str:
    return f"{row['model']} ({row['seeds']} seeds)" if row.get("seeds", 1) > 1 else row["model"]


def _published(shown: dict, rows: Sequence[Published]) -> str:
    """The papers' rows, with what differs from our setting below."""
    columns = {key: column for key, column in shown.items() if any(key in row.figures for row in rows)}
    head = ["published", "model", "from", *(heading for heading, _ in columns.values())]
    cells = [[row.method, row.model, row.paper, *_cells(columns, row.figures)] for row in rows]
    differs = dict.fromkeys(f"{row.paper}: {row.differs}" for row in rows)
    lines = "\n".join(f"- {line}." for line in differs)
    return f"\n{markdown(head, cells, left=None)}\n\nWhat differs there:\n\n{lines}"


def _cells(columns: dict, figures: dict) -> list[str]:
    cells = [form.format(figures[key]) if key in figures else "–" for key, (_, form) in columns.items()]
    if figures.get("seeds", 1) > 1:
        least, most = min(figures["by seed"]), max(figures["by seed"])
        cells[0] += f" ({least:.1f}–{most:.1f})"
    return cells
