"""Read the page's requests: every field must have the right type and be within its bound."""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

from constrained.agents.strategies import STRATEGIES
from constrained.errors import ConstrainedError
from constrained.playground import bounds

FIELDS: dict[str, tuple[tuple[type, ...], int | None]] = {
    "text": ((str,), bounds.TEXT),
    "document": ((str, NoneType), None),
    "version": ((str, NoneType), None),
    "values": ((dict,), None),
    "path": ((str,), bounds.PATH),
    "tokenizer": ((str,), None),
    "task": ((str,), bounds.TASK),
    "strategy": ((str,), None),
    "masks": ((bool,), None),
    "seed": ((int,), 2**31 - 1),
    "steps": ((int, NoneType), bounds.STEPS),
}
"""Field -> its types, and the greatest length of a text or the greatest number (the least is 0)."""

EXPLAIN = ("values", "path", "tokenizer")
RUN = ("values", "task", "strategy", "masks", "seed", "steps")


class RequestError(ConstrainedError):
    """A request that doesn't have the form that the page sends."""


def read(data: Any, *names: str) -> dict[str, Any]:
    """The named fields of a request's JSON.

    Raises RequestError: a field is missing or of another type. Raises ConstrainedError: a value is beyond its bound, or
    is no text in Unicode.
    """
    return {name: _field(data, name) for name in names}


def _field(data: Any, name: str) -> Any:
    types, most = FIELDS[name]
    value = data.get(name) if isinstance(data, dict) else ...
    if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
        raise RequestError(f"the request has no {name!r} of the right kind", "reload the page")
    if name == "strategy" and value not in STRATEGIES:
        raise RequestError(f"no strategy {value!r}", f"use one of {', '.join(STRATEGIES)}")
    if isinstance(value, str):
        if most is not None and len(value) > most:
            raise ConstrainedError(f"the {name} has {len(value):,} characters", f"the playground takes {most:,}")
        if re.search("[\ud800-\udfff]", value):  # JSON can hold it, UTF-8 can't
            raise ConstrainedError(f"the {name} has a lone surrogate, which is no character", "delete it")
    elif most is not None and isinstance(value, int) and not 0 <= value <= most:
        raise ConstrainedError(f"{name} is {value}", f"use 0 to {most:,}")
    return value
