"""What a tool agent knows: what results told it, what was said, and what calls have changed since."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any

from constrained.knowledge.lines.expression import Evaluation, Function

_MISSING = object()


class Memory(Mapping[str, Any]):
    """Names -> JSON values; it never changes, `with_values` gives another."""

    def __init__(self, values: Mapping[str, Any] | None = None):
        self._values = dict(values or {})
        self._evaluation: Evaluation | None = None
        self._cache: dict[Any, tuple[list[Any], Any]] = {}

    def evaluation(self, functions: Mapping[str, Function]) -> Evaluation:
        """What a policy's expressions are evaluated with here; the same object each time, so that it keeps results."""
        if self._evaluation is None or self._evaluation.functions is not functions:
            self._evaluation = Evaluation(functions, self._values)
        return self._evaluation

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def with_values(self, **values: Any) -> Memory:
        """A memory in which these names have these values."""
        other = Memory({**self._values, **values})
        other._cache = dict(self._cache)
        return other

    def cached(self, key: Any, looks_at: Iterable[str], make: Callable[[Memory], Any]) -> Any:
        """The result of `make(memory)`, made again only where a value of the names in `looks_at` has changed."""
        values = [self._values.get(name, _MISSING) for name in looks_at]
        entry = self._cache.get(key)
        if entry is None or not all(map(operator.is_, entry[0], values)):
            entry = self._cache[key] = values, make(self)
        return entry[1]

    def sharing(self, before: Memory) -> Memory:
        """An equal memory that shares the objects of an earlier one where values are equal, for `cached`."""
        same = {
            name: old
            for name, old in before._values.items()
            if (new := self._values.get(name, _MISSING)) is not old and _alike(new, old)
        }
        return self.with_values(**same) if same else self

    def with_place(self, place: tuple[Any, ...], value: Any) -> Memory:
        """A memory with another value at a place: a name, then keys and indices."""
        name, *keys = place
        if not keys:
            return self.with_values(**{name: value})
        # Only what lies around the place is copied: all else is shared, and never changes.
        top = at = copy(self._values.get(name, {}))
        for key in keys[:-1]:
            at[key] = copy(at[key])
            at = at[key]
        at[keys[-1]] = value
        return self.with_values(**{name: top})

    def __repr__(self) -> str:
        return f"Memory({', '.join(self._values)})"


def _alike(one: Any, other: Any) -> bool:
    """Whether two JSON values are written alike: 1, 1.0 and True are equal, but not alike."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key == name and _alike(value, new) for (key, value), (name, new) in zip(one.items(), other.items())
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_result(text: str) -> Any:
    """A tool's result: its JSON value, or the text itself if it isn't JSON.

    A lone surrogate becomes a question mark, as no call could repeat it. A result with NaN, or with a number too large
    for a float, is a text.
    """
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        if _SURROGATE.search(text):
            data = json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
        return data
    except (ValueError, RecursionError):
        return text


def _refuse(text: str) -> float:
    raise ValueError(text)


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse(text)


_STEP = re.compile(r"""\.\*|\[\*\]|\.([\w-]+)|\[(-?\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


def found_at(path: str, value: Any) -> list[Any]:
    """Every value at a JSON path (PATH in the grammar of `//:` lines); none where a member or element is missing."""
    values = [value]
    for name, index, *quoted in _STEP.findall(path):
        key = next(filter(None, (name, *quoted)), "")
        below: list[Any] = []
        for top in values:
            if not (index or key):
                below += top.values() if isinstance(top, dict) else top if isinstance(top, list) else ()
            elif isinstance(top, dict) and key in top:
                below.append(top[key])
            elif index and isinstance(top, list) and -len(top) <= int(index) < len(top):
                below.append(top[int(index)])
        values = below
    return values
