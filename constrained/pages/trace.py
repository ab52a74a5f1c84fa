"""The trace page: a run step by step, each token with what the masks took from it, in one HTML file."""

from __future__ import annotations

from pathlib import Path

from constrained.pages.page import page, static
from constrained.pages.run_data import run_data

SCRIPTS = (
    "dom.js", *(f"trace/{name}.js" for name in ("run", "odds", "tokens", "graph", "inspector", "game", "lists", "keys", "main")),
)  # fmt: skip
STYLES = (
    "graph.css", *(f"trace/{name}.css" for name in ("layout", "lists", "game", "tokens", "inspector", "graph", "help")),
)  # fmt: skip


def trace_page(path: str | Path, **choice) -> str:
    """The page of a run's file; `choice` as of :func:`~constrained.pages.run_data.run_data`."""
    return render(run_data(path, **choice))


def render(data: dict) -> str:
    """The page of a run's data."""
    knowledge = data["knowledge"] or {}
    body = static("trace/body.html").replace("<!-- the action graph -->", knowledge.pop("svg", ""))
    return page(f"{data['file']} · trace", body, styles=STYLES, scripts=SCRIPTS, data=data)
