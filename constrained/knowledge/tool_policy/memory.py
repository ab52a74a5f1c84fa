"""What a tool agent knows: what results told, what was said, and what calls have changed since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from constrained.knowledge.tool_policy.expression import Definition, Scope


class Memory(Mapping[str, Any]):
    """Names -> JSON values; it never changes, `with_values` gives another."""

    def __init__(self, values: Mapping[str, Any] | None = None):
        self._values = dict(values or {})
        self._scope: Scope | None = None

    def scope(self, functions: Mapping[str, Definition]) -> Scope:
        """What a policy's functions see of it; the same each time, so that what they gave is kept."""
        if self._scope is None or self._scope.functions is not functions:
            self._scope = Scope(functions, self._values)
        return self._scope

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def with_values(self, **values: Any) -> Memory:
        """A memory in which these names have these values."""
        return Memory({**self._values, **values})

    def with_place(self, place: tuple[Any, ...], value: Any) -> Memory:
        """A memory in which the value at a place (a name, then keys and indices) is another."""
        name, *keys = place
        if not keys:
            return self.with_values(**{name: value})
        top = deepcopy(self._values.get(name, {}))
        at = top
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value
        return self.with_values(**{name: top})

    def __repr__(self) -> str:
        return f"Memory({', '.join(self._values)})"


def read_result(text: str) -> Any:
    """A tool's result: its JSON; the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
