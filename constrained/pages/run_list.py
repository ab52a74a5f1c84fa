"""A folder of runs in the browser: a list, and the trace page of each, made when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from time import time
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from constrained.agents.run_file import read_tasks
from constrained.errors import ConstrainedError, DataError
from constrained.knowledge.report import counted
from constrained.pages import local_server
from constrained.pages.html_page import page
from constrained.pages.trace_page import describe, trace_page

MOST_RUNS = 500
"""Runs in the list; the newest come first."""

MOST_FILES = 20_000
"""Files that are searched for runs."""


@dataclass(frozen=True)
class ListedRun:
    """A run in the list."""

    name: str  # its path in the folder, with /
    size: int  # bytes
    changed: float  # seconds since the epoch
    # see :func:`~constrained.pages.trace_page.describe`; empty if the file can't be read
    about: dict = field(default_factory=dict)
    tasks: int = 0
    finished: int = 0
    won: int = 0
    problem: str = ""  # why the file can't be read


def runs_in(folder: Path) -> list[ListedRun]:
    """The runs below `folder`, newest first; links that lead out of it are ignored."""
    result = []
    for path in _candidates(folder):
        try:
            file = inside(folder, path.relative_to(folder).as_posix())
            status = file.stat() if file else None
        except OSError:  # deleted meanwhile
            continue
        if status:
            result.append((status.st_mtime_ns, status.st_size, path))
    runs: list[ListedRun] = []
    for changed, size, path in sorted(result, reverse=True):
        if (run := _read(folder, path, changed, size)) is not None:
            runs.append(run)
        if len(runs) == MOST_RUNS:
            break
    return runs


def _candidates(folder: Path) -> Iterator[Path]:
    """The .jsonl files below `folder`; hidden folders and links to folders are not followed."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            seen += 1
            if seen > MOST_FILES:
                return
            if name.endswith(".jsonl") and not name.startswith("."):
                yield Path(parent, name)


@lru_cache(maxsize=MOST_RUNS * 2)
def _read(folder: Path, path: Path, changed: int, size: int) -> ListedRun | None:
    """Read a file; None if it is no run. A file with the same time of change and size is read once."""
    entry = path.relative_to(folder).as_posix(), size, changed / 1e9
    try:
        with path.open("rb") as file:
            first = file.readline(200).lstrip()
        if not first.startswith(b'{"run"') and first:
            return None
        header, records = read_tasks(path)
    except ConstrainedError as error:
        return ListedRun(*entry, problem=error.message)
    except OSError as error:
        return ListedRun(*entry, problem=f"can't be read: {error.strerror}")
    ends = [task.end for task in records.values() if task.end is not None]
    won = sum(end.get("success") is True for end in ends)
    return ListedRun(*entry, describe(header), len(records), len(ends), won)


def inside(folder: Path, name: str) -> Path | None:
    """The .jsonl file `name` in `folder`; None if there is none, or if links lead it out of the folder."""
    if "\0" in name:
        return None
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError):  # links in a circle
        return None
    return path if path.suffix == ".jsonl" and path.is_relative_to(folder.resolve()) and path.is_file() else None


def make_app(folder: str | Path, port: int) -> local_server.Protected:
    """The application for this machine: ``/`` is the list, ``/run/NAME`` a trace page."""
    folder = Path(folder).resolve()
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder", "name the folder of runs: constrained view --serve FOLDER")

    def listing(request: Request) -> HTMLResponse:
        return HTMLResponse(_list_page(folder, runs_in(folder)))

    def run(request: Request) -> HTMLResponse:
        name = request.path_params["name"]
        path = inside(folder, name)
        if path is None:
            raise HTTPException(404, "no such run")
        try:
            return HTMLResponse(trace_page(path))
        except ConstrainedError as error:
            hint = f"<p>{escape(error.hint)}</p>" if error.hint else ""
            problem = f"<h1>{escape(name)}</h1><p>{escape(error.message)}</p>{hint}"
            body = f'<main class="runs">{problem}<p><a href="/">All runs</a></p></main>'
            return HTMLResponse(page(name, body, styles=("trace/browse.css",)), 422)

    return local_server.Protected(Starlette(routes=[Route("/", listing), Route("/run/{name:path}", run)]), port)


def _list_page(folder: Path, runs: list[ListedRun]) -> str:
    columns = ("run", "strategy", "masks", "tokens", "won", "size", "changed")
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    rows = "\n".join(map(_row, runs))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    empty = "<p>No run is here yet: <code>constrained bench agents --trace</code> records some.</p>"
    more = f"<p>The newest {MOST_RUNS} are listed.</p>" if len(runs) == MOST_RUNS else ""
    body = (
        f'<header class="top"><div class="title"><h1>Runs</h1><p>{escape(str(folder))}</p></div>'
        '<div class="tools"><button type="button" id="theme">Theme</button></div></header>'
        f'<main class="runs">{table if runs else empty}{more}</main>'
    )
    return page("Runs", body, styles=("trace/layout.css", "trace/browse.css"))


def _row(run: ListedRun) -> str:
    name = f'<th scope="row"><a href="/run/{quote(run.name)}">{escape(run.name)}</a></th>'
    size, age = f"{run.size / 1e3:,.0f} kB", _age(time() - run.changed)
    if run.problem:
        return f'<tr>{name}<td colspan="4" class="problem">{escape(run.problem)}</td><td>{size}</td><td>{age}</td></tr>'
    running = f", {run.tasks - run.finished} under way" if run.tasks > run.finished else ""
    cells = [
        run.about["strategy"],
        "on" if run.about["masks"] else "off",
        "traced" if run.about["traced"] else "–",
        f"{run.won} of {run.finished}{running}",
        size,
        age,
    ]
    return f"<tr>{name}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _age(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def serve(folder: str | Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve `folder` on this machine until interrupted; calls `ready` with the address first. Port 0: any free one.

    Raises ConstrainedError: there is no such folder, or the port is taken or invalid.
    """
    listening = local_server.listen([port])
    local_server.serve(make_app(folder, listening.getsockname()[1]), listening, ready)
