"""A folder of runs in the browser: a list, and the trace page of each, made when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from time import time
from urllib.parse import quote

from flask import Flask, abort

from constrained.errors import ConstrainedError, DataError
from constrained.pages import local_server
from constrained.pages.html_page import page
from constrained.pages.trace_page import describe, read_record, trace_page

MOST_RUNS = 500
"""Runs in a list; the newest come first."""

MOST_SEEN = 20_000
"""Files that are looked at for them."""


@dataclass(frozen=True)
class Listed:
    """A run in the list.

    Attributes
    ----------
    name : str
        Its path in the folder, with ``/``.
    about : dict
        See :func:`~constrained.pages.trace_page.describe`; empty where the file can't be read.
    tasks, over, won : int
    size : int
        Bytes.
    changed : float
        Seconds since the epoch.
    problem : str
        Why there is nothing more to say.
    """

    name: str
    about: dict
    tasks: int
    over: int
    won: int
    size: int
    changed: float
    problem: str = ""


def runs_in(folder: str | Path) -> list[Listed]:
    """The runs below `folder`, the newest first; a file of something else, or that lies elsewhere, is none."""
    folder = Path(folder).resolve()
    found = []
    for path in _files(folder):
        file = inside(folder, path.relative_to(folder).as_posix())
        try:
            known = file.stat() if file else None
        except OSError:  # gone meanwhile
            known = None
        if known is not None:
            found.append((known.st_mtime_ns, known.st_size, path))
    listed: list[Listed] = []
    for changed, size, path in sorted(found, reverse=True):
        run = _listed(folder, path, changed, size)
        if run is not None:
            listed.append(run)
        if len(listed) == MOST_RUNS:
            break
    return listed


def _files(folder: Path) -> Iterator[Path]:
    """Files that a run's record may be; links to folders are not followed."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            seen += 1
            if seen > MOST_SEEN:
                return
            if name.endswith(".jsonl") and not name.startswith("."):
                yield Path(parent, name)


@lru_cache(maxsize=MOST_RUNS * 2)
def _listed(folder: Path, path: Path, changed: int, size: int) -> Listed | None:
    """What the list says of a file as it was at `changed`; None if it is no run's record."""
    name, moment = path.relative_to(folder).as_posix(), changed / 1e9
    try:
        with path.open("rb") as file:
            first = file.readline(200).lstrip()
        if not first.startswith(b'{"run"') and first:
            return None
        header, recorded = read_record(path)
    except ConstrainedError as error:
        return Listed(name, {}, 0, 0, 0, size, moment, error.message)
    except OSError as error:
        return Listed(name, {}, 0, 0, 0, size, moment, f"can't be read: {error.strerror}")
    ends = [task.end for task in recorded.values() if task.end is not None]
    won = sum(end.get("success") is True for end in ends)
    return Listed(name, describe(header), len(recorded), len(ends), won, size, moment)


def inside(folder: Path, name: str) -> Path | None:
    """The run's file of that name; None unless it lies in `folder`, wherever links lead."""
    if "\0" in name:
        return None
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError):  # links in a circle
        return None
    return path if path.suffix == ".jsonl" and path.is_relative_to(folder.resolve()) and path.is_file() else None


def make_app(folder: str | Path, port: int) -> Flask:
    """The Flask application: ``/`` is the list, ``/run/NAME`` a page; for who asks this machine, at this port, alone."""
    folder = Path(folder).resolve()
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder", "name the folder of runs: constrained view --serve FOLDER")
    app = Flask(__name__, static_folder=None)
    app.url_map.merge_slashes = False

    local_server.protect(app, port, token=None)

    @app.get("/")
    def listing():
        return list_page(folder, runs_in(folder))

    @app.get("/run/<path:name>")
    def run(name: str):
        path = inside(folder, name)
        if path is None:
            abort(404, "no such run")
        try:
            return trace_page(path)
        except ConstrainedError as error:
            return problem_page(name, error), 422

    return app


def list_page(folder: Path, runs: list[Listed]) -> str:
    """The list of runs as a page."""
    rows = "\n".join(map(_row, runs))
    more = f"<p>The newest {MOST_RUNS} are listed.</p>" if len(runs) == MOST_RUNS else ""
    table = (
        '<table><thead><tr><th scope="col">run</th><th scope="col">strategy</th><th scope="col">masks</th>'
        '<th scope="col">tokens</th><th scope="col">won</th><th scope="col">size</th><th scope="col">changed</th></tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table>"
    )
    empty = "<p>No run is here yet: <code>constrained bench agents --trace</code> records some.</p>"
    body = (
        f'<header class="top"><div class="title"><h1>Runs</h1><p>{escape(str(folder))}</p></div>'
        '<div class="tools"><button type="button" id="theme">Theme</button></div></header>'
        f'<main class="runs">{table if runs else empty}{more}</main>'
    )
    return page("Runs", body, styles=("trace/layout.css", "trace/browse.css"))


def problem_page(name: str, error: ConstrainedError) -> str:
    """A page that says why there is nothing to see."""
    hint = f"<p>{escape(error.hint)}</p>" if error.hint else ""
    words = f"<h1>{escape(name)}</h1><p>{escape(error.message)}</p>{hint}"
    return page(name, f'<main class="runs">{words}<p><a href="/">All runs</a></p></main>', styles=("trace/browse.css",))


def _row(run: Listed) -> str:
    name = f'<th scope="row"><a href="/run/{quote(run.name)}">{escape(run.name)}</a></th>'
    size, age = f"{run.size / 1e3:,.0f} kB", _age(time() - run.changed)
    if run.problem:
        return f'<tr>{name}<td colspan="4" class="problem">{escape(run.problem)}</td><td>{size}</td><td>{age}</td></tr>'
    going = f", {run.tasks - run.over} under way" if run.tasks > run.over else ""
    cells = [
        run.about["strategy"],
        "on" if run.about["masks"] else "off",
        "traced" if run.about["traced"] else "–",
        f"{run.won} of {run.over}{going}",
        size,
        age,
    ]
    return f"<tr>{name}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _age(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def serve(folder: str | Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve `folder` on this machine alone until interrupted; calls `ready` with the address first.

    Parameters
    ----------
    folder : Path
    port : int
        0: any that is free.
    ready : callable

    Raises
    ------
    ConstrainedError
        There is no such folder, or the port is taken, or none.
    """
    listening = local_server.listen([port])
    local_server.serve(make_app(folder, listening.getsockname()[1]), listening, ready)
