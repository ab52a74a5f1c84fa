"""Read the page's requests: every field must have the right type and be within its bound."""

from __future__ import annotations

from typing import Any

from constrained.agents.strategies import STRATEGIES
from constrained.errors import ConstrainedError
from constrained.playground import bounds


class RequestError(ConstrainedError):
    """A request that doesn't have the form that the page sends."""


def field(data: Any, name: str, kind: type | tuple[type, ...], most: int | None = None) -> Any:
    """One field of a request's JSON.

    Parameters
    ----------
    data : object
        The request.
    name : str
    kind : type or tuple of type
    most : int, optional
        The greatest length of a text, or the greatest number (the least is 0).

    Raises
    ------
    RequestError
        The field is missing or of another type.
    ConstrainedError
        It is beyond its bound.
    """
    value = data.get(name) if isinstance(data, dict) else None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        raise RequestError(f"the request has no {name!r} of the right kind", "reload the page")
    if most is not None and isinstance(value, str) and len(value) > most:
        raise ConstrainedError(f"the {name} has {len(value):,} characters", f"the playground takes {most:,}")
    if most is not None and isinstance(value, int) and not 0 <= value <= most:
        raise ConstrainedError(f"{name} is {value}", f"use 0 to {most:,}")
    return value


def text(data: Any) -> dict:
    """The text of a grammar, and the name of its document."""
    return {
        "text": unicode(field(data, "text", str, bounds.TEXT)),
        "document": field(data, "document", (str, type(None))),
    }


def explain(data: Any) -> dict:
    """The path to explain, the values of slots and the tokenizer."""
    return {
        "values": field(data, "values", dict),
        "path": unicode(field(data, "path", str, bounds.PATH)),
        "tokenizer": field(data, "tokenizer", str),
    }


def run(data: Any) -> dict:
    """The task to run and the settings of the run."""
    strategy = field(data, "strategy", str)
    if strategy not in STRATEGIES:
        raise RequestError(f"no strategy {strategy!r}", f"use one of {', '.join(STRATEGIES)}")
    steps = field(data, "steps", (int, type(None)), bounds.STEPS)
    return {
        "values": field(data, "values", dict),
        "task": unicode(field(data, "task", str, bounds.TASK)),
        "strategy": strategy,
        "masks": field(data, "masks", bool),
        "seed": field(data, "seed", int, 2**31 - 1),
        "steps": steps,
    }


def unicode(given: str) -> str:
    """Return `given`; raise if it has lone surrogates, which JSON can hold and UTF-8 can't."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ConstrainedError(
            "the text has a lone surrogate, which is no character", "delete the characters that can't be shown"
        ) from None
    return given
