"""Results that benchmarks wrote as JSON, read again: what has another form is told with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constrained.environments.data import read_json
from constrained.errors import DataError

RESULTS = Path(__file__).resolve().parent / "results"
"""What the documents show."""

DOCS = RESULTS.parents[1] / "docs"
"""The documents, in a checkout."""


@dataclass(frozen=True)
class Kind:
    """What a value must be.

    Attributes
    ----------
    words : str
    fits : callable
    """

    words: str
    fits: Callable[[Any], bool]


_MOST = 1e12
"""What is larger was not measured, and can't be drawn."""


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
    """The result in a file.

    Parameters
    ----------
    path : Path
    command : str
        What writes such files, for messages.
    form : Kind, Maybe, list, dict or callable
        What it must hold: a list of one form for all its values; a dict of forms by name, that of "*" for all names
        that it hasn't (else, these may hold anything); a function that says which form a value must have.

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


def misfit(value: Any, form: Any, place: str = "") -> str:
    """Where and how a value has another form; empty if it hasn't."""
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
    found = (misfit(value[name], one, f"{place}[{name!r}]") for name, one in forms.items() if one is not None)
    return next(filter(None, found), "")
