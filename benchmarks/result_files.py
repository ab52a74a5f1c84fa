"""Read results that benchmarks wrote as JSON; errors say where a file has another form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained.environments.data import read_json
from constrained.errors import ConstrainedError, DataError

RESULTS = Path(__file__).resolve().parent / "results"
"""The results that the documentation shows."""

RECORDS = RESULTS.parent / "records.json"
"""Of each result: command, date, commit, machine, seeds and sample."""

DOCS = RESULTS.parents[1] / "docs"
"""The documentation."""


@dataclass(frozen=True)
class Kind:
    """What a value must be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


_MOST = 1e12
"""Larger numbers can't have been measured, nor drawn."""


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
COUNT = Kind("a whole number", lambda value: isinstance(value, int) and _number(value))
FIGURE = Kind("a number from 0 to 1e12", _number)
TIME = Kind("a time in seconds", lambda value: _number(value) and value > 0)


@dataclass(frozen=True)
class Maybe:
    """A value that may be missing, or null."""

    form: Any


def read_result(path: Path, command: str, form: Any) -> Any:
    """Read a result file.

    Parameters
    ----------
    path : Path
    command : str
        What writes such files, for messages.
    form : Kind, Maybe, list, dict or callable
        The form of the content: a list of one form for all items; a dict of forms by name, where "*" is the form of
        all other names (without it, these may hold anything); a function from a value to its form.

    Raises
    ------
    DataError
        The file can't be read, is not JSON, or its content has another form.
    """
    again = f"write one with `{command} --json FILE`"
    if not path.exists():
        raise DataError(f"there is no {path}", again)
    data = read_json(path)
    problem = misfit(data, form)
    if problem:
        raise DataError(f"{path} is not a result of `{command}`: {problem}", again)
    return data


def read_record(path: Path, command: str) -> dict[str, Any]:
    """Read the figures that `command --exact --update` recorded; empty if there are none yet.

    Raises DataError: the file is damaged.
    """
    try:
        return read_json(path) if path.exists() else {}
    except DataError as error:
        raise DataError(f"{path} is damaged: {error.message}", f"{command} --exact --update") from None


def finished_rows(path: Path | None, facts: Mapping[str, Any]) -> list[dict]:
    """Read the rows of an interrupted run's file; none if there is no file, or it was written with other `facts`.

    Raises ConstrainedError: the file is of another kind.
    """
    if path is None or not path.exists():
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return data["rows"] if {key: data[key] for key in facts} == facts else []
    except (OSError, ValueError, LookupError, TypeError) as error:
        hint = "name another file, or use --anew"
        raise ConstrainedError(f"{path} is not a file of this benchmark: {error!r}", hint) from error


def misfit(value: Any, form: Any, place: str = "") -> str:
    """Where and how a value differs from a form; empty if it doesn't."""
    here = place or "it"
    if callable(form):
        form = form(value)
    if isinstance(form, Maybe):
        return "" if value is None else misfit(value, form.form, place)
    if isinstance(form, Kind):
        return "" if form.fits(value) else f"{here} is not {form.words}"
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{here} is not a list"
        return next((words for n, one in enumerate(value) if (words := misfit(one, form[0], f"{place}[{n}]"))), "")
    if not isinstance(value, dict):
        return f"{here} is not an object"
    named = {name: one for name, one in form.items() if name != "*"}
    for name, one in named.items():
        if name not in value and not isinstance(one, Maybe):
            return f"{here} has no {name!r}"
    forms = {name: named.get(name, form.get("*")) for name in value}
    misfits = (misfit(value[name], one, f"{place}[{name!r}]") for name, one in forms.items() if one is not None)
    return next(filter(None, misfits), "")
