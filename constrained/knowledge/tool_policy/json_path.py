"""JSON paths: a small subset of RFC 9535 that names places in a tool's result.

``$`` is the whole, ``@`` the value that another path has found; then any of ``.name``, ``['name']``, ``[0]``, and
``[*]`` or ``.*`` for every element or member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from constrained.errors import KnowledgeError

_STEP = re.compile(r"""\.\*|\[\*\]|\.([A-Za-z_][\w-]*)|\[(-?\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")

EVERY = None
"""The step that takes every element or member."""


@lru_cache(maxsize=1024)
def read_path(text: str) -> tuple[str | int | None, ...]:
    """The steps of a path.

    Raises
    ------
    KnowledgeError
        It is none.
    """
    path = text.strip()
    steps: list[str | int | None] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, index, *quoted = found.groups()
        texts = [one for one in (name, *quoted) if one is not None]
        steps.append(int(index) if index is not None else texts[0] if texts else EVERY)
        at = found.end()
    if path[:1] not in ("$", "@") or at < len(path):
        raise KnowledgeError(f"{text!r} is no JSON path", "for example $.orders[*].order_id, or $.payment_methods.*.id")
    return tuple(steps)


def found_at(path: str, value: Any) -> Iterator[Any]:
    """Every value at a path; none where a member or element is missing."""
    found = [value]
    for step in read_path(path):
        found = [one for top in found for one in _below(top, step)]
    yield from found


def _below(value: Any, step: str | int | None) -> Iterator[Any]:
    if step is EVERY:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(value, dict):
        if step in value:
            yield value[step]
    elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        yield value[step]
