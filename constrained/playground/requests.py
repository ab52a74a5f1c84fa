"""What pages ask for, read with care: every field of the right kind and within its bound."""

from __future__ import annotations

from typing import Any

from constrained.agents.strategies import STRATEGIES
from constrained.errors import ConstrainedError
from constrained.playground import bounds


class RequestError(ConstrainedError):
    """A request that is not of the form the page sends."""


class NoText(ConstrainedError):
    """Something typed that is no text."""


class TooMuch(ConstrainedError):
    """What was typed is beyond a bound."""


def field(data: Any, name: str, kind: type | tuple[type, ...], most: int | None = None) -> Any:
    """One field of a request's JSON.

    Parameters
    ----------
    data : object
        What was sent.
    name : str
    kind : type or tuple of type
        What its value must be.
    most : int, optional
        The longest text, or the greatest number (then from 0).

    Raises
    ------
    RequestError
        It is missing, or of another kind.
    TooMuch
        It is beyond its bound.
    """
    value = data.get(name) if isinstance(data, dict) else None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds:
        raise RequestError(f"the request has no {name!r} of the right kind", "reload the page")
    if most is not None and isinstance(value, str) and len(value) > most:
        raise TooMuch(f"the {name} has {len(value):,} characters", f"the playground takes {most:,}")
    if most is not None and isinstance(value, int) and not 0 <= value <= most:
        raise TooMuch(f"{name} is {value}", f"use 0 to {most:,}")
    return value


def text(data: Any) -> dict:
    """The text of a grammar, and the document it is of."""
    return {
        "text": unicode(field(data, "text", str, bounds.TEXT)),
        "document": field(data, "document", (str, type(None))),
    }


def explain(data: Any) -> dict:
    """What is to be explained, by which tokenizer."""
    return {
        "values": field(data, "values", dict),
        "path": unicode(field(data, "path", str, bounds.PATH)),
        "tokenizer": field(data, "tokenizer", str),
    }


def run(data: Any) -> dict:
    """What is to be run, and how."""
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
    """`given`, which may hold no lone surrogates: JSON can write them, and no text has them."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise NoText("the text has a lone surrogate, which is no character", "delete what can't be shown") from None
    return given
