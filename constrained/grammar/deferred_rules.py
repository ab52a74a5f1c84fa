"""Rules that are written when they are first looked up: of a JSON Schema, a text mostly reaches a few."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from constrained.errors import LimitError
from constrained.grammar.nodes import Node, Rule

_FOR_ONE = 3
"""Rules of one schema: its values, and of these the objects and the arrays."""


class DeferredRules:
    """Rules by name, many of them deferred: each is written when it is first looked up, `rules[name]`.

    They are no mapping: there is nothing to iterate over, and only :meth:`write_all` writes what nobody looked up.

    Parameters
    ----------
    most : int
        Of so many schemas, all rules may be written at once (the limit `schema`).

    Attributes
    ----------
    written : dict of str to Rule
        Those that are written so far.
    """

    def __init__(self, most: int):
        self.written: dict[str, Rule] = {}
        self._most, self._lock = most, RLock()
        self._deferred: dict[str, Callable[[], Node]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.written or name in self._deferred

    def __getitem__(self, name: str) -> Rule:
        found = self.written.get(name)
        return self._write(name) if found is None else found

    __iter__ = None  # else Python would try the indices 0, 1, 2, ...

    def add(self, rule: Rule) -> None:
        """Add a rule that is written."""
        self.written[rule.name] = rule

    def defer(self, name: str, write: Callable[[], Node]) -> None:
        """Add a rule whose body `write` writes when it is looked up."""
        self._deferred[name] = write

    def undefer(self, name: str) -> Callable[[], Node]:
        """Take out a rule that was deferred; return what writes its body."""
        return self._deferred.pop(name)

    def write_all(self) -> dict[str, Rule]:
        """All rules, those that were deferred written.

        Raises LimitError: they are too many.
        """
        with self._lock:
            while self._deferred:
                self._write(next(iter(self._deferred)))
                if len(self.written) > _FOR_ONE * self._most:
                    what = "a JSON Schema that takes too many rules where all are asked for, as for a budget"
                    raise LimitError("schema", self._most, what, "list fewer properties in any order, or unique values")
        return self.written

    def _write(self, name: str) -> Rule:
        with self._lock:
            if name not in self.written:  # another thread may have come first
                self.add(Rule(name, self._deferred[name]()))
                del self._deferred[name]
            return self.written[name]

    def __getstate__(self) -> dict:
        return {"written": self.write_all(), "_most": self._most}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["_most"])  # type: ignore[misc]
        self.written = state["written"]
